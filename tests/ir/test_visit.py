"""Walking statements and expressions, and replacing variables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pypto_egg.ir.dtype import BOOL, FP32, INDEX
from pypto_egg.ir.enums import LoopKind, Mem
from pypto_egg.ir.expr import (
    BinOp,
    Call,
    Cast,
    ConstBool,
    ConstInt,
    Expr,
    FunctionCall,
    TupleItem,
    UnOp,
    Var,
    tuple_of,
)
from pypto_egg.ir.stmt import Assign, Block, Eval, For, If, Return, Scope, While, Yield
from pypto_egg.ir.types import (
    MemRef,
    ScalarType,
    TensorView,
    TileView,
    TupleType,
    tensor_type,
    tile_type,
)
from pypto_egg.ir.visit import (
    defined_by,
    defined_inside,
    expressions_of,
    free_vars,
    subexpressions,
    substitute,
    substitute_block,
    substitute_type,
    type_vars,
    walk,
)

SCALAR = ScalarType(INDEX)
N, M, K = (Var(name, SCALAR) for name in "nmk")
TENSOR = tensor_type((16, 32), FP32)
X, Y, Z = (Var(name, TENSOR) for name in "xyz")


def add(lhs: Expr, rhs: Expr) -> BinOp:
    return BinOp("+", lhs, rhs, INDEX)


def call(op: str, *args: Expr, **kwargs: object) -> Call:
    return Call(op, args, tuple(kwargs.items()), TENSOR)


def scalars(variables: tuple[Var, ...]) -> st.SearchStrategy[Expr]:
    leaves = st.one_of(st.sampled_from(variables), st.integers(-9, 9).map(ConstInt))
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(add, inner, inner),
            st.builds(lambda e: UnOp("-", e, INDEX), inner),
            st.builds(lambda e: Cast(e, INDEX), inner),
        ),
        max_leaves=12,
    )


def test_operands_come_before_what_uses_them() -> None:
    inner = add(N, M)
    outer = add(inner, K)
    assert list(subexpressions(outer)) == [N, M, inner, K, outer]


def test_free_variables_are_listed_once_in_order_of_occurrence() -> None:
    assert free_vars(add(add(M, N), add(M, K))) == (M, N, K)
    assert free_vars(ConstInt(3)) == ()


def test_keyword_arguments_and_attributes_hold_variables_too() -> None:
    submitted = FunctionCall(
        "f", (X,), TENSOR, kwargs=(("device", N),), attrs=(("dump_vars", (Y, Z)),)
    )
    assert free_vars(submitted) == (X, N, Y, Z)
    changed = substitute(submitted, {N: M, Z: X})
    assert free_vars(changed) == (X, M, Y)


def test_variables_with_equal_names_stay_apart() -> None:
    other = Var("n", SCALAR)
    assert substitute(add(N, other), {N: ConstInt(1)}) == add(ConstInt(1), other)


def test_a_deep_expression_needs_no_deep_stack() -> None:
    deep: Expr = N
    for _ in range(5000):
        deep = add(deep, ConstInt(1))
    assert free_vars(deep) == (N,)
    assert free_vars(substitute(deep, {N: M})) == (M,)


@given(scalars((N, M, K)))
def test_replacing_nothing_keeps_the_object(expr: Expr) -> None:
    assert substitute(expr, {}) is expr
    assert substitute(expr, {Var("other", SCALAR): N}) is expr


@given(scalars((N, M)))
def test_a_replaced_variable_is_gone(expr: Expr) -> None:
    changed = substitute(expr, {N: K})
    assert N not in free_vars(changed)
    assert (K in free_vars(changed)) == (N in free_vars(expr))
    assert substitute(changed, {K: N}) == expr


@given(scalars((N, M)))
def test_exchanging_two_variables_twice_changes_nothing(expr: Expr) -> None:
    exchange = {N: M, M: N}
    assert substitute(substitute(expr, exchange), exchange) == expr


def test_types_name_variables_in_every_field() -> None:
    tile = tile_type(
        (16, 32),
        FP32,
        Mem.Vec,
        TileView(valid_shape=(N, 32), start_offset=M),
        MemRef(("base", add(K, ConstInt(4)), 128)),
    )
    assert type_vars(tile) == (N, M, K)
    tensor = tensor_type((N, 32), FP32, TensorView(stride=(M, 1)))
    assert type_vars(TupleType((tensor, SCALAR))) == (N, M)


def test_a_dimension_that_becomes_constant_is_a_plain_int() -> None:
    tensor = tensor_type((N, 32), FP32)
    assert substitute_type(tensor, {N: ConstInt(16)}) == tensor_type((16, 32), FP32)


def test_a_valid_shape_that_becomes_full_disappears() -> None:
    tile = tile_type((16, 32), FP32, Mem.Vec, TileView(valid_shape=(N, 32)))
    assert substitute_type(tile, {N: ConstInt(16)}) == tile_type((16, 32), FP32, Mem.Vec)


def test_result_types_follow_their_operands() -> None:
    partial = tensor_type((16, 32), FP32, TensorView(valid_shape=(N, 32)))
    made = Call("tensor.exp", (X,), (), partial)
    changed = substitute(made, {X: Y, N: M})
    assert changed.type == tensor_type((16, 32), FP32, TensorView(valid_shape=(M, 32)))
    assert free_vars(changed) == (Y,)


def nest() -> tuple[Block, list[str]]:
    """A loop that holds a branch that holds a scope, and its statements' names in order."""
    scope = Scope("at", (Assign(Y, call("tensor.exp", X)),))
    branch = If(ConstBool(True), (scope, Yield((Y,))), (Yield((X,)),), (Z,))
    loop = For(LoopKind.range, N, ConstInt(0), ConstInt(4), ConstInt(1), (branch,))
    block = (loop, Return((X,)))
    return block, ["For", "If", "Scope", "Assign", "Yield", "Yield", "Return"]


