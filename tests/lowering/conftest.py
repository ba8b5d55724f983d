"""Makes `kernels` and `generate`, the builders of this folder's programs, importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
