"""What a problem accepts, and its file form."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.errors import ExtractionError
from pypto_egg.extract import (
    Constraint,
    Problem,
    problem_from_json,
    problem_to_json,
    read_problem,
    write_problem,
)


def small(**changes) -> Problem:
    """`exp(load(x))` with two ways to load."""
    fields = {
        "node_class": [0, 1, 1],
        "node_children": [[1], [], []],
        "node_cost": np.array([4.0, 1.5, 2.0]),
        "roots": [0],
        "node_op": ["tile.exp", "tile.load", "tile.load"],
        "node_name": ["exp", "load nd", "load nz"],
        "class_name": ["result", "operand"],
    }
    return Problem(**{**fields, **changes})


def test_fields_are_immutable_and_indexed_by_class():
    problem = small()
    assert problem.class_nodes == ((0,), (1, 2))
    with pytest.raises(ValueError, match="read-only"):
        problem.node_cost[0] = 1.0
    with pytest.raises(AttributeError):
        problem.roots = (1,)


def test_names_are_made_up_when_none_are_given():
    problem = Problem([0, 1], [[1], []], np.array([1.0, 2.0]), [0])
    assert problem.class_name == ("c0", "c1")
    assert problem.node_name == problem.node_op == ("n0", "n1")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"node_cost": [1, 2]}, "node_cost has 2 entries but node_class has 3"),
        ({"node_cost": [[1], [2], [3]]}, "node_cost has 2 axes"),
        ({"node_cost": [1, 2, float("nan")]}, "node 'load nz' .* has cost nan"),
        ({"node_cost": [1, -2, 3]}, "op 'tile.load', class 'operand'.* has cost -2"),
        ({"node_cost": [1, float("inf"), 3]}, "`forbidden`"),
        ({"node_cost": ["a", "b", "c"]}, "not an array of numbers"),
        ({"node_children": [[2], [], []]}, "node 'exp' names class 2, which does not exist"),
        ({"node_requires": [[], [-1], []]}, "names class -1"),
        ({"roots": [7]}, "root class 7 does not exist; there are 2"),
        ({"class_name": ["a", "a"]}, "class names are 'a'"),
        (
            {"node_vector": np.zeros((3, 2)), "pipes": ["cube"]},
            r"shape \(3, 2\), needed .*\(3, 1\)",
        ),
        ({"forbidden": [[]]}, "forbidden set is empty"),
        ({"forbidden": [[3]]}, "names node 3"),
        ({"constraints": [Constraint("Vec bytes", {1: -1}, 3)]}, "'Vec bytes' .* weight -1"),
        ({"constraints": [Constraint("Vec bytes", {9: 1}, 3)]}, "'Vec bytes' names node 9"),
        ({"constraints": [Constraint("Vec bytes", {}, float("nan"))]}, "has limit nan"),
    ],
)
def test_what_does_not_fit_is_refused_in_the_users_names(changes, words):
    with pytest.raises(ExtractionError, match=words):
        small(**changes)


def same(a: Problem, b: Problem) -> bool:
    return (
        a.node_cost.tolist() == b.node_cost.tolist()
        and {frozenset(g) for g in a.forbidden} == {frozenset(g) for g in b.forbidden}
        and [(c.name, dict(c.weights), c.limit) for c in a.constraints]
        == [(c.name, dict(c.weights), c.limit) for c in b.constraints]
        and all(
            getattr(a, f) == getattr(b, f)
            for f in ("node_op", "node_name", "node_requires", "node_children", "roots")
        )
    )


@settings(max_examples=100)
@given(data=st.data())
def test_json_text_gives_the_same_problem_back(data, problems):
    problem = data.draw(problems())
    again = problem_from_json(problem_to_json(problem))
    assert same(problem, again)
    assert problem_to_json(again) == problem_to_json(problem)


def test_a_file_of_the_egraph_serialize_crate_is_read(tmp_path):
    path = tmp_path / "graph.json"
    path.write_text(
        json.dumps(
            {
                "nodes": {
                    "a": {"op": "+", "children": ["b", "b"], "eclass": "1", "cost": 2.0},
                    "b": {"op": "x", "children": [], "eclass": "2"},
                    "c": {"op": "y", "eclass": "2", "cost": 0.5, "subsumed": True},
                },
                "root_eclasses": ["1"],
                "class_data": {"1": {"type": "Math"}},
            }
        )
    )
    problem = read_problem(path)
    assert problem.node_children == ((1, 1), (), ())
    assert problem.node_cost.tolist() == [2.0, 1.0, 0.5]
    assert problem.forbidden == ((2,),)
    write_problem(problem, path)
    assert same(read_problem(path), problem)


NODE = {"op": "x", "children": [], "eclass": "1", "cost": 1}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not JSON"),
        ("[]", "top level .* must be an object, not list"),
        ("{}", "`nodes` .* not missing"),
        ('{"nodes": {"a": 3}, "root_eclasses": []}', "node 'a' .* not int"),
        ('{"nodes": {"a": {}, "a": {}}, "root_eclasses": []}', "key 'a' twice"),
        ('{"nodes": {"a": {"op": "x"}}, "root_eclasses": []}', "`eclass` of 'a' .* missing"),
        (json.dumps({"nodes": {"a": NODE}}), "`root_eclasses` .* missing"),
        (json.dumps({"nodes": {"a": NODE}, "root_eclasses": ["2"]}), "root class '2' has no node"),
        (
            json.dumps({"nodes": {"a": {**NODE, "children": ["b"]}}, "root_eclasses": []}),
            "`children` of node 'a' names node 'b'",
        ),
        (
            json.dumps({"nodes": {"a": {**NODE, "cost": "1"}}, "root_eclasses": []}),
            "`cost` of node 'a' .* a number, not str",
        ),
        (
            json.dumps({"nodes": {"a": {**NODE, "cost": True}}, "root_eclasses": []}),
            "a number, not bool",
        ),
        (
            json.dumps({"nodes": {"a": {**NODE, "cost": 10**400}}, "root_eclasses": []}),
            "does not fit a float",
        ),
        ('{"nodes": {"a": {"op": "x", "eclass": "1", "cost": NaN}}, "root_eclasses": []}', "nan"),
        (
            json.dumps({"nodes": {"a": {**NODE, "subsumed": 1}}, "root_eclasses": []}),
            "true or false",
        ),
        (
            json.dumps({"nodes": {"a": NODE}, "root_eclasses": [], "constraints": [{"name": "k"}]}),
            "`weights` of constraint 'k'",
        ),
        ("[" * 200_000, "nested too deeply"),
    ],
)
def test_a_bad_file_is_refused_with_its_place(text, words):
    with pytest.raises(ExtractionError, match=words):
        problem_from_json(text)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(ExtractionError, match=r"cannot read .*missing\.json"):
        read_problem(tmp_path / "missing.json")
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    with pytest.raises(ExtractionError, match=r"cannot read .*binary\.json"):
        read_problem(tmp_path / "binary.json")


def test_an_empty_class_has_no_json_form():
    problem = Problem([0], [[1]], np.array([1.0]), [0], class_name=["a", "empty"])
    with pytest.raises(ExtractionError, match="class 'empty' has no node"):
        problem_to_json(problem)
