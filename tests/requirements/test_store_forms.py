"""C8: the two forms of scalar stores that take the bulk path, and the programs that may not."""

from __future__ import annotations

import numpy as np
import pytest
from kernels import both, executed, function, inout, lines, ops, out, program, tensor

from pypto_egg import Lowering, lower, optimize
from pypto_egg.errors import CoherenceError
from pypto_egg.interp import run

MAKERS = pytest.mark.parametrize("make", [lower, optimize], ids=["lower", "optimize"])
I32 = "pl.const({}, pl.INT32)"


def whole(body: str, shape: tuple[int, int] = (1, 32), **more: str) -> str:
    """A kernel on `output`, an INT32 tensor, and orchestration that calls it."""
    row = tensor(shape, "INT32")
    params = {"output": out(shape, "INT32"), **more}
    call = f"r = self.kernel({', '.join(params)})\nreturn r"
    return program(
        function(params, body, row), function(params, call, row, "main", "Orchestration")
    )


def stored(result: Lowering, **inputs: object) -> np.ndarray:
    """What the tile program leaves in `output`, which is 7 before."""
    shape = result.source.function("main").params[0].var.type.shape
    outputs = run(result.program, {"output": np.full(shape, 7, np.int32), **inputs})
    return outputs.params["output"]


def fill(loop: str = "pl.range(16)", *writes: tuple[str, str]) -> str:
    """A loop of scalar stores to `output`, then the return."""
    writes = writes or (("[0, i]", I32.format(-1)),)
    body = "".join(f"    pl.tensor.write(output, {at}, {value})\n" for at, value in writes)
    return f"for i in {loop}:\n{body}return output"


# --- constant fills ----------------------------------------------------------------------------


@pytest.mark.req("C-070")
def test_a_constant_fill_becomes_one_bulk_store() -> None:
    for result in both(whole(fill(), (1, 16))):
        assert ops(result) == ["tile.full", "tile.store"]
        assert np.all(stored(result) == -1)


FILLS = {
    "a row of many": ("pl.range(16)", (("[3, i]", I32.format(4)),), (8, 16)),
    "a part of a row": ("pl.range(8)", (("[0, 8 + i]", I32.format(4)),), (1, 32)),
    "two writes": (
        "pl.range(16)", (("[0, i]", I32.format(4)), ("[1, i]", I32.format(5))), (2, 16),
    ),
}  # fmt: skip


@pytest.mark.req("C-070", "C-072", "C-074")
@pytest.mark.parametrize("name", FILLS)
def test_fills_that_qualify(name: str) -> None:
    loop, writes, shape = FILLS[name]
    for make in (lower, optimize):
        result = executed(make(whole(fill(loop, *writes), shape), verify=True))
        assert "tensor.write" not in ops(result)
        assert ops(result).count("tile.store") == len(writes)
        expected = np.full(shape, 7)
        for at, value in writes:
            row, column = at.strip("[]").split(", ")
            first = int(column.split(" + ")[0]) if "+" in column else 0
            trips = int(loop.removeprefix("pl.range(").removesuffix(")"))
            expected[int(row), first : first + trips] = 4 if "4" in value else 5
        assert np.array_equal(stored(result), expected)


NO_FILLS = {
    "starts later": ("C-071", fill("pl.range(1, 17)")),
    "a step of two": ("C-071", fill("pl.range(0, 16, 2)")),
    "a pipeline": ("C-071", fill("pl.pipeline(0, 16, 1, stage=2)")),
    "a read besides": (
        "C-072",
        "for i in pl.range(16):\n    v = pl.tensor.read(x, [0, i])\n"
        f"    pl.tensor.write(output, [0, i], {I32.format(-1)})\nreturn output",
    ),
    "a value of the index": ("C-073", fill("pl.range(16)", ("[0, i]", "pl.cast(i, pl.INT32)"))),
    "a stride": ("C-074", fill("pl.range(16)", ("[0, 2 * i]", I32.format(-1)))),
    "16 bytes": ("C-075", fill("pl.range(4)")),
}


