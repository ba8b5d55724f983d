"""Requirement ids: what they say, and the tests that carry them, read from the tests' marks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from pathlib import Path

import pypto_egg
from pypto_egg.errors import OptionError
from pypto_egg.report.requirement_texts import TEXTS


def requirements_text(ids: Sequence[str] = (), *, tests: bool = False) -> str:
    """A line for each requirement, or for each of `ids`: what it says and how many tests carry it.

    Tests are counted in a checkout only; of an installed package the texts are given.

    Args:
        tests: list the tests too.

    Raises:
        OptionError: an id is not known; tests are asked for outside a checkout.
    """
    folder = tests_folder()
    if folder is None and tests:
        raise OptionError(
            "the tests are not part of an installed package",
            hint="run this in a checkout, or after `pip install -e .`",
        )
    found = covered(folder) if folder is not None else {}
    known = sorted({*TEXTS, *found})
    for name in ids:
        if name not in known:
            raise OptionError(
                f"there is no requirement '{name}'", hint="`pypto-egg requirements` lists them"
            )
    lines = []
    for requirement in ids or known:
        names = found.get(requirement, [])
        count = f"{len(names):>3} test{'s' if len(names) != 1 else ' '}  " if folder else ""
        lines.append(f"{requirement}  {count}{TEXTS.get(requirement, '')}".rstrip())
        lines += [f"    {name}" for name in names] if tests else []
    if folder and not ids:
        lines.append(f"{len(found)} requirements are covered")
    return "\n".join(lines) + "\n"


def tests_folder() -> Path | None:
    """The tests of the checkout that this package runs from; None for an installed package."""
    folder = Path(pypto_egg.__file__).resolve().parent.parent / "tests"
    return folder if (folder.parent / "pyproject.toml").is_file() and folder.is_dir() else None


def covered(folder: Path) -> dict[str, list[str]]:
    """Requirement id -> the tests marked with it, as pytest writes them, both in order."""
    found: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        place = path.relative_to(folder.parent).as_posix()
        tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
        for name, requirement in _marks(tree.body, f"{place}::", _module_marks(tree)):
            tests = found.setdefault(requirement, [])
            if name not in tests:
                tests.append(name)
    return dict(sorted(found.items()))


def _module_marks(tree: ast.Module) -> list[str]:
    marks: list[str] = []
    for stmt in tree.body:
        targets = stmt.targets if isinstance(stmt, ast.Assign) else ()
        if any(isinstance(t, ast.Name) and t.id == "pytestmark" for t in targets):
            marks += _ids(stmt)
    return marks


def _marks(body: list[ast.stmt], prefix: str, outer: list[str]) -> Iterator[tuple[str, str]]:
    """(test, id) of the functions and classes of a body; a class' marks are its tests' too."""
    for stmt in body:
        match stmt:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if stmt.name.startswith("test"):
                for requirement in (*outer, *_decorator_ids(stmt.decorator_list)):
                    yield prefix + stmt.name, requirement
            case ast.ClassDef() if stmt.name.startswith("Test"):
                marks = [*outer, *_decorator_ids(stmt.decorator_list)]
                yield from _marks(stmt.body, f"{prefix}{stmt.name}::", marks)


def _decorator_ids(decorators: list[ast.expr]) -> list[str]:
    return [found for decorator in decorators for found in _ids(decorator)]


def _ids(node: ast.AST) -> list[str]:
    """The string arguments of every `pytest.mark.req(...)` below a node."""
    return [
        arg.value
        for call in ast.walk(node)
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.mark.req"
        for arg in call.args
        if isinstance(arg, ast.Constant) and isinstance(arg.value, str)
    ]
