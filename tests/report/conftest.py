"""Makes the programs of this folder, and the builders of tests/lowering, importable here."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parent.parent / "lowering")]