@MAKERS
@pytest.mark.req("C-071", "C-072", "C-073", "C-074", "C-075", "C-076")
@pytest.mark.parametrize("name", NO_FILLS)
def test_loops_that_do_not_qualify_stay_scalar_stores(make: object, name: str) -> None:
    _, body = NO_FILLS[name]
    text = whole(body, (1, 32), x=tensor([1, 32], "INT32"))
    result = executed(make(text, verify=True))
    assert ops(result).count("tensor.write") == 1
    assert "tile.store" not in ops(result)


OVERLAPPING = {
    "one name": (("[0, i]", 4, "output"), ("[0, i + 8]", 5, "output")),
    "an alias": (("[0, i]", 4, "output"), ("[0, i + 8]", 5, "o")),
}


@MAKERS
@pytest.mark.req("C-070", "C-074")
@pytest.mark.parametrize("name", OVERLAPPING)
def test_the_last_write_of_an_element_is_known_to_the_loop_only(make: object, name: str) -> None:
    """Of two overlapping runs, a later trip's first write comes after an earlier trip's second."""
    writes = "".join(
        f"    pl.tensor.write({target}, {at}, {I32.format(value)})\n"
        for at, value, target in OVERLAPPING[name]
    )
    text = whole(f"o = output\nfor i in pl.range(16):\n{writes}return output")
    result = executed(make(text, verify=True))
    assert ops(result) == ["tensor.write"] * 2
    assert np.array_equal(stored(result)[0], [4] * 16 + [5] * 8 + [7] * 8)


@MAKERS
@pytest.mark.req("C-076")
def test_a_fill_beside_a_scalar_store_through_an_alias_stays_scalar(make: object) -> None:
    body = "o = output\npl.tensor.write(o, [0, 20], pl.const(3, pl.INT32))\n" + fill()
    result = executed(make(whole(body), verify=True))
    assert ops(result) == ["tensor.write"] * 2


@MAKERS
@pytest.mark.req("C-074")
def test_a_column_is_no_contiguous_region(make: object) -> None:
    text = whole(fill("pl.range(16)", ("[i, 0]", I32.format(-1))), (16, 8))
    assert ops(executed(make(text, verify=True))) == ["tensor.write"]


@pytest.mark.req("C-069", "C-070")
def test_a_fill_before_a_bulk_store_is_no_mixture() -> None:
    body = f"""
for i in pl.range(32):
    pl.tensor.write(output, [0, i], {I32.format(-1)})
t = pl.full([1, 16], dtype=pl.INT32, value=3)
o = pl.assemble(output, t, [0, 0])
return o"""
    for result in both(whole(body)):
        assert "tensor.write" not in ops(result)
        assert np.array_equal(stored(result)[0], [3] * 16 + [-1] * 16)


@MAKERS
@pytest.mark.req("C-069", "C-073", "C-075")
@pytest.mark.parametrize("name", ["a value of the index", "16 bytes", "a stride"])
def test_what_is_no_fill_is_a_mixture_beside_a_bulk_store(make: object, name: str) -> None:
    _, body = NO_FILLS[name]
    extra = "t = pl.full([1, 16], dtype=pl.INT32, value=3)\no = pl.assemble(output, t, [0, 0])\n"
    with pytest.raises(CoherenceError, match="'output'"):
        make(whole(extra + body))


# --- staged updates ----------------------------------------------------------------------------

INIT = "f = pl.full([1, 32], dtype=pl.INT32, value=-1)\no = pl.assemble(output, f, [0, 0])\n"
UPDATE = "for i in pl.range(4):\n    pl.write(output, [0, i], pl.cast(i, pl.INT32))\n"
SUPPORTED = """
staged = pl.full([1, 32], dtype=pl.INT32, value=-1)
for i in pl.range(4):
    pl.write(staged, [0, i], pl.cast(i, pl.INT32))
output[0:1, 0:32] = staged
return output"""
STAGED = np.array([[0, 1, 2, 3, *[-1] * 28]], np.int32)


