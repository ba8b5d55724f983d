"""Values of keyword arguments and attributes: numbers, strings, enum members, dtypes, lists."""

from __future__ import annotations

import ast

from pypto_egg.ir import enums
from pypto_egg.ir.dtype import DTYPES
from pypto_egg.ir.expr import Call
from pypto_egg.ir.types import UnknownType
from pypto_egg.text import read_expr
from pypto_egg.text.reader import Reader, closest, dotted, dtype_hint, language_path
from pypto_egg.text.vocabulary import ENUMS, Parenthesised, positional_key


def read_constant_name(reader: Reader, node: ast.expr) -> object | None:
    """The dtype or enum member that a dotted name spells, or None for any other name."""
    path = language_path(reader, node)
    if path is None:
        return None
    if len(path) == 1 and path[0] in DTYPES:
        return DTYPES[path[0]]
    if len(path) != 2 or path[0] not in ENUMS:
        return None
    enum = ENUMS[path[0]]
    name = path[1]
    if enum is enums.Level and name in enums.LEVEL_ALIASES:
        return enums.LEVEL_ALIASES[name]
    if name in enum.__members__:
        return enum[name]
    members = ", ".join(enum.__members__)
    raise reader.fault(node, f"pl.{path[0]} has no member '{name}' (it has: {members})")


def read_attribute(reader: Reader, node: ast.expr) -> object:
    """The value of an attribute or of a keyword whose kind is not declared."""
    reader.deeper(node)
    value = _read_attribute(reader, node)
    reader.shallower()
    return value


def _read_attribute(reader: Reader, node: ast.expr) -> object:
    match node:
        case ast.Constant(value=str() as text):
            return text
        case ast.Constant(value=None):
            return None
        case ast.List():
            return tuple(read_attribute(reader, item) for item in node.elts)
        case ast.Tuple():
            return Parenthesised(read_attribute(reader, item) for item in node.elts)
        case ast.Attribute():
            return _named(reader, node)
        case ast.Call() if _is_optimization(reader, node):
            return _optimization(reader, node)
    return read_expr.read_value(reader, node)


def _named(reader: Reader, node: ast.Attribute) -> object:
    value = read_constant_name(reader, node)
    if value is not None:
        return value
    parts = dotted(node)
    hint = closest(parts[-1], ENUMS) if parts else None
    if hint is None and parts and len(parts) == 2:
        hint = dtype_hint(parts[-1])
    raise reader.fault(node, f"'{ast.unparse(node)}' is not a value of the language", hint)


def _is_optimization(reader: Reader, node: ast.Call) -> bool:
    return language_path(reader, node.func) in (("split",), ("cross_core_slot",))


def _optimization(reader: Reader, node: ast.Call) -> Call:
    """`pl.split(mode)` or `pl.cross_core_slot(slot_num=n)` in the optimizations of a region."""
    path = language_path(reader, node.func)
    assert path is not None
    given: list[tuple[str, object]] = [
        (positional_key(index), read_attribute(reader, arg)) for index, arg in enumerate(node.args)
    ]
    for keyword in node.keywords:
        if keyword.arg is None:
            raise reader.fault(node, "** is not part of the language")
        given.append((keyword.arg, read_attribute(reader, keyword.value)))
    return Call(f"pl.{path[0]}", (), tuple(given), UnknownType(), span=reader.span(node))


def read_attributes(reader: Reader, node: ast.expr) -> tuple[tuple[str, object], ...]:
    """The entries of `attrs={"key": value, ...}` in order."""
    if not isinstance(node, ast.Dict):
        raise reader.fault(node, 'attributes are spelled {"key": value}')
    entries: dict[str, object] = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise reader.fault(key or node, "the key of an attribute must be a string")
        if key.value in entries:
            raise reader.fault(key, f"the attribute '{key.value}' is given twice")
        entries[key.value] = read_attribute(reader, value)
    return tuple(entries.items())
