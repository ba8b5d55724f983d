"""Where a tensor operand is loaded to, derived from what the consuming tile op declares.

The space an operator needs an operand in and the space a load can fill are two things: the DMA
fills Vec and Mat only, the L0 buffers are filled from Mat by a move, and only the cube unit
writes Acc. The operators' own declarations are the only place that names a space (C-107 to C-123).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pypto_egg.errors import InternalError, LoweringError
from pypto_egg.ir.enums import Mem
from pypto_egg.ops.registry import Kwargs, OpDecl, lookup

_STAGING = {
    Mem.Vec: Mem.Vec,
    Mem.Mat: Mem.Mat,
    Mem.Left: Mem.Mat,
    Mem.Right: Mem.Mat,
    Mem.Bias: Mem.Mat,
    Mem.LeftScale: Mem.Mat,
    Mem.RightScale: Mem.Mat,
}
_MADE_HERE = object()


def staging_space_for_load(space: Mem) -> Mem:
    """The space that a load fills so that an operand needed in `space` can get there.

    Raises:
        LoweringError: nothing loads into `space`, as into Acc.
    """
    staging = _STAGING.get(space)
    if staging is None:
        raise LoweringError(
            f"no load can provide an operand in {space.name}; loads fill Vec or Mat",
            hint="create an accumulator with tensor.create and let the matmul write it",
        )
    return staging


class OperandSpace:
    """The memory space of an operand, as read from the registry.

    There is no way to make one from a `Mem`: only `bridge_space_of` and `operand_space_of` do
    (C-111). Two are equal if they name the same space.
    """

    __slots__ = ("_space",)
    _space: Mem

    def __init__(self, space: Mem, made_by: object = None) -> None:
        if made_by is not _MADE_HERE:
            raise TypeError("an OperandSpace comes from bridge_space_of or operand_space_of only")
        self._space = space

    @property
    def space(self) -> Mem:
        """The memory space."""
        return self._space

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OperandSpace) and other._space is self._space

    def __hash__(self) -> int:
        return hash(self._space)

    def __repr__(self) -> str:
        return f"OperandSpace({self._space.name})"


def operand_space_of(ops: Sequence[str], index: int) -> OperandSpace:
    """The space that every one of `ops` declares for operand `index`.

    Raises:
        InternalError: an op is not registered, declares no single space for that operand, or
            the ops disagree.
    """
    if not ops:
        raise InternalError("an operand space must be derived from at least one operator")
    spaces = [_declared_space(name, index) for name in ops]
    if len(set(spaces)) > 1:
        found = ", ".join(f"{op}: {s.name}" for op, s in zip(ops, spaces, strict=True))
        raise InternalError(f"operators disagree on the space of operand {index} ({found})")
    return OperandSpace(spaces[0], _MADE_HERE)


def bridge_space_of(ops: Sequence[str], index: int) -> OperandSpace:
    """The space that a load of operand `index` of any of `ops` fills.

    Raises:
        InternalError: as `operand_space_of`, or no load can provide that operand.
    """
    needed = operand_space_of(ops, index).space
    if needed not in _STAGING:
        raise InternalError(f"operand {index} of {', '.join(ops)} is in {needed.name}: no load")
    return OperandSpace(_STAGING[needed], _MADE_HERE)


def _declared_space(name: str, index: int) -> Mem:
    decl = lookup(name)
    if decl is None:
        raise InternalError(f"a conversion requirement names the unregistered operator {name}")
    spaces = _spaces_of(decl, index)
    if len(spaces) != 1:
        what = "no memory space" if not spaces else "several memory spaces"
        raise InternalError(f"{name} declares {what} for operand {index}")
    return next(iter(spaces))


def _spaces_of(decl: OpDecl, index: int) -> frozenset[Mem]:
    if not 0 <= index < len(decl.operands):
        raise InternalError(f"{decl.name} has no operand {index}")
    return decl.operands[index].spaces


@dataclass(frozen=True, slots=True)
class InputSpaceReq:
    """What a tensor op's conversion asks of one operand.

    Args:
        operand: its index in the tensor op.
        demanded_space: where the operand must arrive.
        transpose_flag: the kwarg that says the operand is read transposed, or None.
        cube_m_axis: the operand carries the matrix M axis, to be aligned to whole fractals.
        m_align_from_arg: the operand that alone decides the alignment of M, or None.
        cube_n_axis: the operand carries the N axis, to be aligned to whole fractals.
    """

    operand: int
    demanded_space: OperandSpace
    transpose_flag: str | None = None
    cube_m_axis: bool = False
    m_align_from_arg: int | None = None
    cube_n_axis: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.demanded_space, OperandSpace):
            raise TypeError(
                "demanded_space must come from bridge_space_of or operand_space_of, "
                f"got {self.demanded_space!r}"
            )

    def transposed(self, kwargs: Kwargs) -> bool:
        """True if the call reads this operand transposed."""
        return self.transpose_flag is not None and bool(kwargs.get(self.transpose_flag, False))

    def m_axis(self, kwargs: Kwargs) -> int | None:
        """The axis of the untransposed 2-D operand that carries M, or None (C-134)."""
        return int(self.transposed(kwargs)) if self.cube_m_axis else None

    def n_axis(self, kwargs: Kwargs) -> int | None:
        """The axis of the untransposed 2-D operand that carries N, or None."""
        return 1 - int(self.transposed(kwargs)) if self.cube_n_axis else None


_PRODUCTS = ("tile.matmul", "tile.batch_matmul")
_SUMS = ("tile.matmul_acc", "tile.batch_matmul_acc")

INPUT_REQS: dict[str, tuple[InputSpaceReq, ...]] = {
    "tensor.matmul": (
        InputSpaceReq(0, bridge_space_of(_PRODUCTS, 0), "a_trans", cube_m_axis=True),
        InputSpaceReq(1, bridge_space_of(_PRODUCTS, 1), "b_trans", cube_n_axis=True),
    ),
    "tensor.matmul_acc": (
        InputSpaceReq(0, operand_space_of(_SUMS, 0), cube_m_axis=True, m_align_from_arg=1),
        InputSpaceReq(1, bridge_space_of(_SUMS, 1), "a_trans", cube_m_axis=True),
        InputSpaceReq(2, bridge_space_of(_SUMS, 2), "b_trans"),
    ),
    "tensor.scatter": (
        InputSpaceReq(0, bridge_space_of(("tile.sel",), 2)),
        InputSpaceReq(1, bridge_space_of(("tile.row_expand_add",), 0)),
        InputSpaceReq(2, bridge_space_of(("tile.scatter",), 1)),
    ),
    "tensor.scatter_update": (
        InputSpaceReq(0, bridge_space_of(("tile.sel",), 2)),
        InputSpaceReq(1, bridge_space_of(("tile.muls", "tile.cast"), 0)),
        InputSpaceReq(2, bridge_space_of(("tile.scatter",), 1)),
    ),
    "tensor.scatter_mask": (
        InputSpaceReq(0, bridge_space_of(("tile.scatter_mask",), 1)),
        InputSpaceReq(1, bridge_space_of(("tile.sel",), 2)),
    ),
    "tensor.gather_compare": (InputSpaceReq(0, bridge_space_of(("tile.gather_compare",), 0)),),
    "tensor.mrgsort_format2": tuple(
        InputSpaceReq(i, bridge_space_of(("tile.mrgsort_format2",), i)) for i in range(4)
    ),
    "pld.tensor.remote_store": (InputSpaceReq(0, bridge_space_of(("pld.tile.remote_store",), 0)),),
}
