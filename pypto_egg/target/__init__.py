"""Hardware facts as data: `load_target("a2a3")` gives a typed, immutable `Target`."""

from pypto_egg.target.facts import Path
from pypto_egg.target.target import Target, load_overrides, load_target, target_names

__all__ = ["Path", "Target", "load_overrides", "load_target", "target_names"]
