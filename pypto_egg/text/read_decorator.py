"""Decorators of functions and programs (PyPTO language reference, 2.1)."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from pypto_egg.ir.enums import IMPLIED_LEVEL_ROLE, FunctionType, Level, Role, SplitMode
from pypto_egg.text import values
from pypto_egg.text.read_call import refuse_stars
from pypto_egg.text.reader import Reader, closest, language_path

_KEYWORDS = {
    "type": FunctionType,
    "level": Level,
    "role": Role,
    "auto_scope": bool,
    "external_source": str,
    "strict_ssa": bool,
    "attrs": tuple,
}
_JIT_TYPES = {
    "incore": FunctionType.InCore,
    "inline": FunctionType.Inline,
    "opaque": FunctionType.Opaque,
}
_ABSTRACT_LEVELS = (
    Level.HOST,
    Level.CLUSTER_0,
    Level.CLUSTER_1,
    Level.CLUSTER_2,
    Level.GLOBAL,
)


@dataclass(frozen=True, slots=True)
class Decoration:
    """What the decorator of a function says; level and role include what the type implies."""

    type: FunctionType = FunctionType.Opaque
    level: Level | None = None
    role: Role | None = None
    auto_scope: bool = True
    external_source: str | None = None
    strict_ssa: bool = False
    attrs: tuple[tuple[str, object], ...] = ()


def may_be_abstract(decoration: Decoration) -> bool:
    """Whether a function may have `...` for a body."""
    if decoration.external_source is not None:
        return True
    return decoration.role is Role.SubWorker and decoration.level in _ABSTRACT_LEVELS


def is_default(key: str, value: object) -> bool:
    """Whether a function attribute says nothing: PyPTO drops an absent split."""
    return key == "split" and value in (SplitMode.NONE, 0)


def function_decoration(
    reader: Reader, node: ast.FunctionDef, strict_ssa: bool
) -> Decoration | None:
    """What `@pl.function(...)` says, or None for a function without that decorator."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        path = language_path(reader, call.func if call else decorator)
        if path == ("function",):
            return _decoration(reader, node, call, strict_ssa, None)
        if path is not None and len(path) == 2 and path[0] == "jit" and path[1] in _JIT_TYPES:
            return _decoration(reader, node, call, strict_ssa, _JIT_TYPES[path[1]])
    return None


def _decoration(
    reader: Reader,
    node: ast.FunctionDef,
    call: ast.Call | None,
    strict_ssa: bool,
    jit: FunctionType | None,
) -> Decoration:
    given = _keywords(reader, call) if call is not None else {}
    kind = jit or given.get("type", FunctionType.Opaque)
    assert isinstance(kind, FunctionType)
    level, role = _level(given.get("level")), _role(given.get("role"))
    implied_level, implied_role = IMPLIED_LEVEL_ROLE[kind]
    for name, explicit, implied in (("level", level, implied_level), ("role", role, implied_role)):
        if implied is not None and explicit not in (None, implied):
            raise reader.fault(
                call or node,
                f"{kind.value} functions have {name} {implied.name}, not {explicit.name}",
                f"drop {name}=",
            )
    attrs = given.get("attrs", ())
    assert isinstance(attrs, tuple)
    source = given.get("external_source")
    return Decoration(
        kind,
        level or implied_level,
        role or implied_role,
        bool(given.get("auto_scope", True)),
        source if isinstance(source, str) else None,
        bool(given.get("strict_ssa", strict_ssa)),
        tuple(entry for entry in attrs if not is_default(*entry)),
    )


def _level(value: object) -> Level | None:
    return value if isinstance(value, Level) else None


def _role(value: object) -> Role | None:
    return value if isinstance(value, Role) else None


def _keywords(reader: Reader, call: ast.Call) -> dict[str, object]:
    refuse_stars(reader, call)
    if call.args:
        raise reader.fault(call, "pl.function takes keyword arguments only")
    given: dict[str, object] = {}
    for keyword in call.keywords:
        name = str(keyword.arg)
        if name not in _KEYWORDS:
            raise reader.fault(
                keyword.value,
                f"pl.function has no argument '{name}' (it has: {', '.join(_KEYWORDS)})",
                closest(name, _KEYWORDS),
            )
        read = values.read_attributes if name == "attrs" else values.read_attribute
        value = read(reader, keyword.value)
        if value is None:
            continue
        if not isinstance(value, _KEYWORDS[name]):
            raise reader.fault(keyword.value, f"{name}= cannot be '{ast.unparse(keyword.value)}'")
        given[name] = value
    return given


def program_strict_ssa(reader: Reader, node: ast.ClassDef) -> bool | None:
    """Whether `@pl.program` asks for strict SSA; None for a class without that decorator."""
    for decorator in node.decorator_list:
        call = decorator if isinstance(decorator, ast.Call) else None
        if language_path(reader, call.func if call else decorator) != ("program",):
            continue
        return call is not None and _strict_argument(reader, call)
    return None


def _strict_argument(reader: Reader, call: ast.Call) -> bool:
    strict = False
    for keyword in call.keywords:
        value = values.read_attribute(reader, keyword.value)
        if keyword.arg != "strict_ssa" or not isinstance(value, bool):
            raise reader.fault(call, "pl.program takes strict_ssa=True or False and nothing else")
        strict = value
    if call.args:
        raise reader.fault(call, "pl.program takes strict_ssa=True or False and nothing else")
    return strict
