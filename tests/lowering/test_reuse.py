"""Tile ops that write into an operand's buffer never destroy a value that is still read.

tile.assemble and tile.matmul_acc leave their result in the buffer of their first operand, while a
tensor program's values never change.
"""

from __future__ import annotations

import pytest
from kernels import executed, kernel, tensor

from pypto_egg import lower, optimize
from pypto_egg.errors import LoweringError

F = tensor([16, 32], "FP32")
CUBE = {
    "a": tensor([16, 32], "FP16"),
    "b": tensor([32, 32], "FP16"),
    "c": tensor([16, 32], "FP16"),
    "n": "pl.Scalar[pl.INDEX]",
}
VECTOR = {"x": F, "y": tensor([8, 32], "FP32"), "n": "pl.Scalar[pl.INDEX]"}

PROGRAMS = {
    "an accumulator read after it was accumulated into": (CUBE, 2, """
z = pl.matmul(a, b, out_dtype=pl.FP32)
w = pl.matmul_acc(z, c, b)
return w, z"""),
    "an accumulator accumulated into twice": (CUBE, 2, """
z = pl.matmul(a, b, out_dtype=pl.FP32)
w = pl.matmul_acc(z, c, b)
v = pl.matmul_acc(z, a, b)
return w, v"""),
    "a sum of products whose addend is read again": (CUBE, 2, """
z = pl.matmul(a, b, out_dtype=pl.FP32)
u = pl.matmul(c, b, out_dtype=pl.FP32)
s = pl.add(z, u)
return s, z"""),
    "an accumulator that seeds two loops": (CUBE, 2, """
z = pl.matmul(a, b, out_dtype=pl.FP32)
for i, (p,) in pl.range(2, init_values=(z,)):
    u = pl.matmul_acc(p, c, b)
    r = pl.yield_(u)
for j, (q,) in pl.range(3, init_values=(z,)):
    v = pl.matmul_acc(q, c, b)
    s = pl.yield_(v)
return r, s"""),
    "an accumulator of outside accumulated into in a loop": (CUBE, 1, """
z = pl.matmul(a, b, out_dtype=pl.FP32)
for i, (p,) in pl.range(3, init_values=(z,)):
    u = pl.matmul_acc(z, c, b)
    s = pl.add(u, p)
    r = pl.yield_(s)
return r"""),
    "an accumulator accumulated into in one arm": (CUBE, 1, """
z = pl.matmul(a, b, out_dtype=pl.FP32)
if n > 2:
    u = pl.matmul_acc(z, c, b)
    r = pl.yield_(u)
else:
    w = pl.neg(z)
    r = pl.yield_(w)
t = pl.add(r, z)
return t"""),
    "a carried accumulator that is also read as a value": (CUBE, 1, """
z = pl.matmul(a, b, out_dtype=pl.FP32)
for i, (p,) in pl.range(3, init_values=(z,)):
    u = pl.matmul_acc(p, c, b)
    h = pl.mul(p, 0.5)
    s = pl.add(u, h)
    r = pl.yield_(s)
return r"""),
    "a tile that two parts are put into": (VECTOR, 3, """
z = pl.neg(x)
u = pl.assemble(z, y, [0, 0])
w = pl.assemble(z, y, [8, 0])
return u, w, z"""),
    "a seed of an assembling loop that is read afterwards": (VECTOR, 1, """
z = pl.neg(x)
for i, (p,) in pl.range(2, init_values=(z,)):
    u = pl.assemble(p, y, [8 * i, 0])
    r = pl.yield_(u)
w = pl.add(z, r)
return w"""),
    "a loaded tile that a part is put into": (VECTOR, 2, """
u = pl.assemble(x, y, [0, 0])
w = pl.add(u, x)
return w, u"""),
    "a tile of outside put into in a loop": (VECTOR, 1, """
z = pl.neg(x)
t = pl.exp(x)
for i, (p,) in pl.range(2, init_values=(t,)):
    u = pl.assemble(z, y, [8 * i, 0])
    s = pl.add(u, p)
    r = pl.yield_(s)
return r"""),
    "a filled tile that two parts are put into": (VECTOR, 2, """
z = pl.full([16, 32], dtype=pl.FP32, value=1.0)
u = pl.assemble(z, y, [0, 0])
w = pl.assemble(z, y, [8, 0])
return u, w"""),
}  # fmt: skip


# The reference multiplies where the program does, and no tile can be copied out of L0C and back.
REFUSED_BY_THE_REFERENCE = {
    "an accumulator accumulated into twice",
    "an accumulator that seeds two loops",
    "an accumulator of outside accumulated into in a loop",
    "a carried accumulator that is also read as a value",
}


def text_of(name: str) -> str:
    params, outputs, body = PROGRAMS[name]
    used = {p: t for p, t in params.items() if p != "n" or "n >" in body}
    return kernel(used, body, F if outputs == 1 else f"tuple[{', '.join([F] * outputs)}]")


@pytest.mark.req("C-036", "C-038", "C-145")
@pytest.mark.parametrize("name", PROGRAMS)
def test_optimized_values_outlive_the_reuse_of_their_buffer(name: str) -> None:
    executed(optimize(text_of(name), verify=True))


@pytest.mark.req("C-036", "C-038", "C-145")
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_reference_is_right_or_refuses(name: str) -> None:
    if name not in REFUSED_BY_THE_REFERENCE:
        executed(lower(text_of(name), verify=True))
        return
    with pytest.raises(LoweringError) as caught:
        lower(text_of(name))
    assert caught.value.code == "E401"
    assert "accumul" in caught.value.message or "matmul_acc" in caught.value.message
    assert caught.value.span is not None
