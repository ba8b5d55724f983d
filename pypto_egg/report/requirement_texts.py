"""What the requirement ids mean, in a line each."""

from __future__ import annotations

import tomllib
from importlib.resources import files

TEXTS: dict[str, str] = tomllib.loads(
    files("pypto_egg.report").joinpath("requirements.toml").read_text(encoding="utf-8")
)
"""Requirement id -> what it says; read from `requirements.toml`."""
