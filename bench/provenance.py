"""Where results come from: the revision of pypto-egg, versions of what it uses, constants."""

from __future__ import annotations

import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from pypto_egg import __version__

# What can change a result: the engine, the solver, the arithmetic.
_USED = ("egglog", "numpy", "ortools", "scipy")


def revision() -> str:
    """The git revision of a checkout, with "+" where its files differ; else the version."""
    root = Path(__file__).resolve().parents[1]
    if not (root / "pyproject.toml").is_file() or not (root / ".git").exists():
        return f"v{__version__}"
    try:
        head = _git(root, "rev-parse", "--short=12", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return f"v{__version__}"
    return head + ("+" if changed else "")


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def versions() -> dict[str, str]:
    """Name -> version of pypto-egg, of Python, and of the libraries that results depend on."""
    found = {"pypto_egg": __version__, "python": platform.python_version()}
    for name in _USED:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "unknown"
    return found
