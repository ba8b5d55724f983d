"""Requirement ids and the tests that carry them, read from the tests' own marks."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pypto_egg
from pypto_egg.errors import OptionError


def tests_folder() -> Path:
    """The tests of the checkout that this package runs from.

    Raises:
        OptionError: the package is installed without its checkout.
    """
    folder = Path(pypto_egg.__file__).resolve().parent.parent / "tests"
    if not folder.is_dir():
        raise OptionError(
            "the tests are not part of an installed package",
            hint="run this in a checkout, or after `pip install -e .`",
        )
    return folder


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
