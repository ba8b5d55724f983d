"""Products that are too large for on-chip memory are made in blocks."""

from __future__ import annotations

import pytest
from kernels import assert_whole_boxes, both, calls, inout, kernel, loops, out, stores, tensor

from pypto_egg import lower, optimize, simulate
from pypto_egg.analysis.blocking import Room, blocked_functions
from pypto_egg.errors import CapacityError
from pypto_egg.extract.cost.model import CostModel, CostVector, OpInstance, cost_model
from pypto_egg.ir.enums import Mem
from pypto_egg.target.target import Target, load_target
from pypto_egg.text import parse

ACC = load_target("a2a3").capacity_bytes(Mem.Acc)
PLAIN = "c = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn c"


def product(m: int, k: int, n: int, body: str = PLAIN, dtype: str = "FP16", **more: str) -> str:
    result = more.pop("returns", tensor([m, n], "FP32"))
    params = {"a": tensor([m, k], dtype), "b": tensor([k, n], dtype)} | more
    return kernel(params, body, result)


@pytest.mark.req("C-128")
def test_the_document_s_example_is_made_in_column_blocks_on_a2a3() -> None:
    """[100, 256] @ [256, 512]: 112 rows of 512 FP32 columns are 229376 bytes, Acc has 131072."""
    for result in both(product(100, 256, 512), l0="leave"):
        assert len(loops(result)) == len(stores(result)) == 1
        assert {call.type.shape for call in calls(result, "tile.matmul")} == {(112, 256)}
        assert_whole_boxes(result)


def test_a5_has_room_for_the_same_example() -> None:
    for result in both(product(100, 256, 512), target="a5", l0="leave"):
        assert not loops(result)


def test_operands_that_do_not_fit_are_summed_over_blocks_of_k() -> None:
    for result in both(product(128, 4096, 256)):
        assert calls(result, "tile.matmul_acc")
        assert any(loop.kind.value == "pipeline" for loop in loops(result))


def test_rows_and_columns_in_blocks() -> None:
    for result in both(product(512, 256, 512), l0="leave"):
        assert len(loops(result)) == 2


@pytest.mark.parametrize("shape", [(256, 128, 512), (512, 64, 272), (128, 4096, 512)])
def test_bias_and_residual_are_added_block_by_block(shape: tuple[int, ...]) -> None:
    m, k, n = shape
    body = (
        "c = pl.matmul(a, b, out_dtype=pl.FP32)\nd = pl.col_expand_add(c, bias)\n"
        "e = pl.add(d, r)\nreturn e"
    )
    more = {"bias": tensor([1, n], "FP32"), "r": tensor([m, n], "FP32")}
    for result in both(product(m, k, n, body, **more)):
        assert loops(result)


@pytest.mark.parametrize(
    "shape", [(512, 256, 512), (1024, 256, 64), (64, 256, 2048), (512, 4096, 512)], ids=str
)
def test_the_innermost_loop_that_loads_has_two_blocks_in_flight(shape: tuple[int, ...]) -> None:
    m, k, n = shape
    for result in both(product(m, k, n), l0="leave"):
        *around, innermost = loops(result)
        assert {loop.kind.value for loop in around} <= {"range"}
        assert (innermost.kind.value, innermost.attrs) == ("pipeline", (("stage", 2),))


def test_a_block_is_loaded_while_the_one_before_is_multiplied() -> None:
    result = lower(product(128, 256, 2048), cost_model="schedule", verify=False)
    timeline = simulate(result.program, "a2a3", "device")
    start = timeline.of("cube")[0].start
    loads = [load for load in timeline.of("mte2") if load.start > start]
    assert loads
    for load in loads:
        assert any(c.start < load.end and load.start < c.end for c in timeline.of("cube"))


@pytest.mark.parametrize("row", [0, 16])
def test_elementwise_ops_and_the_store_are_made_for_each_block(row: int) -> None:
    body = f"""
c = pl.matmul(a, b, out_dtype=pl.FP32)
d = pl.cast(c, pl.FP16, mode='rint')
h = pl.assemble(o, d, [{row}, 0])
return h"""
    target = out([128, 512], "FP16")
    both(product(112, 128, 512, body, o=target, returns=tensor([128, 512], "FP16")))


@pytest.mark.parametrize("step", ["pl.maximum(c, 0.0)", "pl.mul(c, 0.5)", "pl.minimum(c, s)"])
def test_the_other_operand_of_an_elementwise_op_may_be_a_scalar(step: str) -> None:
    body = f"c = pl.matmul(a, b, out_dtype=pl.FP32)\nd = {step}\nreturn d"
    for result in both(product(512, 256, 512, body, s="pl.Scalar[pl.FP32]")):
        assert loops(result)


