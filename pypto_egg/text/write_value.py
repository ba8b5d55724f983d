"""Spelling of names, numbers, strings, enum members and attribute values."""

from __future__ import annotations

import json
import math
import re
from enum import Enum

from pypto_egg.errors import InternalError
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.expr import Expr
from pypto_egg.text import write_expr
from pypto_egg.text.style import Style
from pypto_egg.text.vocabulary import PRINTED_ENUMS, Parenthesised


def write_float(value: float) -> str:
    """A float with 17 significant digits, so that it reads back as the same double."""
    text = format(value, ".17g")
    if math.isfinite(value) and not any(mark in text for mark in ".e"):
        text += ".0"
    return text


def write_number(value: int | float) -> str:
    if isinstance(value, bool):
        return "True" if value else "False"
    return write_float(value) if isinstance(value, float) else str(value)


def double_quoted(text: str) -> str:
    """A string in double quotes, as PyPTO spells names and attributes."""
    quoted = json.dumps(text, ensure_ascii=False)  # JSON's escapes are Python's
    return _SURROGATE.sub(lambda found: f"\\u{ord(found.group()):04x}", quoted)


_SURROGATE = re.compile("[\ud800-\udfff]")


def write_value(style: Style, value: object, *, quote: str = '"') -> str:
    """A kwarg or attribute value; strings take the given kind of quotes."""
    match value:
        case Expr():
            return write_expr.write_expr(style, value)
        case bool() | int() | float():
            return write_number(value)
        case str():
            return double_quoted(value) if quote == '"' else repr(value)
        case DType():
            return f"{style.prefix}.{value.name}"
        case Enum():
            return f"{style.prefix}.{PRINTED_ENUMS[type(value)]}.{value.name}"
        case None:
            return "None"
        case Parenthesised():
            items = [write_value(style, item, quote=quote) for item in value]
            return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
        case tuple():
            return f"[{', '.join(write_value(style, item, quote=quote) for item in value)}]"
    raise InternalError(f"a value of type {type(value).__name__} has no spelling in the language")


def write_attributes(style: Style, attrs: tuple[tuple[str, object], ...]) -> str:
    """`{"key": value, ...}`."""
    entries = (f"{double_quoted(key)}: {write_value(style, value)}" for key, value in attrs)
    return "{" + ", ".join(entries) + "}"