def staged(result: Lowering) -> None:
    """One full, scalar writes to its tile, one store after them."""
    assert [op for op in ops(result) if op != "tile.write"] == ["tile.full", "tile.store"]
    assert "tile.write" in ops(result)
    text = lines(result)
    (store,) = [n for n, line in enumerate(text) if "pl.tile.store(" in line]
    assert all(n < store for n, line in enumerate(text) if "pl.tile.write(" in line)


@pytest.mark.req("C-077", "C-069")
@pytest.mark.parametrize(
    "init",
    [INIT, "output[0:1, 0:32] = pl.full([1, 32], dtype=pl.INT32, value=-1)\n"],
    ids=["assemble", "subscript"],
)
def test_a_filled_tensor_is_updated_on_chip_and_stored_once(init: str) -> None:
    for result in both(whole(init + UPDATE + "return output")):
        staged(result)
        assert np.array_equal(stored(result), STAGED)


@pytest.mark.req("C-084")
def test_the_document_s_supported_form() -> None:
    for result in both(whole(SUPPORTED)):
        staged(result)
        assert np.array_equal(stored(result), STAGED)


@pytest.mark.req("C-077", "C-084")
@pytest.mark.parametrize("n", [0, 5, 31])
def test_positions_that_are_read_at_run_time(n: int) -> None:
    """A sparse map: which elements are set is known only when the kernel runs."""
    body = INIT + f"pl.write(output, [0, n], {I32.format(9)})\nreturn output"
    for make in (lower, optimize):
        result = make(whole(body, n="pl.Scalar[pl.INDEX]"), verify=False)
        staged(result)
        expected = np.full((1, 32), -1)
        expected[0, n] = 9
        assert np.array_equal(stored(result, n=n), expected)


REJECTED = {
    "a part is initialised": (
        "C-078",
        "f = pl.full([1, 16], dtype=pl.INT32, value=-1)\no = pl.assemble(output, f, [0, 0])\n"
        + UPDATE + "return output",
    ),
    "not at offset zero": (
        "C-078",
        "f = pl.full([1, 16], dtype=pl.INT32, value=-1)\no = pl.assemble(output, f, [0, 16])\n"
        + UPDATE + "return output",
    ),
    "the fill is used twice": (
        "C-079", INIT + "p = pl.assemble(other, f, [0, 0])\n" + UPDATE + "return output",
    ),
    "an alias is written": (
        "C-081", "o2 = output\n" + INIT + f"pl.write(o2, [0, 1], {I32.format(3)})\nreturn output",
    ),
    "another bulk store": (
        "C-082",
        INIT + UPDATE + "t = pl.full([1, 8], dtype=pl.INT32, value=3)\n"
        "p = pl.assemble(output, t, [0, 0])\nreturn p",
    ),
    "a computation reads it": (
        "C-083", INIT + "s = pl.neg(output)\np = pl.assemble(other, s, [0, 0])\n" + UPDATE
        + "return output",
    ),
    "the document's": (
        "C-080",
        "output[0:1, 0:16] = pl.full([1, 16], dtype=pl.INT32, value=-1)\n" + UPDATE
        + "return output",
    ),
}  # fmt: skip


@MAKERS
@pytest.mark.req("C-078", "C-079", "C-080", "C-081", "C-082", "C-083")
@pytest.mark.parametrize("name", REJECTED)
def test_updates_that_cannot_be_staged_are_refused(make: object, name: str) -> None:
    _, body = REJECTED[name]
    with pytest.raises(CoherenceError) as caught:
        make(whole(body, (1, 32), other=inout([1, 32], "INT32")))
    assert "'output'" in caught.value.message
    assert "MTE3" in caught.value.message
    assert "D-cache" in caught.value.message
