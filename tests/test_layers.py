"""The import direction of the packages, and what a plain import may drag in."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "pypto_egg"
LINKED = ("rulesets", "extract", "bench")

# What each package may import from the project, itself apart. Packages that are not listed face
# the user (pipeline, cli, report, bench) and may import anything.
ALLOWED: dict[str, set[str]] = {
    "source": set(),
    "errors": {"source"},
    "ir": {"errors", "source"},
    "ops": {"ir", "errors", "source"},
    "text": {"ops", "ir", "errors", "source"},
    "target": {"ir", "ops", "errors", "source"},
    "analysis": {"ops", "ir", "errors", "source"},
    "verify": {"analysis", "ops", "ir", "errors", "source"},
    "l0": {"target", "ops", "ir", "errors", "source"},
    "egraph": {"l0", "analysis", "verify", "target", "text", "ops", "ir", "errors", "source"},
    "rulesets": {"egraph", "analysis", "target", "ops", "ir", "errors", "source"},
    "extract": {"l0", "egraph.snapshot", "target", "analysis", "ops", "ir", "errors", "source"},
    "emit": {"l0", "extract.result", "egraph", "analysis", "ops", "ir", "errors", "source"},
    "interp": {"ops", "ir", "errors", "source"},
    "nz": {"target", "ops", "ir", "errors", "source"},
}
EGGLOG_USERS = {"egraph", "rulesets"}
NAMES = ("pypto_egg", "pypto_egg.text", "pypto_egg.cli", "pypto_egg.extract")
LIGHT = [m for m in NAMES if find_spec(m) is not None]
HEAVY = ("egglog", "ortools", "matplotlib", "duckdb", "ray")


def sources() -> list[Path]:
    """Every module of the package, each once; files behind the linked folders under their link."""
    found = [
        p for p in sorted(PACKAGE.rglob("*.py")) if p.relative_to(PACKAGE).parts[0] not in LINKED
    ]
    for link in LINKED:
        found += sorted((ROOT / link).rglob("*.py"))
    return found


def package_of(path: Path) -> str:
    """The first name below pypto_egg: `ir` for pypto_egg/ir/expr.py, `errors` for errors.py."""
    base = PACKAGE if path.is_relative_to(PACKAGE) else ROOT
    return path.relative_to(base).parts[0].removesuffix(".py")


def imports(text: str, module: tuple[str, ...]) -> Iterator[tuple[int, str]]:
    """Line and dotted name of every import in a module's text, those inside functions too."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            anchor = module[: len(module) - node.level] if node.level else ()
            base = (*anchor, *(node.module.split(".") if node.module else ()))
            yield from ((node.lineno, ".".join((*base, alias.name))) for alias in node.names)


def imports_of(path: Path) -> Iterator[tuple[int, str]]:
    base = PACKAGE if path.is_relative_to(PACKAGE) else ROOT
    module = ("pypto_egg", *path.relative_to(base).with_suffix("").parts)
    return imports(path.read_text(encoding="utf-8"), module)


def may_import(package: str, name: str) -> bool:
    """Whether a package may import a dotted name; names outside the project are free."""
    if package not in ALLOWED or not name.startswith("pypto_egg."):
        return True
    target = name.removeprefix("pypto_egg.")
    return any(
        target == allowed or target.startswith(allowed + ".")
        for allowed in (package, *ALLOWED[package])
    )


def test_imports_follow_the_architecture() -> None:
    broken = [
        f"{path.relative_to(ROOT)}:{line} imports {name}"
        for path in sources()
        for line, name in imports_of(path)
        if not may_import(package_of(path), name)
    ]
    assert broken == []


def test_the_direction_is_read_from_every_form_of_import() -> None:
    text = """
import pypto_egg.egraph.load
from pypto_egg.ops import registry
from .types import Type
from ..egraph import snapshot
def late():
    from pypto_egg.text import parse
"""
    names = [name for _, name in imports(text, ("pypto_egg", "ir", "expr"))]
    assert names == [
        "pypto_egg.egraph.load",
        "pypto_egg.ops.registry",
        "pypto_egg.ir.types.Type",
        "pypto_egg.egraph.snapshot",
        "pypto_egg.text.parse",
    ]
    assert [may_import("ir", name) for name in names] == [False, False, True, False, False]


def test_extraction_sees_the_snapshot_and_no_more_of_the_egraph() -> None:
    assert may_import("extract", "pypto_egg.egraph.snapshot.TileGraph")
    assert not may_import("extract", "pypto_egg.egraph.load.load")
    assert not may_import("extract", "pypto_egg.egraph.snapshots")
    assert not may_import("emit", "pypto_egg.extract.tree")


def test_every_package_has_a_place_in_the_direction() -> None:
    faces = {
        "__init__",
        "__main__",
        "cli",
        "cli_bench",
        "cli_report",
        "cli_streams",
        "cli_target",
        "report",
        "bench",
    }
    faces |= {
        "pipeline",
        "lowering",
        "lower_function",
        "lower_once",
        "price",
        "diagnose",
        "account",
    }
    faces |= {"calibration", "equivalence", "fronts", "options", "packing"}
    faces |= {
        "block_costs",
        "cli_extract",
        "cli_l0",
        "cli_lowering",
        "ranked",
        "scheduling",
        "simulated",
        "trial",
    }
    unplaced = {package_of(path) for path in sources()} - set(ALLOWED) - faces
    assert unplaced == set()


def test_only_egraph_and_rulesets_know_egglog() -> None:
    users = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources()
        for line, name in imports_of(path)
        if name.split(".")[0] == "egglog" and package_of(path) not in EGGLOG_USERS
    ]
    assert users == []


@pytest.mark.parametrize("module", LIGHT)
def test_a_plain_import_stays_light(module: str) -> None:
    code = f"import sys, {module}\nprint(*sorted(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == []


@pytest.mark.parametrize("name", LINKED)
def test_the_linked_folders_are_folders(name: str) -> None:
    link = PACKAGE / name
    assert link.is_dir(), "a clone without support for links has text files here"
    assert os.path.samefile(link, ROOT / name)
