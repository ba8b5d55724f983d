"""Boxes of cube tiles: the numbers of the document's examples, and what is left unpadded."""

from __future__ import annotations

import pytest
from kernels import (
    assert_whole_boxes,
    both,
    calls,
    executed,
    function,
    inout,
    kernel,
    lines,
    loads_of,
    out,
    program,
    shape_of,
    stores,
    tensor,
    valid_of,
)

from pypto_egg import lower, optimize
from pypto_egg.errors import AlignmentError, LoweringError
from pypto_egg.ir.enums import Mem


def matmul(
    a: list[int], b: list[int], dtype: str, shape: list[int], flags: str = "", total: str = "FP32"
) -> str:
    body = f"y = pl.matmul(a, b, out_dtype=pl.{total}{flags})\nreturn y"
    return kernel({"a": tensor(a, dtype), "b": tensor(b, dtype)}, body, tensor(shape, total))


@pytest.mark.req("C-128", "C-126", "C-131", "C-161")
def test_m_of_100_becomes_112() -> None:
    text = matmul([100, 256], [256, 256], "FP16", [100, 256])
    for result in both(text, l0="leave"):
        assert any(
            line.endswith(
                "pl.tile.load(a, [0, 0], [112, 256], [100, 256], target_memory=pl.Mem.Mat)"
            )
            for line in lines(result)
        )
        (made,) = calls(result, "tile.matmul")
        assert (shape_of(made), valid_of(made)) == ([112, 256], [100, 256])


@pytest.mark.req("C-129", "C-130")
def test_padding_costs_nothing_on_the_way_in() -> None:
    """The DMA moves valid rows and the cube takes ceil(M / 16) passes."""
    padded = lower(matmul([100, 64], [64, 64], "FP16", [100, 64]))
    whole = lower(matmul([112, 64], [64, 64], "FP16", [112, 64]))
    assert padded.cost.cube == whole.cost.cube
    assert padded.cost.mte2 < whole.cost.mte2


@pytest.mark.req("C-133", "C-134", "C-163")
def test_a_transposed_left_operand_is_padded_on_its_columns() -> None:
    text = matmul([128, 100], [128, 64], "FP16", [100, 64], ", a_trans=True")
    result = executed(lower(text, verify=True))
    assert (
        "pl.tile.load(a, [0, 0], [128, 112], [128, 100], target_memory=pl.Mem.Mat)" in result.text
    )
    (view,) = calls(result, "tile.transpose_view")
    assert (shape_of(view), valid_of(view)) == ([112, 128], [100, 128])
    executed(optimize(text, verify=True))


@pytest.mark.req("C-135", "C-136")
@pytest.mark.parametrize(
    ("dtype", "physical"), [("INT8", 128), ("FP16", 112), ("BF16", 112), ("FP32", 112)]
)
def test_the_granularity_of_a_transposed_m(dtype: str, physical: int) -> None:
    total = "INT32" if dtype == "INT8" else "FP32"
    text = matmul([64, 100], [64, 64], dtype, [100, 64], ", a_trans=True", total)
    result = executed(lower(text, verify=True))
    (load,) = loads_of(result, "a")
    (made,) = calls(result, "tile.matmul")
    assert shape_of(load) == [64, physical]
    assert shape_of(made) == [physical, 64]


@pytest.mark.req("C-154", "C-155", "C-156", "C-157", "C-158", "C-159", "C-164")
@pytest.mark.parametrize(
    ("dtype", "n", "physical"),
    [("FP32", 24, 32), ("FP16", 100, 112), ("FP16", 24, 32), ("INT8", 48, 64), ("FP32", 8, 16)],
)
def test_the_granularity_of_n(dtype: str, n: int, physical: int) -> None:
    total = "INT32" if dtype == "INT8" else "FP32"
    for result in both(matmul([64, 64], [64, n], dtype, [64, n], total=total)):
        if result.baseline is not None:
            assert_whole_boxes(result)
            continue
        (load,) = loads_of(result, "b")
        assert (shape_of(load), valid_of(load)) == ([64, physical], [64, n])


@pytest.mark.req("C-165")
def test_a_transposed_right_operand_is_padded_on_its_rows() -> None:
    text = matmul([64, 256], [100, 256], "FP16", [64, 100], ", b_trans=True")
    result = executed(lower(text, verify=True))
    (load,) = loads_of(result, "b")
    (view,) = calls(result, "tile.transpose_view")
    assert (shape_of(load), valid_of(load)) == ([112, 256], [100, 256])
    assert (shape_of(view), valid_of(view)) == ([256, 112], [256, 100])


