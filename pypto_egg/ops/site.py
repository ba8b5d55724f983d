"""Declaring operators: operand constructors, and the view of a call that type rules read."""

from __future__ import annotations

from collections.abc import Callable

from pypto_egg.errors import TypeCheckError
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import BinOp, Call, Cast, ConstInt, Expr, TupleExpr, UnOp, Var, dims_of
from pypto_egg.ir.fold import Dim, const_value
from pypto_egg.ir.types import ScalarType, TensorType, TileType, Type
from pypto_egg.ops.registry import (
    Channel,
    Effect,
    Kwarg,
    Kwargs,
    OpDecl,
    Operand,
    TypeRule,
    register,
)

EffectRule = Effect | Callable[[Kwargs], Effect]
_SHOWN_DEPTH = 6


def tensor(
    name: str,
    *,
    optional: bool = False,
    effect: EffectRule = Effect.READ,
    keyword: str | None = None,
) -> Operand:
    """An operand in global memory."""
    return Operand(name, "tensor", optional, frozenset(), effect, keyword)


def tile(
    name: str,
    *spaces: Mem,
    optional: bool = False,
    effect: EffectRule = Effect.READ,
    keyword: str | None = None,
) -> Operand:
    """A tile operand that must be in one of `spaces` when the op executes (none given: any)."""
    return Operand(name, "tile", optional, frozenset(spaces), effect, keyword)


def scalar(name: str, *, optional: bool = False, keyword: str | None = None) -> Operand:
    """A scalar operand."""
    return Operand(name, "scalar", optional, keyword=keyword)


def dims(name: str, *, optional: bool = False, keyword: str | None = None) -> Operand:
    """A list of scalar index expressions: a shape, offsets or indices."""
    return Operand(name, "tuple", optional, keyword=keyword)


def either(
    name: str,
    *,
    optional: bool = False,
    effect: EffectRule = Effect.READ,
    keyword: str | None = None,
) -> Operand:
    """An operand of any kind; the type rule decides."""
    return Operand(name, "any", optional, frozenset(), effect, keyword)


