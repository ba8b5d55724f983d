"""Makes the programs of this folder, and those of tests/lowering, importable under pytest's
importlib mode."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lowering")]