@pytest.mark.req("C-160")
def test_m_and_n_are_aligned_apart() -> None:
    result = lower(matmul([100, 64], [64, 48], "INT8", [100, 48], total="INT32"), verify=True)
    (made,) = calls(result, "tile.matmul")
    assert shape_of(made) == [112, 64]


@pytest.mark.req("C-131", "C-166")
def test_padding_is_never_stored() -> None:
    """The destination is larger than the product; what is around it stays."""
    body = "y = pl.matmul(a, b, out_dtype=pl.FP32)\no = pl.assemble(dst, y, [3, 16])\nreturn o"
    params = {
        "a": tensor([100, 64], "FP16"),
        "b": tensor([64, 100], "FP16"),
        "dst": inout([120, 128], "FP32"),
    }
    for result in both(kernel(params, body, tensor([120, 128], "FP32"))):
        (store,) = stores(result)
        assert list(store.args[0].type.valid_shape) == [100, 100]
        assert result.comparison.poison_after == 0


@pytest.mark.req("C-140")
def test_a_written_operand_is_padded_at_the_call() -> None:
    body = """
y = pl.matmul(a, b, out_dtype=pl.FP32)
o = pl.assemble(dst, y, [0, 0])
pl.tensor.write(a, [0, 0], pl.const(1.0, pl.FP16))
return o"""
    params = {
        "a": inout([100, 256], "FP16"),
        "b": tensor([256, 64], "FP16"),
        "dst": out([100, 64], "FP32"),
    }
    for result in both(kernel(params, body, tensor([100, 64], "FP32"))):
        (load,) = loads_of(result, "a")
        assert (shape_of(load), valid_of(load)) == ([112, 256], [100, 256])


@pytest.mark.req("C-139", "C-141")
def test_a_slice_is_padded() -> None:
    body = "s = pl.slice(a, [100, 64], [0, 64])\ny = pl.matmul(s, b, out_dtype=pl.FP32)\nreturn y"
    params = {"a": tensor([100, 128], "FP16"), "b": tensor([64, 64], "FP16")}
    for result in both(kernel(params, body, tensor([100, 64], "FP32"))):
        assert "pl.tile.load(a, [0, 64], [112, 64], [100, 64]" in result.text


@pytest.mark.req("C-139", "C-142")
def test_a_narrowed_parameter_is_padded_to_its_own_shape() -> None:
    body = "s = pl.set_validshape(a, 90, 256)\ny = pl.matmul(s, b, out_dtype=pl.FP32)\nreturn y"
    params = {"a": tensor([100, 256], "FP16"), "b": tensor([256, 64], "FP16")}
    for result in both(kernel(params, body, tensor([100, 64], "FP32"))):
        (load,) = loads_of(result, "a")
        assert (shape_of(load), valid_of(load)) == ([112, 256], [90, 256])


@pytest.mark.req("C-139", "C-143", "C-147", "C-148", "C-152", "C-153", "C-162")
def test_a_created_accumulator() -> None:
    body = "acc = pl.create_tensor([100, 64], pl.FP32)\nc = pl.matmul_acc(acc, a, b)\nreturn c"
    params = {"a": tensor([100, 128], "FP16"), "b": tensor([128, 64], "FP16")}
    for result in both(kernel(params, body, tensor([100, 64], "FP32"))):
        text = [line.split(" = ")[1] for line in lines(result) if " = pl.tile." in line]
        assert (
            "pl.tile.create([112, 64], dtype=pl.FP32, target_memory=pl.Mem.Acc, compact=True)"
            in text
        )
        assert "pl.tile.set_validshape(acc_storage, 100, 64)" in text
        (load,) = loads_of(result, "a")
        assert (shape_of(load), valid_of(load)) == ([112, 128], [100, 128])
        (made,) = calls(result, "tile.matmul_acc")
        assert (shape_of(made), valid_of(made)) == ([112, 64], [100, 64])