def test_the_other_operand_of_an_elementwise_op_may_be_no_value_of_the_kernel() -> None:
    body = "x = pl.exp(e)\nc = pl.matmul(a, b, out_dtype=pl.FP32)\nd = pl.add(c, x)\nreturn d"
    for make in (lower, optimize):
        with pytest.raises(CapacityError, match="ops of it, scalars and parameters"):
            make(product(512, 256, 512, body, e=tensor([512, 512], "FP32")))


def test_blocks_are_added_to_memory_where_the_whole_was() -> None:
    """Each element is added once, however K is cut."""
    body = """
c = pl.matmul(a, b, out_dtype=pl.FP32)
r = pl.assemble(o, c, [16, 0], atomic=pl.AtomicType.Add)
return r"""
    target = inout([144, 512], "FP32")
    text = product(128, 2048, 512, body, o=target, returns=tensor([144, 512], "FP32"))
    for result in both(text):
        assert loops(result)
        assert all("atomic" in dict(store.kwargs) for store in stores(result))


@pytest.mark.parametrize("flags", ["a_trans=True", "b_trans=True", "a_trans=True, b_trans=True"])
def test_transposed_operands(flags: str) -> None:
    a = [256, 128] if "a_trans" in flags else [128, 256]
    b = [512, 256] if "b_trans" in flags else [256, 512]
    body = f"c = pl.matmul(a, b, {flags}, out_dtype=pl.FP32)\nreturn c"
    params = {"a": tensor(a, "FP16"), "b": tensor(b, "FP16")}
    both(kernel(params, body, tensor([128, 512], "FP32")))


def test_integers_are_summed_in_int32() -> None:
    body = "c = pl.matmul(a, b, out_dtype=pl.INT32)\nreturn c"
    both(product(128, 256, 512, body, "INT8", returns=tensor([128, 512], "INT32")))


def test_two_products_in_one_function() -> None:
    body = """
c = pl.matmul(a, b, out_dtype=pl.FP32)
d = pl.matmul(e, b, out_dtype=pl.FP32)
return c, d"""
    wide = tensor([128, 512], "FP32")
    text = product(
        128, 64, 512, body, e=tensor([128, 64], "FP16"), returns=f"tuple[{wide}, {wide}]"
    )
    for result in both(text):
        assert len(loops(result)) == 2


def test_a_product_with_another_consumer_is_refused_with_its_size() -> None:
    body = "c = pl.matmul(a, b, out_dtype=pl.FP32)\nr = pl.row_max(c)\nreturn r"
    text = product(512, 64, 512, body, returns=tensor([512, 1], "FP32"))
    for make in (lower, optimize):
        with pytest.raises(CapacityError, match=r"1048576 bytes.*'c' is not made in blocks"):
            make(text)


@pytest.mark.parametrize(
    "body",
    [
        "p = pl.matmul(x, w, out_dtype=pl.FP32)\nr = pl.assemble(x, p, [0, 0])\nreturn r",
        "p = pl.matmul(x, w, out_dtype=pl.FP32)\nh = pl.assemble(x, g, [0, 0])\nreturn p",
        "v = x[0:512, :]\np = pl.matmul(v, w, out_dtype=pl.FP32)\n"
        "h = pl.assemble(x, g, [0, 0])\nreturn p",
    ],
)
def test_no_blocks_of_memory_that_is_written(body: str) -> None:
    """Later blocks would be loaded after earlier ones were stored."""
    square = tensor([512, 512], "FP32")
    params = {"x": inout([512, 512], "FP32"), "w": square, "g": tensor([16, 512], "FP32")}
    for make in (lower, optimize):
        with pytest.raises(CapacityError, match=r"blocks of '[xv]' would be loaded while"):
            make(kernel(params, body, square))


@pytest.mark.parametrize(
    "body",
    [
        "y = pl.assemble(x, g, [0, 0])\np = pl.matmul(y, w, out_dtype=pl.FP32)\nreturn p",
        "y = pl.assemble(x, g, [0, 0])\np = pl.matmul(y, w, out_dtype=pl.FP32)\n"
        "h = pl.assemble(o, p, [0, 0])\nz = pl.assemble(y, g, [16, 0])\nreturn h",
    ],
)
def test_blocks_of_memory_that_is_written_at_other_times(body: str) -> None:
    square = tensor([512, 512], "FP32")
    params = {"x": inout([512, 512], "FP32"), "w": square, "g": tensor([16, 512], "FP32"),
              "o": out([512, 512], "FP32")}  # fmt: skip
    for result in both(kernel(params, body, square)):
        (product,) = calls(result, "tile.matmul") + calls(result, "tile.matmul_acc")
        assert product.type.shape[0] < 512


