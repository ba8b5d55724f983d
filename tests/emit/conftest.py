"""Makes the builders of this folder and of tests/lowering importable here."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "lowering")]
