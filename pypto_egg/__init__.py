"""pypto-egg: an e-graph optimizer for PyPTO programs.

The public names load what they need when they are first used, so that importing the package,
parsing and printing do not load egglog or the solver.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypto_egg.calibration import Calibration as Calibration
    from pypto_egg.calibration import calibrate as calibrate
    from pypto_egg.errors import PyptoEggError as PyptoEggError
    from pypto_egg.extract.cost import CostModel as CostModel
    from pypto_egg.extract.cost import CostVector as CostVector
    from pypto_egg.extract.cost import OpInstance as OpInstance
    from pypto_egg.extract.cost import register_cost_model as register_cost_model
    from pypto_egg.extract.cost.simulate import simulate as simulate
    from pypto_egg.extract.cost.timeline import Timeline as Timeline
    from pypto_egg.fronts import LoweringPoint as LoweringPoint
    from pypto_egg.fronts import pareto as pareto
    from pypto_egg.interp import compare as compare
    from pypto_egg.interp import random_inputs as random_inputs
    from pypto_egg.interp import run as run
    from pypto_egg.lowering import Lowering as Lowering
    from pypto_egg.pipeline import lower as lower
    from pypto_egg.pipeline import optimize as optimize
    from pypto_egg.ranked import k_best as k_best
    from pypto_egg.rulesets.ruleset import RuleSet as RuleSet
    from pypto_egg.rulesets.ruleset import when as when
    from pypto_egg.target import Target as Target
    from pypto_egg.target import load_overrides as load_overrides
    from pypto_egg.target import load_target as load_target
    from pypto_egg.text import parse as parse
    from pypto_egg.text import parse_file as parse_file
    from pypto_egg.text import print_program as print_program
    from pypto_egg.verify import verify_program as verify_program

_HOME = {
    "Calibration": "pypto_egg.calibration",
    "calibrate": "pypto_egg.calibration",
    "PyptoEggError": "pypto_egg.errors",
    "CostModel": "pypto_egg.extract.cost",
    "CostVector": "pypto_egg.extract.cost",
    "OpInstance": "pypto_egg.extract.cost",
    "register_cost_model": "pypto_egg.extract.cost",
    "simulate": "pypto_egg.extract.cost.simulate",
    "Timeline": "pypto_egg.extract.cost.timeline",
    "LoweringPoint": "pypto_egg.fronts",
    "pareto": "pypto_egg.fronts",
    "compare": "pypto_egg.interp",
    "random_inputs": "pypto_egg.interp",
    "run": "pypto_egg.interp",
    "Lowering": "pypto_egg.lowering",
    "lower": "pypto_egg.pipeline",
    "optimize": "pypto_egg.pipeline",
    "k_best": "pypto_egg.ranked",
    "RuleSet": "pypto_egg.rulesets.ruleset",
    "when": "pypto_egg.rulesets.ruleset",
    "Target": "pypto_egg.target",
    "load_overrides": "pypto_egg.target",
    "load_target": "pypto_egg.target",
    "parse": "pypto_egg.text",
    "parse_file": "pypto_egg.text",
    "print_program": "pypto_egg.text",
    "verify_program": "pypto_egg.verify",
}

__all__ = sorted(_HOME)
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'pypto_egg' has no attribute '{name}'")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})