@pytest.mark.req("C-144", "C-171")
def test_a_producer_with_a_vector_consumer_is_not_padded() -> None:
    """The reference shares one tile, which no cube can read; optimize loads twice."""
    body = """
t = pl.slice(a, [100, 64], [0, 0])
y = pl.matmul(t, b, out_dtype=pl.FP32)
z = pl.add(t, c)
return y, z"""
    params = {
        "a": tensor([100, 128], "FP16"),
        "b": tensor([64, 32], "FP16"),
        "c": tensor([100, 64], "FP16"),
    }
    arrow = f"tuple[{tensor([100, 32], 'FP32')}, {tensor([100, 64], 'FP16')}]"
    text = kernel(params, body, arrow)
    with pytest.raises(AlignmentError) as caught:
        lower(text)
    for part in ("'a'", "100", "16"):
        assert part in caught.value.message
    best = executed(optimize(text, verify=True))
    spaces = sorted(load.type.space.value for load in loads_of(best, "a"))
    assert spaces == ["Mat", "Vec"]
    assert best.baseline_refused.startswith("E402")


@pytest.mark.req("C-144")
def test_a_producer_of_two_products_is_padded() -> None:
    body = """
t = pl.slice(a, [100, 64], [0, 0])
y = pl.matmul(t, b, out_dtype=pl.FP32)
z = pl.matmul(t, c, out_dtype=pl.FP32)
return y, z"""
    params = {
        "a": tensor([100, 128], "FP16"),
        "b": tensor([64, 32], "FP16"),
        "c": tensor([64, 48], "FP16"),
    }
    arrow = f"tuple[{tensor([100, 32], 'FP32')}, {tensor([100, 48], 'FP32')}]"
    for result in both(kernel(params, body, arrow)):
        (load,) = loads_of(result, "a")
        assert (shape_of(load), valid_of(load)) == ([112, 64], [100, 64])


@pytest.mark.req("C-169")
def test_batches_keep_their_m() -> None:
    a, b, c = ([4, 100, 64], [4, 64, 32], [4, 100, 32])
    for result in both(matmul(a, b, "FP16", c)):
        (made,) = calls(result, "tile.batch_matmul")
        assert shape_of(made) == c
        (load,) = loads_of(result, "a")
        assert shape_of(load) == a


@pytest.mark.req("C-169", "C-171")
def test_a_batch_that_does_not_pack_is_refused() -> None:
    """Three times 100 rows are not whole fractals."""
    text = matmul([3, 100, 64], [3, 64, 32], "FP16", [3, 100, 32])
    for make in (lower, optimize):
        with pytest.raises(LoweringError) as caught:
            make(text)
        assert "100" in caught.value.message
        assert "16" in caught.value.message


@pytest.mark.req("C-170", "C-171")
@pytest.mark.parametrize("axis", ["M", "N", "K"])
def test_dynamic_extents_are_not_rounded(axis: str) -> None:
    m, n, k = (("D" if axis == a else 64) for a in "MNK")
    text = program(
        function(
            {"a": tensor([m, k], "FP16"), "b": tensor([k, n], "FP16")},
            "y = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn y",
            tensor([m, n], "FP32"),
        ),
        before='D = pl.dynamic("D")',
    )
    for make in (lower, optimize):
        with pytest.raises(LoweringError) as caught:
            make(text)
        for part in ("'a'", "'b'", f"{axis} = ", "D", "constant"):
            assert part in caught.value.message
        assert "valid_shape" in caught.value.hint


@pytest.mark.req("C-170", "C-128")
def test_a_runtime_extent_in_a_constant_window() -> None:
    body = """
w = pl.slice(a, [64, 128], [0, 0], [rows, 128])
y = pl.matmul(w, b, out_dtype=pl.FP32)
return y"""
    params = {
        "a": tensor([64, 128], "FP16"),
        "b": tensor([128, 32], "FP16"),
        "rows": "pl.Scalar[pl.INDEX]",
    }
    for result in both(kernel(params, body, tensor([64, 32], "FP32"))):
        assert "[64, 128], [rows, 128], target_memory=pl.Mem.Mat" in result.text


@pytest.mark.req("C-132")
def test_boxes_of_the_optimizer_stay_16_aligned() -> None:
    result = optimize(matmul([100, 64], [64, 100], "FP16", [100, 100]), verify=True)
    (made,) = calls(result, "tile.matmul")
    assert all(extent % 16 == 0 for extent in shape_of(made))
    assert made.type.space is Mem.Acc
