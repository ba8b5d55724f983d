"""C7 and C8 on whole programs: the document's own kernels, and the two ways that data reach GM."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from kernels import (
    both,
    executed,
    function,
    incore,
    inout,
    lines,
    ops,
    out,
    program,
    stores,
    tensor,
)

from pypto_egg import Lowering, lower, optimize
from pypto_egg.cli import command
from pypto_egg.errors import CoherenceError

MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])
ROW = tensor([1, 32], "INT32")
OUTPUT = {"output": out([1, 32], "INT32")}
FULL = "t = pl.full([1, {n}], dtype=pl.INT32, value=-1)\n"

GM_IDENTITY = """
import pypto.language as pl

@pl.jit.incore
def kernel(
    x: pl.InOut[pl.Tensor[[16, 32], pl.FP32]],
    out: pl.Out[pl.Tensor[[16, 1], pl.FP32]],
):
    r = pl.row_max(x)
    out[0:16, 0:1] = r
    pl.tensor.write(x, [0, 0], pl.const(1.0, pl.FP32))
    return out
"""


def caller(params: dict[str, str], returns: str) -> str:
    """Orchestration around `kernel`, so that a whole program is compared."""
    body = f"r = self.kernel({', '.join(params)})\nreturn r"
    return function(params, body, returns, "main", "Orchestration")


def whole(body: str, params: dict[str, str] | None = None, returns: str = ROW) -> str:
    params = params or OUTPUT
    return program(function(params, body, returns), caller(params, returns))


def of_path(result: Lowering, path: str) -> int:
    """How many stores take a path: "tile.store" is MTE3, "tensor.write" the D-cache."""
    return ops(result).count(path)


@pytest.mark.req("C-054", "C-055", "C-063", "C-064", "C-068")
def test_the_document_s_kernel_of_gm_identity() -> None:
    for result in both(GM_IDENTITY):
        assert of_path(result, "tensor.write") == 1
        assert of_path(result, "tile.write") == 0
        assert len(stores(result)) == 1
        text = lines(result)
        (load,) = [n for n, t in enumerate(text) if "pl.tile.load(x" in t]
        (write,) = [n for n, t in enumerate(text) if "pl.tensor.write(x" in t]
        assert load < write
        assert [p.direction.value for p in incore(result).params] == ["InOut", "Out"]


@pytest.mark.req("C-004", "C-054")
def test_the_document_s_kernel_is_in_order_before_and_after(tmp_path: Path) -> None:
    """`pypto-egg verify` accepts what lowering accepts, and what comes out of it."""
    for stage, text in (("tensor", GM_IDENTITY), ("tile", lower(GM_IDENTITY).text)):
        path = tmp_path / f"{stage}.py"
        path.write_text(text, encoding="utf-8")
        result = CliRunner().invoke(command, ["verify", str(path), "--stage", stage])
        assert result.exit_code == 0, result.output
        assert f"no findings ({stage} stage)" in result.output


@pytest.mark.req("C-063")
@pytest.mark.parametrize("returned", ["out", "nothing"])
def test_what_is_returned_drops_no_write(returned: str) -> None:
    text = GM_IDENTITY if returned == "out" else GM_IDENTITY.replace("    return out\n", "")
    for result in both(text):
        assert of_path(result, "tensor.write") == 1
        assert len(stores(result)) == 1


@pytest.mark.req("C-056")
def test_distributed_parameters_keep_their_identity() -> None:
    text = GM_IDENTITY.replace(
        "pl.InOut[pl.Tensor[[16, 32]", "pl.InOut[pld.DistributedTensor[[16, 32]"
    ).replace(
        "import pypto.language as pl",
        "import pypto.language as pl\nimport pypto.language.distributed as pld",
    )
    for make in (lower, optimize):
        result = make(text, verify=False)
        assert of_path(result, "tensor.write") == 1
        assert of_path(result, "tile.write") == 0
        assert len(stores(result)) == 1


REJECTED = {
    "the document's": """
