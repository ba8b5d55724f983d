"""Makes the rows of this folder, and the reader of pages of tests/report, importable here."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "report")]