class Site:
    """One call under its type rule: operands of checked kinds, kwargs, and errors that name them.

    Raises:
        TypeCheckError: on construction, if an operand is not of the declared kind.
    """

    __slots__ = ("args", "kwargs", "name", "operands")

    def __init__(
        self, name: str, operands: tuple[Operand, ...], args: tuple[Expr, ...], kwargs: Kwargs
    ) -> None:
        self.name = name
        self.operands = operands
        self.args = args
        self.kwargs = kwargs
        for index in range(len(args)):
            self._check_kind(index)

    def _check_kind(self, index: int) -> None:
        if not self.given(index):
            return
        kind = self.operands[index].kind
        if kind == "any" or _KIND_TEST[kind](self.args[index]):
            return
        raise self.error(
            index,
            f"must be a {_KIND_NAME[kind]}, got {describe(self.args[index])}",
            hint=_KIND_HINT[kind],
        )

    def given(self, index: int) -> bool:
        """True if operand `index` is present; an optional one may stand there as an empty list."""
        if index >= len(self.args):
            return False
        arg = self.args[index]
        absent = self.operands[index].optional and isinstance(arg, TupleExpr) and not arg.items
        return not absent

    def tensor(self, index: int) -> TensorType:
        """The type of a tensor operand."""
        found = self.args[index].type
        assert isinstance(found, TensorType)
        return found

    def tile(self, index: int) -> TileType:
        """The type of a tile operand.

        Raises:
            TypeCheckError: it is no tile.
        """
        found = self.args[index].type
        if not isinstance(found, TileType):
            raise self.error(index, f"must be a tile, got {describe(self.args[index])}")
        return found

    def shaped(self, index: int) -> TensorType | TileType:
        """The type of an operand that may be a tensor or a tile."""
        found = self.args[index].type
        if isinstance(found, TensorType | TileType):
            return found
        raise self.error(index, f"must be a tensor or a tile, got {describe(self.args[index])}")

    def is_scalar(self, index: int) -> bool:
        """Whether an operand that may be a tensor or a scalar is a scalar."""
        return isinstance(self.args[index].type, ScalarType)

    def scalar(self, index: int) -> DType:
        """The dtype of a scalar operand."""
        found = self.args[index].type
        assert isinstance(found, ScalarType)
        return found.dtype

    def dtype(self, index: int) -> DType:
        """The element type of a tensor, tile or scalar operand."""
        found = self.args[index].type
        if isinstance(found, TensorType | TileType | ScalarType):
            return found.dtype
        raise self.error(index, f"has no element type, got {describe(self.args[index])}")

    def dims(self, index: int) -> tuple[Dim, ...]:
        """The elements of a shape, offset or index operand."""
        return dims_of(self.args[index])

    def constant_dims(self, index: int) -> tuple[int, ...]:
        """The elements of an operand that must be compile-time constants."""
        found = []
        for axis, dim in enumerate(self.dims(index)):
            value = const_value(dim)
            if value is None:
                raise self.error(
                    index,
                    f"must be constant, but element {axis} is {show_dim(dim)}",
                    hint="give the largest extent here and the run-time extent as valid_shape",
                )
            found.append(value)
        return tuple(found)

    def constant(self, index: int) -> int:
        """The value of a scalar operand that must be a compile-time integer."""
        value = const_value(self.args[index]) if self.is_scalar(index) else None
        if value is None:
            raise self.error(
                index, f"must be an integer constant, got {describe(self.args[index])}"
            )
        return value

    def axis(self, index: int, rank: int) -> int:
        """A constant axis operand, made non-negative."""
        value = self.constant(index)
        if not -rank <= value < rank:
            raise self.error(
                index, f"is axis {value} of a rank-{rank} operand; allowed: {-rank} to {rank - 1}"
            )
        return value % rank

    def label(self, index: int) -> str:
        """The operand as an error names it: its role, and the variable's name if it has one."""
        arg = self.args[index] if index < len(self.args) else None
        named = f" ({arg.name})" if isinstance(arg, Var) else ""
        return f"operand '{self.operands[index].name}'{named}"

    def error(self, index: int, message: str, hint: str | None = None) -> TypeCheckError:
        """An error about one operand, to be raised by the caller."""
        return TypeCheckError(f"{self.name}: {self.label(index)} {message}", hint=hint)

    def fault(self, message: str, hint: str | None = None) -> TypeCheckError:
        """An error about the call as a whole, to be raised by the caller."""
        return TypeCheckError(f"{self.name}: {message}", hint=hint)

    def demand_dtype(self, index: int, allowed: tuple[DType, ...]) -> None:
        """Refuse operand `index` unless its element type is one of `allowed`."""
        found = self.dtype(index)
        if found not in allowed:
            names = ", ".join(d.name for d in allowed)
            raise self.error(
                index, f"has dtype {found.name}; allowed: {names}", hint="cast it first"
            )

    def demand_int(self, *indices: int) -> None:
        """Refuse operands that are not of an integer dtype."""
        for index in indices:
            if not self.dtype(index).is_int:
                raise self.error(
                    index,
                    f"has dtype {self.dtype(index).name}; an integer dtype is needed",
                    hint="cast it first",
                )

    def demand_same_dtype(self, first: int, second: int) -> None:
        """Refuse two operands whose element types differ."""
        a, b = self.dtype(first), self.dtype(second)
        if a != b:
            raise self.error(
                second,
                f"has dtype {b.name}, but {self.label(first)} has {a.name}; they must be equal",
                hint="cast one of them",
            )

    def demand_rank(self, index: int, rank: int) -> None:
        """Refuse operand `index` unless it has this rank."""
        found = self.shaped(index)
        if found.rank != rank:
            raise self.error(
                index,
                f"has shape {show_shape(found.shape)}; rank {rank} is needed",
                hint=f"reshape it to rank {rank}",
            )

    def demand_rank_at_least(self, index: int, rank: int) -> None:
        """Refuse operand `index` unless it has this rank or a higher one."""
        found = self.shaped(index)
        if found.rank < rank:
            raise self.error(
                index, f"has shape {show_shape(found.shape)}; rank {rank} or more is needed"
            )


Rule = Callable[[Site], Type]


