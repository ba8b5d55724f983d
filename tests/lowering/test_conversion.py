"""Conversion of a body: the examples of the conversion document, executed and read line by line."""

from __future__ import annotations

import pytest
from kernels import (
    both,
    calls,
    executed,
    function,
    incore,
    kernel,
    lines,
    loads_of,
    loops,
    ops,
    out,
    program,
    shape_of,
    stores,
    tensor,
    tiles,
    valid_of,
)

from pypto_egg import lower, optimize
from pypto_egg.errors import LoweringError, VerifyError
from pypto_egg.ir.enums import FunctionType, Mem
from pypto_egg.ir.expr import Var
from pypto_egg.ir.types import TensorType, TileType
from pypto_egg.verify import verify_program

V64 = tensor([64], "FP32")
AB = {"a": tensor([64, 128], "FP16"), "b": tensor([64, 32], "FP16")}


@pytest.mark.req("C-002", "C-003", "C-014", "C-025", "C-032", "C-040", "C-041", "C-103", "C-104")
def test_the_reference_example() -> None:
    """Explicit target_memory and the four-argument load are how we print what PyPTO infers."""
    text = program(
        function({"x": V64}, "y = pl.add(x, x)\nreturn y", V64, name="main_incore_0"),
        function({"x": V64}, "y = self.main_incore_0(x)\nreturn y", V64, "main", "Orchestration"),
    )
    for result in both(text):
        assert lines(result)[6:] == [
            "def main_incore_0(x: pl.Tensor[[64], pl.FP32], "
            "ret0__out: pl.Out[pl.Tensor[[64], pl.FP32]]) -> pl.Tensor[[64], pl.FP32]:",
            "x__tile: pl.Tile[[64], pl.FP32, pl.Mem.Vec] = "
            "pl.tile.load(x, [0], [64], [64], target_memory=pl.Mem.Vec)",
            "y__tile: pl.Tile[[64], pl.FP32, pl.Mem.Vec] = pl.tile.add(x__tile, x__tile)",
            "ret0__store: pl.Tensor[[64], pl.FP32] = pl.tile.store(y__tile, [0], ret0__out)",
            "return ret0__store",
            "@pl.function(type=pl.FunctionType.Orchestration, level=pl.Level.CHIP, "
            "role=pl.Role.Orchestrator)",
            "def main(self, x: pl.Tensor[[64], pl.FP32]) -> pl.Tensor[[64], pl.FP32]:",
            "ret0__out: pl.Tensor[[64], pl.FP32] = "
            "pl.tensor.create([64], dtype=pl.FP32, layout=pl.TensorLayout.ND)",
            "y: pl.Tensor[[64], pl.FP32] = self.main_incore_0(x, ret0__out)",
            "return y",
        ]  # fmt: skip


@pytest.mark.req("C-004")
def test_a_second_definition_is_refused() -> None:
    text = kernel({"x": V64}, "y = pl.add(x, x)\ny = pl.mul(y, y)\nreturn y", V64)
    with pytest.raises(VerifyError, match="SSAForm"):
        lower(text)
    both(kernel({"x": V64}, "y0 = pl.add(x, x)\ny1 = pl.mul(y0, y0)\nreturn y1", V64))


@pytest.mark.req("C-006")
def test_a_nested_call_is_refused() -> None:
    with pytest.raises(VerifyError, match="NormalizedStmtStructure"):
        lower(kernel({"x": V64}, "y = pl.add(pl.mul(x, x), x)\nreturn y", V64))


@pytest.mark.req("C-005")
def test_an_inline_incore_scope_is_refused() -> None:
    text = program(
        function(
            {"x": V64},
            "with pl.at(level=pl.Level.CORE_GROUP):\n    y = pl.add(x, x)\nreturn y",
            V64, "main", "Orchestration",
        )
    )  # fmt: skip
    with pytest.raises(VerifyError, match="SplitIncoreOrch"):
        lower(text)


@pytest.mark.req("C-010", "C-013")
def test_no_tensor_computation_is_left() -> None:
    body = "s = pl.exp(x)\nt = pl.transpose(s, 0, 1)\nu = pl.row_max(t)\nreturn u"
    for result in both(kernel({"x": tensor([16, 32], "FP32")}, body, tensor([32, 1], "FP32"))):
        assert not [op for op in ops(result) if op.startswith("tensor.")]
        verify_program(result.program, stage="tile")


