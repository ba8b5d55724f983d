"""Operator calls: which operator a name means, and its operands and kwargs in IR order."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field, replace

from pypto_egg.errors import UnknownOpError
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.expr import Call, Expr, TupleExpr, as_expr
from pypto_egg.ir.types import ScalarType, TensorType, TileType, Type, UnknownType
from pypto_egg.ops import registry
from pypto_egg.text import dsl, operands, read_expr, values
from pypto_egg.text.reader import Literal, Reader, closest, language_path
from pypto_egg.text.vocabulary import positional_key


@dataclass(slots=True)
class Arguments:
    """The arguments of one call; each is read at most once."""

    reader: Reader
    node: ast.Call
    keywords: dict[str, ast.expr] = field(init=False)
    attrs: tuple[tuple[str, object], ...] = field(init=False, default=())
    _values: dict[int, Expr | Literal] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self.keywords = {}
        for keyword in self.node.keywords:
            assert keyword.arg is not None
            if keyword.arg == "attrs":
                self.attrs = values.read_attributes(self.reader, keyword.value)
            else:
                self.keywords[keyword.arg] = keyword.value

    @property
    def positional(self) -> list[ast.expr]:
        return self.node.args

    def value(self, node: ast.expr) -> Expr | Literal:
        if id(node) not in self._values:
            self._values[id(node)] = read_expr.read_value(self.reader, node)
        return self._values[id(node)]

    def kind(self, node: ast.expr) -> Type | None:
        """The type of an argument that is a value, None for lists, names of enums and strings."""
        if isinstance(node, ast.List | ast.Tuple):
            return None
        if isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, str)):
            return None
        if isinstance(node, ast.Attribute):
            return None
        return as_expr(self.value(node)).type


def read_operator(reader: Reader, node: ast.Call, path: tuple[str, ...]) -> Expr:
    """The call of the operator that `path` names."""
    return resolve(reader, node, path, Arguments(reader, node))


def resolve(reader: Reader, node: ast.Call, path: tuple[str, ...], arguments: Arguments) -> Expr:
    """The call of the operator that `path` means for these arguments."""
    if len(path) == 1:
        scalar = _scalar_operator(reader, node, path[0], arguments)
        if scalar is not None:
            return scalar
    name = _operator_name(reader, path, arguments)
    decl = registry.lookup(name)
    if decl is None:
        return _unknown(reader, node, path, name, arguments)
    given, options = operands.bind(reader, node, decl, arguments)
    defaulted = _whole_window(decl, given)
    kwargs = operands.read_kwargs(reader, decl, options)
    if path == ("load",) or defaulted:
        kwargs.setdefault("target_memory", Mem.Vec)
    args = operands.read_operands(reader, node, decl, given, kwargs, arguments)
    if name in ("tile.aiv_shard", "tile.aic_gather", "tensor.aiv_shard", "tensor.aic_gather"):
        _inherit_split(reader, kwargs)
    extra = _open_keywords(reader, decl, options)
    declared = {name: value for name, value in kwargs.items() if name not in extra}
    call = registry.make_call(
        decl.name, args, declared, attrs=arguments.attrs, span=reader.span(node)
    )
    return replace(call, kwargs=(*call.kwargs, *extra.items())) if extra else call


def _whole_window(decl: registry.OpDecl, given: dict[str, ast.expr]) -> bool:
    """Whether a load names no valid part, so that the whole window is; adds that operand.

    Only the DSL leaves it out; its wrapper then also loads into Vec unless told otherwise.
    """
    if decl.name != "tile.load" or "valid_shapes" in given or "shapes" not in given:
        return False
    given["valid_shapes"] = given["shapes"]
    return True


def _open_keywords(
    reader: Reader, decl: registry.OpDecl, options: dict[str, ast.expr]
) -> dict[str, object]:
    """The undeclared keywords of an opaque operator."""
    if decl.namespace not in dsl.OPEN_NAMESPACES:
        return {}
    known = {kwarg.name for kwarg in decl.kwargs}
    return {
        name: values.read_attribute(reader, node)
        for name, node in options.items()
        if name not in known
    }


def _scalar_operator(
    reader: Reader, node: ast.Call, name: str, arguments: Arguments
) -> Expr | None:
    """`pl.add` and its like between two scalars: plain arithmetic."""
    op = dsl.SCALAR_OPERATORS.get(name)
    if op is None or len(arguments.positional) != 2 or arguments.keywords:
        return None
    sides = arguments.positional
    kinds = [arguments.kind(side) for side in sides]
    if not all(isinstance(kind, ScalarType) for kind in kinds):
        if isinstance(kinds[0], ScalarType):
            raise reader.mismatch(node, f"pl.{name}: the scalar must be on the right")
        return None
    left, right = (arguments.value(side) for side in sides)
    return as_expr(read_expr.combine(reader, node, op, left, right))


def _operator_name(reader: Reader, path: tuple[str, ...], arguments: Arguments) -> str:
    """The IR name that `path` means, before it is looked up."""
    if path[0] in dsl.NAMESPACES and len(path) > 1:
        name = ".".join(path)
        name = dsl.RENAMED.get(name, name)
    elif len(path) > 1:
        return ".".join(path)
    elif path[0] in dsl.FIXED:
        name = dsl.FIXED[path[0]]
    else:
        name = _unified(reader, path[0], arguments)
    return _variant(name, arguments)


def _unified(reader: Reader, name: str, arguments: Arguments) -> str:
    """The tensor or tile form of a unified name, by the first operand that is one of the two."""
    for node in (*arguments.positional, *arguments.keywords.values()):
        kind = arguments.kind(node)
        if isinstance(kind, TensorType):
            return f"tensor.{name}"
        if isinstance(kind, TileType):
            return f"tile.{name}"
    in_tensor = registry.lookup(f"tensor.{name}") is not None
    in_tile = registry.lookup(f"tile.{name}") is not None
    if in_tensor and in_tile and (arguments.positional or arguments.keywords):
        raise reader.mismatch(arguments.node, f"pl.{name} needs a tensor or a tile operand")
    return f"tensor.{name}" if in_tensor else f"tile.{name}"


def _variant(name: str, arguments: Arguments) -> str:
    """The form of an operator that the arguments select: scalar, masked, compared, merged."""
    namespace, _, leaf = name.partition(".")
    if leaf in ("gather", "scatter") and "mask_pattern" in arguments.keywords:
        return f"{namespace}.{leaf}_mask"
    if leaf == "gather" and "kvalue" in arguments.keywords:
        return f"{namespace}.gather_compare"
    if leaf == "mrgsort":
        merged = len(arguments.positional) > 1 and "block_len" not in arguments.keywords
        second = arguments.kind(arguments.positional[1]) if merged else None
        shaped = isinstance(second, TensorType | TileType)
        return f"{namespace}.mrgsort_format{2 if shaped else 1}"
    scalar_form = dsl.SCALAR_FORMS.get(leaf)
    if namespace == "tile":
        scalar_form = scalar_form or dsl.TILE_SCALAR_FORMS.get(leaf)
    if scalar_form is None or namespace not in ("tensor", "tile"):
        return name
    right = arguments.keywords.get("rhs")
    if len(arguments.positional) > 1:
        right = arguments.positional[1]
    if right is not None and isinstance(arguments.kind(right), ScalarType):
        return f"{namespace}.{scalar_form}"
    return name


def _inherit_split(reader: Reader, kwargs: dict[str, object]) -> None:
    """Inside of `pl.split_aiv` the region's mode is the split of its shards and gathers."""
    if reader.splits and "split" not in kwargs:
        kwargs["split"] = {"UP_DOWN": 1, "LEFT_RIGHT": 2}.get(reader.splits[-1].name, 0)


