"""Keyword arguments as strings, which is how they live in the e-graph."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum

from pypto_egg.errors import InternalError
from pypto_egg.ir import enums
from pypto_egg.ir.dtype import DTYPES, DType


def encode(kwargs: Mapping[str, object]) -> str:
    """Keyword arguments as one string; "" for none. Equal arguments give equal strings."""
    if not kwargs:
        return ""
    return json.dumps({name: _pack(value) for name, value in kwargs.items()})


def decode(text: str) -> dict[str, object]:
    """The keyword arguments that `encode` wrote."""
    if not text:
        return {}
    return {name: _unpack(value) for name, value in json.loads(text).items()}


def _pack(value: object) -> object:
    if isinstance(value, DType):
        return ["dtype", value.name]
    if isinstance(value, Enum):
        return [type(value).__name__, value.name]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise InternalError(f"keyword value {value!r} has no place in the e-graph")


def _unpack(value: object) -> object:
    if not isinstance(value, list):
        return value
    kind, name = value
    return DTYPES[name] if kind == "dtype" else getattr(enums, kind)[name]