@pytest.mark.req("C-015", "C-016")
def test_a_slice_that_feeds_a_matmul_is_loaded_into_mat() -> None:
    body = "s = pl.slice(a, [32, 64], [16, 0])\ny = pl.matmul(s, b, out_dtype=pl.FP32)\nreturn y"
    for result in both(kernel(AB, body, tensor([32, 32], "FP32"))):
        (line,) = [text for text in lines(result) if text.startswith("s__tile")]
        assert line.endswith(
            "pl.tile.load(a, [16, 0], [32, 64], [32, 64], target_memory=pl.Mem.Mat)"
        )
        assert Mem.Vec not in [type_.space for _, type_ in tiles(result)]


@pytest.mark.req("C-017", "C-122")
def test_a_slice_that_feeds_a_matmul_acc_is_loaded_into_mat() -> None:
    body = """
acc0 = pl.matmul(s0, b, out_dtype=pl.FP32)
s = pl.slice(a, [32, 64], [0, 64])
acc = pl.matmul_acc(acc0, s, b)
return acc"""
    params = {**AB, "s0": tensor([32, 64], "FP16")}
    for result in both(kernel(params, body, tensor([32, 32], "FP32"))):
        (load,) = loads_of(result, "a")
        assert (shape_of(load), load.kwarg("target_memory")) == ([32, 64], Mem.Mat)
        assert "[0, 64], [32, 64]" in next(t for t in lines(result) if "load(a" in t)


@pytest.mark.req("C-122")
def test_a_slice_for_a_vector_op_is_the_window_of_its_load() -> None:
    body = "s = pl.slice(x, [16, 16], [0, 16])\ny = pl.exp(s)\nreturn y"
    for result in both(kernel({"x": tensor([16, 32], "FP32")}, body, tensor([16, 16], "FP32"))):
        (load,) = loads_of(result, "x")
        assert shape_of(load) == [16, 16]
        assert "pl.tile.load(x, [0, 16], [16, 16], [16, 16]" in result.text


@pytest.mark.req("C-019", "C-134")
def test_a_transposed_operand_is_a_natural_load_and_a_view() -> None:
    params = {"a": tensor([32, 256], "FP16"), "b": tensor([64, 256], "FP16")}
    body = "y = pl.matmul(a, b, b_trans=True, out_dtype=pl.FP32)\nreturn y"
    result = executed(lower(kernel(params, body, tensor([32, 64], "FP32")), verify=True))
    (load,) = loads_of(result, "b")
    assert (shape_of(load), load.kwarg("target_memory")) == ([64, 256], Mem.Mat)
    (view,) = calls(result, "tile.transpose_view")
    assert shape_of(view) == [256, 64]


METADATA = {
    "slice": "s = pl.slice(a, [64, 64], [0, 64])",
    "view": "s = pl.tensor.view(a, [128, 64])",
    "reshape": "s = pl.reshape(a, [128, 64])",
    "set_validshape": "s = pl.set_validshape(a, 50, 128)",
}


@pytest.mark.req("C-020", "C-021")
@pytest.mark.parametrize("op", METADATA)
def test_demand_passes_through_metadata_ops(op: str) -> None:
    rows = {"slice": 64, "view": 128, "reshape": 128}.get(op, 64)
    depth = 64 if op in ("slice", "view", "reshape") else 128
    params = {"a": tensor([64, 128], "FP16"), "b": tensor([depth, 32], "FP16")}
    body = f"{METADATA[op]}\ny = pl.matmul(s, b, out_dtype=pl.FP32)\nreturn y"
    for result in both(kernel(params, body, tensor([rows, 32], "FP32")), l0="leave"):
        assert "tile.move" not in ops(result)
        assert {type_.space for _, type_ in tiles(result)} <= {Mem.Mat, Mem.Acc}


@pytest.mark.req("C-020", "C-142")
def test_demand_passes_through_a_chain_of_metadata_ops() -> None:
    body = """
s = pl.slice(a, [64, 64], [0, 64])
t = pl.set_validshape(s, rows, 64)
y = pl.matmul(t, b, out_dtype=pl.FP32)
return y"""
    text = kernel({**AB, "rows": "pl.Scalar[pl.INDEX]"}, body, tensor([64, 32], "FP32"))
    for result in both(text):
        (load,) = loads_of(result, "a")
        assert load.kwarg("target_memory") is Mem.Mat
        assert "[0, 64], [64, 64], [rows, 64]" in result.text
        assert "tile.move" not in ops(result)


@pytest.mark.req("C-115", "C-116", "C-117", "C-118")
def test_no_load_fills_l0() -> None:
    body = """
y = pl.matmul(a, b, out_dtype=pl.FP32)
z = pl.tensor.col_expand_add(y, bias)
r = pl.exp(z)
return r"""
    params = {
        "a": tensor([32, 64], "FP16"),
        "b": tensor([64, 32], "FP16"),
        "bias": tensor([1, 32], "FP32"),
    }
    for result in both(kernel(params, body, tensor([32, 32], "FP32"))):
        assert {c.type.space for c in calls(result, "tile.load")} <= {Mem.Mat, Mem.Vec}