def _unknown(
    reader: Reader, node: ast.Call, path: tuple[str, ...], name: str, arguments: Arguments
) -> Expr:
    """A call of an operator that the registry does not have, kept as written outside of kernels."""
    shown = ".".join(path) if path[0] == "pld" else f"pl.{'.'.join(path)}"
    written = language_path(reader, node.func)
    if written is not None and path[0] != "pld":
        shown = f"pl.{'.'.join(written)}"
    if reader.on_device:
        raise UnknownOpError(
            f"unknown operator '{shown}' in {reader.type.value} function '{reader.function}'",
            span=reader.span(node.func),
            hint=_other_kind(name) or closest(shown, _operators_like(path, name)),
        )
    args: list[Expr] = []
    kwargs: list[tuple[str, object]] = []
    for index, arg in enumerate(arguments.positional):
        value = _free_argument(reader, arg, arguments)
        if isinstance(value, Expr):
            args.append(value)
        else:
            kwargs.append((positional_key(index), value))
    for name, keyword in arguments.keywords.items():
        kwargs.append((name, values.read_attribute(reader, keyword)))
    return Call(
        shown, tuple(args), tuple(kwargs), UnknownType(), arguments.attrs, reader.span(node)
    )


def _free_argument(reader: Reader, node: ast.expr, arguments: Arguments) -> object:
    if isinstance(node, ast.List):
        return TupleExpr(tuple(as_expr(read_expr.read_value(reader, item)) for item in node.elts))
    if arguments.kind(node) is not None:
        return as_expr(arguments.value(node))
    return values.read_attribute(reader, node)