def declare(
    name: str,
    operands: tuple[Operand, ...],
    rule: Rule,
    family: str,
    kwargs: tuple[Kwarg, ...] = (),
    *,
    output_space: Mem | str | None = None,
    inherits_memory: bool = False,
    reuses_input: int | None = None,
    channel: Channel | None = None,
    lowers_to: str | None = None,
    instruction: bool = True,
    opaque_effects: bool = False,
    pure: bool = True,
    open_kwargs: bool = False,
) -> OpDecl:
    """The registered declaration of one operator; its type rule sees the call as a `Site`."""
    return register(
        OpDecl(
            name,
            operands,
            kwargs,
            _type_rule(name, operands, rule),
            family,
            output_space,
            inherits_memory,
            reuses_input,
            channel,
            lowers_to,
            instruction,
            opaque_effects,
            pure,
            open_kwargs,
        )
    )


def declare_view(
    name: str,
    operands: tuple[Operand, ...],
    rule: Rule,
    family: str,
    kwargs: tuple[Kwarg, ...] = (),
    *,
    reuses_input: int | None = None,
    lowers_to: str | None = None,
) -> OpDecl:
    """The registered declaration of an operator that only renames its first operand's memory."""
    return declare(
        name,
        operands,
        rule,
        family,
        kwargs,
        output_space="inherit" if name.startswith("tile.") else None,
        inherits_memory=True,
        reuses_input=reuses_input,
        lowers_to=lowers_to,
        instruction=False,
    )


def _type_rule(name: str, operands: tuple[Operand, ...], rule: Rule) -> TypeRule:
    def infer(args: tuple[Expr, ...], kwargs: Kwargs) -> Type:
        return rule(Site(name, operands, args, kwargs))

    return infer


def _is_scalar_list(expr: Expr) -> bool:
    return isinstance(expr, TupleExpr) and all(
        isinstance(item.type, ScalarType) for item in expr.items
    )


_KIND_TEST: dict[str, Callable[[Expr], bool]] = {
    "tensor": lambda expr: isinstance(expr.type, TensorType),
    "tile": lambda expr: isinstance(expr.type, TileType),
    "scalar": lambda expr: isinstance(expr.type, ScalarType),
    "tuple": _is_scalar_list,
}
_KIND_NAME = {
    "tensor": "tensor in global memory",
    "tile": "tile",
    "scalar": "scalar",
    "tuple": "list of index expressions",
}
_KIND_HINT = {
    "tensor": "an on-chip tile has to be stored first",
    "tile": "load the tensor with pl.tile.load first",
    "scalar": "read one element with pl.tensor.read or pl.tile.read",
    "tuple": "write it as a list, for example [16, 64]",
}


def describe(expr: Expr) -> str:
    """A short text of an operand's type for error messages."""
    match expr.type:
        case TensorType() as found:
            return f"Tensor[{show_shape(found.shape)}, {found.dtype.name}]"
        case TileType() as found:
            where = f", {found.space.name}" if found.space is not None else ""
            return f"Tile[{show_shape(found.shape)}, {found.dtype.name}{where}]"
        case ScalarType() as found:
            return f"Scalar[{found.dtype.name}]"
        case found:
            return type(found).__name__.removesuffix("Type")


def show_shape(shape: tuple[Dim, ...]) -> str:
    """A shape as text, `[16, n]`."""
    return "[" + ", ".join(show_dim(dim) for dim in shape) + "]"


def show_dim(dim: Dim, depth: int = _SHOWN_DEPTH) -> str:
    """A dimension as text; what is nested deeper than `depth` is shortened to `...`."""
    if isinstance(dim, int):
        return str(dim)
    if depth == 0:
        return "..."
    match dim:
        case ConstInt():
            return str(dim.value)
        case Var():
            return dim.name
        case BinOp() if dim.op in ("min", "max"):
            return f"{dim.op}({show_dim(dim.lhs, depth - 1)}, {show_dim(dim.rhs, depth - 1)})"
        case BinOp():
            return f"({show_dim(dim.lhs, depth - 1)} {dim.op} {show_dim(dim.rhs, depth - 1)})"
        case UnOp():
            return f"{dim.op}{show_dim(dim.operand, depth - 1)}"
        case Cast():
            return show_dim(dim.operand, depth - 1)
        case Call():
            return f"{dim.op}(...)"
        case _:
            return type(dim).__name__