def test_statements_are_walked_in_program_order() -> None:
    block, names = nest()
    assert [type(stmt).__name__ for stmt in walk(block)] == names


def test_a_long_chain_of_nested_branches_can_be_walked_and_rewritten() -> None:
    block: Block = (Eval(call("tensor.exp", X)),)
    for _ in range(3000):
        block = (If(ConstBool(True), block),)
    changed = substitute_block(block, {X: Y})
    (innermost,) = [stmt for stmt in walk(changed) if isinstance(stmt, Eval)]
    assert free_vars(innermost.value) == (Y,)


def test_loops_define_their_variable_inside_and_their_results_after() -> None:
    loop = For(LoopKind.range, N, ConstInt(0), M, ConstInt(1), (Yield((Y,)),), (Y,), (X,), (Z,))
    assert defined_inside(loop) == (N, Y)
    assert defined_by(loop) == (Z,)
    assert expressions_of(loop) == (ConstInt(0), M, ConstInt(1), X)


def test_a_while_loop_evaluates_its_condition_last() -> None:
    again = BinOp("<", N, M, BOOL)
    loop = While(again, (Yield((N,)),), (N,), (K,), (Var("r", SCALAR),))
    assert expressions_of(loop) == (K, again)


def test_a_region_handle_is_defined_after_a_lane_index_inside() -> None:
    task = Var("tid", SCALAR)
    assert defined_by(Scope("at", (), var=task)) == (task,)
    assert defined_inside(Scope("split_aiv", (), var=task)) == (task,)
    assert defined_by(Scope("split_aiv", (), var=task)) == ()


def test_replacing_in_a_block_renames_definitions_too() -> None:
    block, _ = nest()
    fresh = Var("y2", TENSOR)
    changed = substitute_block(block, {Y: fresh, X: Z})
    assigned = [stmt.var for stmt in walk(changed) if isinstance(stmt, Assign)]
    assert assigned == [fresh]
    yields = [stmt.values for stmt in walk(changed) if isinstance(stmt, Yield)]
    assert yields == [(fresh,), (Z,)]


def test_a_block_without_the_variable_is_the_same_block() -> None:
    block, _ = nest()
    other = Var("other", TENSOR)
    changed = substitute_block(block, {other: X})
    assert changed == block


def test_an_element_of_a_tuple_reads_the_tuple() -> None:
    pair = Var("pair", TupleType((TENSOR, TENSOR)))
    item = TupleItem(pair, 1)
    assert item.type == TENSOR
    assert free_vars(item) == (pair,)


@pytest.mark.parametrize("shape", [(4, 8), (N, 8)])
def test_shapes_are_operands(shape: tuple[int | Expr, ...]) -> None:
    view = call("tensor.slice", X, tuple_of(shape), tuple_of((0, M)))
    assert free_vars(view) == tuple(v for v in (X, *shape, M) if isinstance(v, Var))
