"""Two windows that tile a larger one: separate loads against one load and two slices."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import both, inout, kernel, loads_of, shape_of, tensor

SUM = "r = pl.add(a, b)\nreturn r"


def halves(axis: int, rows: int, cols: int, gap: int = 0) -> str:
    """The sum of two windows of [rows, cols], one behind the other on an axis."""
    at = [0, 0]
    at[axis] = (rows, cols)[axis] + gap
    whole = [rows, cols]
    whole[axis] = 2 * whole[axis] + gap
    body = f"""
a = pl.slice(x, [{rows}, {cols}], [0, 0])
b = pl.slice(x, [{rows}, {cols}], {at})
{SUM}"""
    return kernel({"x": tensor(whole, "FP32")}, body, tensor([rows, cols], "FP32"))


def loaded(text: str) -> list[list[object]]:
    """The shapes that the optimized program loads."""
    _, best = both(text)
    return [shape_of(call) for call in loads_of(best, "x")]


def test_short_rows_side_by_side_are_loaded_at_once() -> None:
    """64 rows of 64 bytes are fewer bursts than twice 64 rows of 32 bytes."""
    assert loaded(halves(1, 64, 8)) == [[64, 16]]


def test_the_reference_loads_each_window() -> None:
    reference, _ = both(halves(1, 64, 8))
    assert [shape_of(call) for call in loads_of(reference, "x")] == [[64, 8]] * 2


def test_windows_that_leave_a_gap_or_overlap_are_not_joined() -> None:
    assert loaded(halves(1, 64, 8, gap=8)) == [[64, 8]] * 2
    assert loaded(halves(0, 64, 8, gap=-8)) == [[64, 8]] * 2


def test_windows_of_written_memory_are_not_joined() -> None:
    body = """
a = pl.slice(x, [64, 8], [0, 0])
h = pl.assemble(x, y, [0, 0])
b = pl.slice(x, [64, 8], [0, 8])
r = pl.add(a, b)
return h, r"""
    whole, half = tensor([64, 16], "FP32"), tensor([64, 8], "FP32")
    params = {"x": inout([64, 16], "FP32"), "y": tensor([4, 16], "FP32")}
    assert loaded(kernel(params, body, f"tuple[{whole}, {half}]")) == [[64, 8]] * 2


@given(st.sampled_from([0, 1]), st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=20)
def test_any_halves(axis: int, rows: int, cols: int) -> None:
    both(halves(axis, rows, cols))
