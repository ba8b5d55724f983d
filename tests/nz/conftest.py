"""Makes the builders of this folder, and the machine of tests/emit, importable here."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "emit")]
