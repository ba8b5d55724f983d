"""Makes `real_kernels`, the inputs and references of the kernels in bench, importable."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
