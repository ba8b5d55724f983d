"""Every document runs, and prints what it says it prints.

`PYPTO_EGG_UPDATE_DOCS=1 pytest tests/docs` writes what was printed into the documents.
"""

from __future__ import annotations

import doctest
import os
import re
from pathlib import Path

import documents
import pytest
from documents import DOCUMENTS, README, ROOT

UPDATE = os.environ.get("PYPTO_EGG_UPDATE_DOCS") == "1"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_blocks_print_what_the_document_says(
    path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("PYPTO_EGG_BENCH", str(tmp_path / "bench.duckdb"))
    outputs = documents.run_document(path)
    if UPDATE:
        text = path.read_text(encoding="utf-8")
        path.write_text(documents.updated(text, outputs), encoding="utf-8")
    for output in outputs:
        assert UPDATE or documents.steady(output.actual) == documents.steady(output.expected)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_at_the_prompt(path: Path) -> None:
    result = doctest.testfile(str(path), module_relative=False, encoding="utf-8")
    assert result.failed == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_links_lead_to_files_that_exist(path: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", path.read_text(encoding="utf-8"))
    local = [link for link in links if "://" not in link]
    missing = [link for link in local if not (path.parent / link).exists()]
    assert missing == []


def test_the_readme_names_every_document_and_every_folder() -> None:
    text = README.read_text(encoding="utf-8")
    for document in DOCUMENTS[1:]:
        assert f"docs/{document.name}" in text
    folders = [p.parent.name for p in sorted((ROOT / "pypto_egg").glob("*/__init__.py"))]
    for name in (*folders, "tests"):
        assert f"`{name}/`" in text or f"`pypto_egg/{name}/`" in text, name


def test_an_own_ruleset_and_an_own_cost_model_are_short() -> None:
    found = documents.blocks(README.read_text(encoding="utf-8"))
    for word in ("RuleSet(", "(CostModel)"):
        (block,) = [b for b in found if b.language == "python" and word in b.text]
        assert len([line for line in block.text.splitlines() if line.strip()]) < 25


def test_the_script_runs_what_the_readme_says() -> None:
    text, script = README.read_text(encoding="utf-8"), (ROOT / ".ci" / "run").read_text()
    (line,) = re.findall(r"^    (pip install -e .*)$", text, re.MULTILINE)
    for command in line.split(" && "):
        name, *rest = command.split()
        assert re.search(rf"^{name} .*{re.escape(' '.join(rest[-1:]))}$|^{name}$", script, re.M), (
            command
        )
    assert "optimize" in script
    assert "bench/kernels/qwen3_decode_proj.py" in script


def test_an_output_that_differs_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "document.md"
    path.write_text("```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n")
    (output,) = documents.run_document(path)
    assert (output.expected, output.actual, output.agrees) == ("3\n", "2\n", False)
    assert documents.updated(path.read_text(), [output]).endswith("```text\n2\n```\n")


def test_times_do_not_matter() -> None:
    first = "saturated after 9 iterations, 395 nodes; extraction optimal; 0.06 s"
    second = "saturated after 10 iterations, 400 nodes; extraction optimal; 1.25 s"
    assert documents.steady(first) == documents.steady(second)
    run = "models-1  7/7  2026-11-30 13:23  f8e866026b86+"
    other = "models-1  7/7  2027-01-02 03:04   0123456789ab"
    assert documents.steady(run) == documents.steady(other)
    assert documents.steady("112 rows") != documents.steady("128 rows")