def test_a_single_column_is_not_made_in_blocks() -> None:
    for make in (lower, optimize):
        with pytest.raises(CapacityError, match="single column"):
            make(product(256, 4096, 1, dtype="FP32"))


def test_a_result_that_is_one_matrix_of_many() -> None:
    many = tensor([2, 128, 512], "FP32")
    body = "c = pl.matmul(a, b, out_dtype=pl.FP32)\nh = pl.assemble(o, c, [1, 0, 0])\nreturn h"
    both(product(128, 64, 512, body, o=out([2, 128, 512], "FP32"), returns=many))


@pytest.mark.parametrize("shape", [(257, 64, 521), (200, 2064, 272)])
def test_extents_that_are_no_whole_blocks_have_their_rest_peeled(shape: tuple[int, ...]) -> None:
    """257 and 521 are primes; 2064 is 129 fractals."""
    m, k, n = shape
    for result in both(product(m, k, n)):
        assert loops(result)


@pytest.mark.req("C-167")
def test_n_of_sums_over_k_is_padded_by_optimize_alone() -> None:
    text = product(40, 4112, 520)
    with pytest.raises(CapacityError, match=r"in blocks: .*N = 520 is not a multiple of 16"):
        lower(text)
    assert loops(optimize(text, verify=True))


def test_no_block_is_small_enough_for_a_memory_of_one_fractal() -> None:
    small = load_target("a2a3").with_(**{"memory.Mat.usable_bytes": 512})
    with pytest.raises(CapacityError, match="M = 256, N = 256 and K = 64 have no blocks"):
        lower(product(256, 64, 256), target=small)


def test_every_blocking_offered_fits() -> None:
    room = Room(load_target("a2a3").capacity_bytes(Mem.Mat), ACC)
    source = parse(product(512, 1024, 512))
    versions = list(blocked_functions(source.functions[0], source, frozenset(), room, 6))
    assert len({str(version.function.body) for version in versions}) == 6
    result = lower(product(512, 1024, 512))
    assert result.functions[0].peak_bytes["Acc"] <= ACC


def test_a_product_that_fits_is_left_alone() -> None:
    source = parse(product(64, 64, 64))
    room = Room(2**19, ACC)
    assert list(blocked_functions(source.functions[0], source, frozenset(), room, 3)) == []


@pytest.mark.req("N-048")
def test_results_in_nz_order_keep_all_their_rows() -> None:
    """512 rows of 64 columns fill Acc; 256 x 128 would load less, but is no whole column."""
    nz = "pl.Out[pl.Tensor[[512, 512], pl.FP32, pl.NZ]]"
    body = "c = pl.matmul(a, b, out_dtype=pl.FP32)\nh = pl.assemble(o, c, [0, 0])\nreturn h"
    result = "pl.Tensor[[512, 512], pl.FP32, pl.NZ]"
    for lowered in both(product(512, 128, 512, body, o=nz, returns=result)):
        made = calls(lowered, "tile.matmul") + calls(lowered, "tile.matmul_acc")
        assert {call.type.shape[0] for call in made} == {512}


def test_parts_are_assembled_on_chip_where_stores_are_dear() -> None:
    """Under the default model a store costs by its bytes alone, so parts are stored directly."""

    class DearStores(CostModel):
        name = "dear_stores"

        def price(self, op: OpInstance, target: Target) -> CostVector:
            dear = CostVector(mte3=10_000.0)
            return dear if op.op == "tile.store" else cost_model("mte2_mad").price(op, target)

    body = """
whole = pl.create_tensor([16, 64], dtype=pl.FP32)
for i, (c,) in pl.range(16, init_values=(whole,)):
    s = pl.slice(x, [1, 64], [i, 0])
    v = pl.exp(s)
    a = pl.assemble(c, v, [i, 0])
    r = pl.yield_(a)
return r"""
    text = kernel({"x": tensor([16, 64], "FP32")}, body, tensor([16, 64], "FP32"))
    direct, on_chip = optimize(text), optimize(text, cost_model=DearStores(), verify=True)
    assert not calls(direct, "tile.assemble")
    assert calls(on_chip, "tile.assemble")
    assert on_chip.cycles < lower(text, cost_model=DearStores()).cycles


def test_blocks_of_a_product_of_any_size_are_found_in_little_memory() -> None:
    """Three axes of a million elements have 10 ** 8 blockings, of which few fit."""
    text = product(10**6, 16 * 10**5, 10**6)
    result = optimize(text, l0="leave", verify=False)
    assert len(loops(result)) >= 2