# What to write in a tensor program for an operator that only tiles have.
_ON_TENSORS = {
    "relu": "pl.maximum(x, zero) with zero = pl.full([...], dtype=..., value=0.0)",
    "maximums": "pl.maximum with a tensor from pl.full",
    "minimums": "pl.minimum with a tensor from pl.full",
    "gemv": "pl.matmul",
    "gemv_acc": "pl.matmul_acc",
    "gemv_bias": "pl.matmul and pl.col_expand_add",
    "matmul_bias": "pl.matmul and pl.col_expand_add",
    "batch_matmul": "pl.matmul",
    "batch_matmul_acc": "pl.matmul_acc",
    "transpose_view": "pl.transpose, or a_trans and b_trans of pl.matmul",
    "extract": "pl.slice",
    "load": "pl.slice, or nothing: lowering loads",
    "store": "pl.assemble, or a return: lowering stores",
    "move": "nothing: lowering places values",
}


def _other_kind(name: str) -> str | None:
    """A hint for an operator that tiles have and tensors do not, or the other way round."""
    namespace, _, leaf = name.partition(".")
    other = {"tensor": "tile", "tile": "tensor"}.get(namespace)
    if other is None or registry.lookup(f"{other}.{leaf}") is None:
        return None
    if other == "tensor":
        return f"pl.{leaf} is an operator on tensors, and its operand is a tile"
    instead = f"; on tensors write {_ON_TENSORS[leaf]}" if leaf in _ON_TENSORS else ""
    return f"pl.{leaf} is an operator on tiles, which lowering makes{instead}"


def _operators_like(path: tuple[str, ...], name: str) -> list[str]:
    """The operators that may stand where `path` does, spelled as it is."""
    namespace = name.partition(".")[0]
    if path[0] in dsl.NAMESPACES:
        names = [decl.name for decl in registry.declared() if decl.namespace == path[0]]
        return names if path[0] == "pld" else [f"pl.{each}" for each in names]
    leaves = [d.name.partition(".")[2] for d in registry.declared() if d.namespace == namespace]
    fixed = [short for short, full in dsl.FIXED.items() if registry.lookup(full) is not None]
    return [f"pl.{leaf}" for leaf in dict.fromkeys((*leaves, *fixed))]
