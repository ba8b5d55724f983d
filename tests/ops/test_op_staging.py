"""Where bridge loads land is derived from the tile ops' declarations, never written down."""

import pytest

from pypto_egg.errors import InternalError, LoweringError
from pypto_egg.ir.enums import Mem
from pypto_egg.ops.registry import declared, lookup
from pypto_egg.ops.staging import (
    INPUT_REQS,
    InputSpaceReq,
    OperandSpace,
    bridge_space_of,
    operand_space_of,
    staging_space_for_load,
)


@pytest.mark.req("C-115", "C-116")
@pytest.mark.parametrize("space", [Mem.Vec, Mem.Mat])
def test_loadable_spaces_are_loaded_directly(space):
    assert staging_space_for_load(space) is space


@pytest.mark.req("C-117")
@pytest.mark.parametrize("space", [Mem.Left, Mem.Right, Mem.Bias, Mem.LeftScale, Mem.RightScale])
def test_cube_buffers_are_staged_in_mat(space):
    assert staging_space_for_load(space) is Mem.Mat


@pytest.mark.req("C-118", "C-146")
def test_nothing_is_loaded_into_an_accumulator():
    with pytest.raises(LoweringError, match="no load can provide an operand in Acc"):
        staging_space_for_load(Mem.Acc)
    with pytest.raises(InternalError, match="in Acc: no load"):
        bridge_space_of(("tile.matmul_acc",), 0)


@pytest.mark.req("C-108", "C-109", "C-112", "C-113")
def test_matmul_requirements_are_derived_from_both_products():
    both = ("tile.matmul", "tile.batch_matmul")
    lhs, rhs = INPUT_REQS["tensor.matmul"]
    assert lhs.demanded_space == bridge_space_of(both, 0)
    assert rhs.demanded_space == bridge_space_of(both, 1)
    assert (lhs.demanded_space.space, rhs.demanded_space.space) == (Mem.Mat, Mem.Mat)
    assert (lhs.transpose_flag, rhs.transpose_flag) == ("a_trans", "b_trans")
    assert operand_space_of(both, 0).space is Mem.Left


@pytest.mark.req("C-110", "C-119")
def test_every_single_declared_space_is_the_one_that_staging_starts_from():
    checked = 0
    for decl in declared():
        for index, operand in enumerate(decl.operands):
            if len(operand.spaces) != 1 or Mem.Acc in operand.spaces:
                continue
            (space,) = operand.spaces
            assert bridge_space_of((decl.name,), index).space is staging_space_for_load(space)
            checked += 1
    assert checked > 150


@pytest.mark.req("C-111")
def test_a_space_cannot_be_written_by_hand():
    with pytest.raises(TypeError, match="bridge_space_of or operand_space_of only"):
        OperandSpace(Mem.Vec)
    with pytest.raises(TypeError, match=r"must come from bridge_space_of .* got <Mem\.Vec"):
        InputSpaceReq(0, Mem.Vec)
    assert bridge_space_of(("tile.sel",), 2) == bridge_space_of(("tile.scatter",), 1)


@pytest.mark.req("C-114")
def test_ops_that_disagree_are_refused():
    with pytest.raises(InternalError, match=r"tile\.matmul: Left, tile\.sel: Vec"):
        bridge_space_of(("tile.matmul", "tile.sel"), 0)


@pytest.mark.req("C-120")
def test_unregistered_ops_are_refused():
    with pytest.raises(InternalError, match=r"unregistered operator tile\.matmull"):
        bridge_space_of(("tile.matmull",), 0)


@pytest.mark.req("C-121")
def test_operands_without_a_declared_space_are_refused():
    with pytest.raises(InternalError, match=r"tile\.assemble declares no memory space .* 1"):
        bridge_space_of(("tile.assemble",), 1)
    with pytest.raises(InternalError, match=r"tile\.store declares several memory spaces"):
        bridge_space_of(("tile.store",), 0)
    with pytest.raises(InternalError, match=r"tile\.exp has no operand 3"):
        bridge_space_of(("tile.exp",), 3)
    with pytest.raises(InternalError, match="at least one operator"):
        bridge_space_of((), 0)


@pytest.mark.req("C-107")
def test_the_conversions_with_requirements_and_where_their_operands_arrive():
    found = {
        name: {req.operand: req.demanded_space.space for req in reqs}
        for name, reqs in INPUT_REQS.items()
    }
    assert found == {
        "tensor.matmul": {0: Mem.Mat, 1: Mem.Mat},
        "tensor.matmul_acc": {0: Mem.Acc, 1: Mem.Mat, 2: Mem.Mat},
        "tensor.scatter": {0: Mem.Vec, 1: Mem.Vec, 2: Mem.Vec},
        "tensor.scatter_update": {0: Mem.Vec, 1: Mem.Vec, 2: Mem.Vec},
        "tensor.scatter_mask": {0: Mem.Vec, 1: Mem.Vec},
        "tensor.gather_compare": {0: Mem.Vec},
        "tensor.mrgsort_format2": {0: Mem.Vec, 1: Mem.Vec, 2: Mem.Vec, 3: Mem.Vec},
        "pld.tensor.remote_store": {0: Mem.Vec},
    }
    for name, reqs in INPUT_REQS.items():
        assert all(req.operand < len(lookup(name).operands) for req in reqs)


@pytest.mark.req("C-134", "C-137", "C-164", "C-165", "C-167")
def test_axes_to_align_follow_the_operand_s_own_transpose_flag():
    lhs, rhs = INPUT_REQS["tensor.matmul"]
    assert (lhs.m_axis({}), lhs.m_axis({"a_trans": True})) == (0, 1)
    assert (rhs.n_axis({}), rhs.n_axis({"b_trans": True})) == (1, 0)
    assert lhs.n_axis({}) is None
    acc, acc_lhs, acc_rhs = INPUT_REQS["tensor.matmul_acc"]
    assert acc.m_align_from_arg == acc_lhs.operand == 1
    assert (acc.m_axis({"a_trans": True}), acc_lhs.m_axis({"a_trans": True})) == (0, 1)
    assert acc_rhs.n_axis({}) is None


@pytest.mark.req("C-122")
@pytest.mark.parametrize(
    "name", ["slice", "gather", "paged_gather", "gather_row", "assemble", "create_l1"]
)
def test_self_loading_ops_have_no_requirement(name):
    assert f"tensor.{name}" not in INPUT_REQS


@pytest.mark.req("C-123")
@pytest.mark.parametrize("name", ["tile.assemble", "tile.gather_row"])
def test_inheriting_ops_are_not_pinned_to_a_space(name):
    decl = lookup(name)
    assert decl.output_space == "inherit"
    assert decl.operands[0].spaces == frozenset()