@pytest.mark.req("C-027", "C-033", "C-036")
def test_a_read_only_parameter_is_loaded_once() -> None:
    body = "y = pl.add(x, x)\nz = pl.mul(x, y)\nreturn z"
    for result in both(kernel({"x": V64}, body, V64)):
        assert ops(result) == ["tile.load", "tile.add", "tile.mul", "tile.store"]


@pytest.mark.req("C-035", "C-045")
def test_assemble_into_gm_is_a_store() -> None:
    params = {"x": tensor([16, 32], "FP32"), "dst": out([16, 64], "FP32")}
    body = "t = pl.exp(x)\no = pl.assemble(dst, t, [0, 32])\nreturn o"
    for result in both(kernel(params, body, tensor([16, 64], "FP32"))):
        assert loads_of(result, "dst") == []
        assert "pl.tile.store(t__tile, [0, 32], dst)" in result.text
        assert len(incore(result).params) == 2


@pytest.mark.req("C-037")
def test_a_gm_handle_carried_through_writes_stays_gm() -> None:
    params = {"x": tensor([1, 32], "FP32"), "dst": out([4, 32], "FP32")}
    body = """
for i, (o,) in pl.range(4, init_values=(dst,)):
    t = pl.exp(x)
    o2 = pl.assemble(o, t, [i, 0])
    r = pl.yield_(o2)
return r"""
    for result in both(kernel(params, body, tensor([4, 32], "FP32"))):
        (loop,) = loops(result)
        assert isinstance(loop.iter_args[0].type, TensorType)
        assert isinstance(loop.results[0].type, TensorType)
        assert len(stores(result)) == 1


@pytest.mark.req("C-038")
def test_a_computed_carry_is_a_tile_of_one_type() -> None:
    body = """
z = pl.full([64], dtype=pl.FP32, value=0.0)
for i, (s,) in pl.range(4, init_values=(z,)):
    s2 = pl.add(s, x)
    r = pl.yield_(s2)
return r"""
    for result in both(kernel({"x": V64}, body, V64)):
        (loop,) = loops(result)
        (init,) = loop.inits
        types = {init.type, loop.iter_args[0].type, loop.results[0].type}
        assert len(types) == 1
        (type_,) = types
        assert isinstance(type_, TileType)
        assert list(type_.shape) == [64]
        assert "pl.tile.add(s, x__tile)" in result.text


@pytest.mark.req("C-039")
def test_both_arms_yield_the_same_tile_type() -> None:
    body = """
if n > 2:
    a = pl.add(x, x)
    r = pl.yield_(a)
else:
    b = pl.mul(x, x)
    r = pl.yield_(b)
return r"""
    for result in both(kernel({"x": V64, "n": "pl.Scalar[pl.INDEX]"}, body, V64)):
        yielded = [type_ for name, type_ in tiles(result) if name in ("a__tile", "b__tile", "r")]
        assert len(yielded) >= 3
        assert set(yielded) == {yielded[0]}
        assert len(stores(result)) == 1


@pytest.mark.req("C-040")
def test_each_converted_result_gets_an_out_parameter() -> None:
    body = "y = pl.exp(x)\nz = pl.row_max(x)\nreturn y, z"
    text = kernel(
        {"x": tensor([16, 32], "FP32")}, body,
        f"tuple[{tensor([16, 32], 'FP32')}, {tensor([16, 1], 'FP32')}]",
    )  # fmt: skip
    for result in both(text):
        names = [p.var.name for p in incore(result).params]
        assert names == ["x", "ret0__out", "ret1__out"]
        assert [list(p.var.type.shape) for p in incore(result).params[1:]] == [[16, 32], [16, 1]]
        assert [p.direction.value for p in incore(result).params] == ["In", "Out", "Out"]


@pytest.mark.req("C-106", "C-058")
def test_a_function_that_returns_its_parameter_gains_none() -> None:
    body = "r = pl.row_max(x)\nreturn x"
    for result in both(kernel({"x": tensor([16, 32], "FP32")}, body, tensor([16, 32], "FP32"))):
        (only,) = incore(result).params
        assert only.var.name == "x"
        assert ops(result) == []


