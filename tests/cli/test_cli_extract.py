"""`pypto-egg extract`: e-graphs in JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., Any]


def node(eclass: str, cost: float, *children: str, **more: object) -> dict[str, object]:
    return {"op": f"op{cost}", "eclass": eclass, "cost": cost, "children": children, **more}


EGRAPH = {
    "nodes": {
        "a": node("top", 1, "b"),
        "a2": node("top", 6),
        "b": node("part", 2),
        "b2": node("part", 3),
    },
    "root_eclasses": ["top"],
}


@pytest.fixture
def egraph(tmp_path: Path) -> Path:
    path = tmp_path / "egraph.json"
    path.write_text(json.dumps(EGRAPH), encoding="utf-8")
    return path


def test_the_cheapest_selection_is_listed_children_first(pypto_egg: Command, egraph: Path) -> None:
    done = pypto_egg("extract", egraph)
    first, _, *table = done.out.splitlines()
    assert done.code == 0
    assert first.startswith("cost 3, bound 3, optimal; 2 classes; exact, ")
    assert [line.split() for line in table] == [
        ["class", "node", "op", "cost"],
        ["part", "b", "op2", "2"],
        ["top", "a", "op1", "1"],
    ]


def test_the_k_best_are_ranked(pypto_egg: Command, egraph: Path) -> None:
    done = pypto_egg("extract", egraph, "--k-best", "5", "--json", "-")
    record = json.loads(done.out)
    assert [s["cost"] for s in record["selections"]] == [3, 4, 6]
    assert record["selections"][1]["choices"] == {"part": "b2", "top": "a"}
    assert record["bound"] is None
    lines = pypto_egg("extract", egraph, "--k-best", "2").out.splitlines()
    assert [line[:9] for line in lines[:2]] == ["1: cost 3", "2: cost 4"]


def test_standard_input_and_a_heuristic(pypto_egg: Command) -> None:
    done = pypto_egg("extract", "-", "--method", "tree", stdin=json.dumps(EGRAPH))
    assert done.out.startswith("cost 3, bound 0, feasible; 2 classes; tree, ")


def test_the_busiest_pipe(pypto_egg: Command, tmp_path: Path) -> None:
    path = tmp_path / "pipes.json"
    nodes = {
        "a": node("top", 0, "b", "c"),
        "b": node("left", 3, cycles={"cube": 3}),
        "b2": node("left", 4, cycles={"vector": 4}),
        "c": node("right", 3, cycles={"cube": 3}),
    }
    top = {"nodes": nodes, "root_eclasses": ["top"], "pipes": ["cube", "vector"]}
    path.write_text(json.dumps(top), encoding="utf-8")
    assert pypto_egg("extract", path).out.startswith("cost 6, ")
    done = pypto_egg("extract", path, "--objective", "bottleneck")
    assert done.out.startswith("cost 4, bound 4, optimal; ")
    done = pypto_egg("extract", path, "--objective", "bottleneck", "--not-overlapped", "vector")
    assert done.out.startswith("cost 6, ")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"root_eclasses": []}, "`root_eclasses` in the e-graph JSON is empty"),
        ({"root_eclasses": ["gone"]}, "root class 'gone' has no node"),
        ({"nodes": {"a": node("top", float("nan"))}}, "has cost nan"),
        ({"nodes": {"a": node("top", -1)}}, "has cost -1.0"),
        ({"nodes": {"a": node("top", 1e999)}}, "has cost inf"),
        ({"nodes": {"a": {**node("top", 1), "cost": None}}}, "must be a number, not missing"),
        ({"nodes": {"a": node("top", 1, "zzz")}}, "names node 'zzz'"),
        ({"nodes": {"a": node("top", 1, "a")}}, "root class 'top' has no finite term"),
        ({"nodes": {"a": node("top", 1, cycles={"cube": 1})}, "pipes": ["mte2"]}, "pipe 'cube'"),
        (
            {"constraints": [{"name": "Vec bytes", "weights": {"a": 1, "a2": 1}, "limit": 0}]},
            "no selection meets these constraints together: 'Vec bytes'",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_one_error(
    pypto_egg: Command, tmp_path: Path, change: dict[str, object], words: str
) -> None:
    path = tmp_path / "wrong.json"
    changed = json.dumps({**EGRAPH, **change})
    path.write_text(changed, encoding="utf-8")
    done = pypto_egg("extract", path)
    assert done.code == 1
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert words in done.err


def test_a_file_that_is_not_there(pypto_egg: Command, tmp_path: Path) -> None:
    done = pypto_egg("extract", tmp_path / "none.json")
    assert done.code == 1
    assert "cannot read the e-graph" in done.err


def test_the_egraphs_of_a_lowering_are_what_extract_reads(
    pypto_egg: Any, biased: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "graphs"
    done = pypto_egg("optimize", biased, "--json", "-", "--egraphs", folder)
    (file,) = folder.iterdir()
    assert file.name == "linear.json"
    found = json.loads(pypto_egg("extract", file, "--json", "-").out)
    assert found["selections"][0]["cost"] == pytest.approx(json.loads(done.out)["cycles"], rel=1e-4)
    assert pypto_egg("optimize", biased, "--egraphs", file).code == 1