output[0:1, 0:16] = pl.full([1, 16], dtype=pl.INT32, value=-1)
for i in pl.range(4):
    pl.write(output, [0, i], pl.cast(i, pl.INT32))
return output""",
    "three names": FULL.format(n=16) + """
o = output
o2 = pl.assemble(o, t, [0, 0])
for i, (c,) in pl.range(4, init_values=(o2,)):
    c2 = pl.write(c, [0, i], pl.cast(i, pl.INT32))
    r = pl.yield_(c2)
return r""",
    "through a branch": FULL.format(n=16) + """
if n > 2:
    a = pl.assemble(output, t, [0, 0])
    r = pl.yield_(a)
else:
    r = pl.yield_(output)
pl.write(r, [0, 20], pl.const(3, pl.INT32))
return r""",
    "through a view": FULL.format(n=16) + """
v = pl.slice(output, [1, 8], [0, 24])
pl.write(v, [0, 1], pl.const(3, pl.INT32))
o = pl.assemble(output, t, [0, 0])
return o""",
    "offsets that look disjoint": FULL.format(n=16) + """
o = pl.assemble(output, t, [0, 0])
pl.write(o, [0, 31], pl.const(3, pl.INT32))
return o""",
    "scalar first": FULL.format(n=16) + """
pl.write(output, [0, n], pl.const(3, pl.INT32))
o = pl.assemble(output, t, [0, 0])
return o""",
}  # fmt: skip


@MAKERS
@pytest.mark.req("C-065", "C-066", "C-067", "C-080")
@pytest.mark.parametrize("target", ["a2a3", "a5"])
@pytest.mark.parametrize("name", REJECTED)
def test_both_paths_on_one_tensor_are_refused(make: object, target: str, name: str) -> None:
    params = {**OUTPUT, "n": "pl.Scalar[pl.INDEX]"}
    with pytest.raises(CoherenceError) as caught:
        make(whole(REJECTED[name], params), target=target)
    error = caught.value
    assert error.code == "E403"
    for words in ("'output'", "'kernel'", "tensor.assemble", "MTE3", "tensor.write", "D-cache"):
        assert words in error.message
    assert error.span is not None
    assert error.hint


@pytest.mark.req("C-068")
def test_two_tensors_may_take_two_paths() -> None:
    body = """
v = pl.exp(x)
o = pl.assemble(output, v, [0, 0])
pl.write(x, [0, 3], pl.const(2.0, pl.FP32))
return o"""
    row = tensor([1, 32], "FP32")
    params = {"x": inout([1, 32], "FP32"), "output": out([1, 32], "FP32")}
    for result in both(whole(body, params, row)):
        assert of_path(result, "tensor.write") == of_path(result, "tile.store") == 1


SCALAR_ONLY = {
    "values of the index": ("pl.range(4)", "[0, i]", "pl.cast(i, pl.INT32)"),
    "a stride": ("pl.range(4)", "[0, 2 * i]", "pl.const(5, pl.INT32)"),
    "an unaligned region": ("pl.range(5)", "[0, i]", "pl.const(5, pl.INT32)"),
    "a loop that starts later": ("pl.range(1, 17)", "[0, i]", "pl.cast(i, pl.INT32)"),
    "every element": ("pl.range(32)", "[0, i]", "pl.cast(i, pl.INT32)"),
}


@pytest.mark.req("C-076", "C-085")
@pytest.mark.parametrize("name", SCALAR_ONLY)
def test_scalar_stores_alone_stay_on_the_d_cache_path(name: str) -> None:
    loop, index, value = SCALAR_ONLY[name]
    body = f"for i in {loop}:\n    pl.write(output, {index}, {value})\nreturn output"
    for make in (lower, optimize):
        result = executed(make(whole(body), verify=True))
        assert of_path(result, "tensor.write") == 1
        assert of_path(result, "tile.store") == 0
