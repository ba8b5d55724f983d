"""Reference execution of tensor and tile programs in numpy, with real byte orders and poison."""

from pypto_egg.interp.compare import Comparison, Difference, compare, compare_outputs
from pypto_egg.interp.inputs import random_inputs
from pypto_egg.interp.run import Outputs, entry_function, run
from pypto_egg.interp.work import work

__all__ = [
    "Comparison",
    "Difference",
    "Outputs",
    "compare",
    "compare_outputs",
    "entry_function",
    "random_inputs",
    "run",
    "work",
]