@pytest.mark.req("C-107", "C-113")
@pytest.mark.parametrize("rank", [2, 3])
def test_matmul_dispatches_by_rank(rank: int) -> None:
    lead = [4][: rank - 2]
    params = {"a": tensor([*lead, 32, 64], "FP16"), "b": tensor([*lead, 64, 32], "FP16")}
    body = "y = pl.matmul(a, b, out_dtype=pl.FP32)\nreturn y"
    for result in both(kernel(params, body, tensor([*lead, 32, 32], "FP32"))):
        assert [op for op in ops(result) if "matmul" in op] == [
            "tile.matmul" if rank == 2 else "tile.batch_matmul"
        ]
        assert all(c.kwarg("target_memory") is Mem.Mat for c in calls(result, "tile.load"))


@pytest.mark.req("C-149")
def test_a_created_buffer_for_vector_ops_is_in_vec() -> None:
    body = "t = pl.create_tensor([16, 16], pl.FP32)\nu = pl.assemble(t, x, [0, 0])\nreturn u"
    x = tensor([16, 16], "FP32")
    result = executed(lower(kernel({"x": x}, f"{body[:-8]}v = pl.add(u, x)\nreturn v", x),
                            verify=True))  # fmt: skip
    (create,) = calls(result, "tile.create")
    assert create.type.space is Mem.Vec
    assert "compact" not in dict(create.kwargs)


@pytest.mark.req("C-172", "C-177")
def test_transpose_has_its_semantic_operands_only() -> None:
    body = "s = pl.exp(x)\ny = pl.transpose(s, 0, 1)\nreturn y"
    for result in both(kernel({"x": tensor([16, 32], "FP16")}, body, tensor([32, 16], "FP16"))):
        (made,) = calls(result, "tile.transpose")
        assert len(made.args) == 3
        assert (shape_of(made), valid_of(made)) == ([32, 16], [32, 16])


@pytest.mark.req("C-008")
def test_functions_that_hold_no_tensor_work_are_unchanged() -> None:
    tile = """
t = pl.load(x, [0, 0], [16, 32])
u = pl.tile.exp(t)
r = pl.store(u, [0, 0], o)
return r"""
    f = tensor([16, 32], "FP32")
    text = kernel({"x": f, "o": out([16, 32], "FP32")}, tile, f)
    result = optimize(text)
    assert result.functions == ()
    assert incore(result) == incore(result.source)


@pytest.mark.req("C-105")
def test_types_of_functions_stay() -> None:
    text = program(function({"x": V64}, "y = pl.add(x, x)\nreturn y", V64))
    assert incore(lower(text)).type is FunctionType.InCore


def test_names_come_from_the_source() -> None:
    body = "my_sum = pl.add(long_name, _y)\nreturn my_sum"
    for result in both(kernel({"long_name": V64, "_y": V64}, body, V64)):
        made = [s.args[0] for s in stores(result)]
        assert [v.name for v in made if isinstance(v, Var)] == ["my_sum__tile"]
        assert "long_name__tile" in result.text
        assert "_y__tile" in result.text


@pytest.mark.req("C-042", "C-043")
def test_a_returned_assemble_loop_stores_its_parts() -> None:
    """Part by part into the output; nothing of the whole is ever on chip."""
    body = """
z = pl.create_tensor([64, 32], pl.FP32)
for i, (acc,) in pl.range(4, init_values=(z,)):
    s = pl.slice(x, [16, 32], [16 * i, 0])
    t = pl.mul(s, 2.0)
    acc2 = pl.assemble(acc, t, [16 * i, 0])
    r = pl.yield_(acc2)
return r"""
    f = tensor([64, 32], "FP32")
    for result in both(kernel({"x": f}, body, f)):
        (loop,) = loops(result)
        (init,) = loop.inits
        assert isinstance(init, Var)
        assert init.name == "ret0__out"
        assert isinstance(loop.results[0].type, TensorType)
        assert "tile.assemble" not in ops(result)
        assert "tile.create" not in ops(result)
        (store,) = stores(result)
        assert store.args[2] is loop.iter_args[0]


@pytest.mark.req("C-031")
def test_a_loaded_parameter_keeps_its_identity() -> None:
    f = tensor([16, 32], "FP32")
    for result in both(kernel({"x": f}, "y = pl.exp(x)\nreturn y, x", f"tuple[{f}, {f}]")):
        assert lines(result)[-1] == "return ret0__store, x"
        assert isinstance(incore(result).params[0].var.type, TensorType)


def test_a_computed_result_returned_from_a_branch_is_refused() -> None:
    body = "y = pl.exp(x)\nif n > 1:\n    return y\nreturn y"
    params = {"x": tensor([16, 32], "FP32"), "n": "pl.Scalar[pl.INDEX]"}
    for make in (lower, optimize):
        with pytest.raises(
            LoweringError, match="'y' is computed and returned from inside"
        ) as caught:
            make(kernel(params, body, tensor([16, 32], "FP32")))
        assert caught.value.span is not None
