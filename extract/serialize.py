"""Reader and writer of the egraph-serialize JSON form of an extraction problem.

The form is that of the egraph-serialize crate: `{"nodes": {id: {"op", "children": [node ids],
"eclass", "cost", "subsumed"}}, "root_eclasses": [...]}`. What the form has no place for is kept in
further keys that other readers ignore: `requires` (node ids) and `cycles` (pipe name -> cost part)
in a node, `constraints`, `forbidden` and `pipes` (the pipes' names) at the top.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from pypto_egg.errors import ExtractionError
from pypto_egg.extract.problem import Constraint, Problem


def read_problem(path: str | Path) -> Problem:
    """The problem stored in a file.

    Raises:
        ExtractionError: the file cannot be read, or does not hold an e-graph.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExtractionError(f"cannot read the e-graph {str(path)!r}: {error}") from error
    return problem_from_json(text)


def write_problem(problem: Problem, path: str | Path) -> None:
    """Stores a problem in a file; see `problem_to_json`."""
    try:
        Path(path).write_text(problem_to_json(problem), encoding="utf-8")
    except OSError as error:
        raise ExtractionError(f"cannot write the e-graph {str(path)!r}: {error}") from error


def problem_from_json(text: str) -> Problem:
    """The problem that a JSON text describes; ids become positions in the order of the text.

    A missing cost is 1, as in the egraph-serialize crate. A subsumed node is read as forbidden.

    Raises:
        ExtractionError: not JSON, or not an e-graph; the message names the node and the key.
    """
    top = _parse(text)
    nodes = _mapping(top.get("nodes"), "`nodes`")
    fields = {name: _mapping(node, f"node {name!r}") for name, node in nodes.items()}
    owner = {
        name: _text(node.get("eclass"), f"`eclass` of {name!r}") for name, node in fields.items()
    }
    classes = {name: i for i, name in enumerate(dict.fromkeys(owner.values()))}
    position = {name: i for i, name in enumerate(nodes)}

    def class_row(name: str, key: str) -> list[int]:
        row = _list(fields[name].get(key, []), f"`{key}` of node {name!r}")
        return [
            classes[owner[_known(child, position, f"`{key}` of node {name!r}")]] for child in row
        ]

    def node_position(name: Any, where: str) -> int:
        return position[_known(name, position, where)]

    roots = []
    for root in _list(top.get("root_eclasses"), "`root_eclasses`"):
        if not isinstance(root, str) or root not in classes:
            raise ExtractionError(f"root class {root!r} has no node in the e-graph")
        roots.append(classes[root])
    subsumed = [[position[name]] for name, node in fields.items() if _flag(node, name)]
    groups = [
        [node_position(name, "`forbidden`") for name in _list(group, "an entry of `forbidden`")]
        for group in _list(top.get("forbidden", []), "`forbidden`")
    ]
    constraints = [
        _constraint(entry, position) for entry in _list(top.get("constraints", []), "`constraints`")
    ]
    pipes = [_text(p, "an entry of `pipes`") for p in _list(top.get("pipes", []), "`pipes`")]
    problem = Problem(
        node_class=[classes[owner[name]] for name in nodes],
        node_children=[class_row(name, "children") for name in nodes],
        node_requires=[class_row(name, "requires") for name in nodes],
        node_cost=np.array(_numbers(fields), dtype=np.float64),
        node_op=[_text(node.get("op"), f"`op` of node {name!r}") for name, node in fields.items()],
        node_name=list(nodes),
        class_name=list(classes),
        roots=roots,
        constraints=constraints,
        forbidden=[*subsumed, *groups],
        node_vector=_cycles(fields, pipes) if pipes else None,
        pipes=pipes,
    )
    if not roots:
        raise ExtractionError(
            "`root_eclasses` in the e-graph JSON is empty", hint="name the classes to extract there"
        )
    return problem


def problem_to_json(problem: Problem) -> str:
    """The JSON text of a problem; `problem_from_json` gives the same problem back.

    Raises:
        ExtractionError: a class that is referred to has no node, which the form cannot express.
    """
    names = problem.node_name
    first = [nodes[0] if nodes else None for nodes in problem.class_nodes]

    def refer(cls: int) -> str:
        node = first[cls]
        if node is None:
            raise ExtractionError(
                f"class {problem.class_name[cls]!r} has no node, so no node can refer to it in JSON"
            )
        return names[node]

    subsumed = {group[0] for group in problem.forbidden if len(group) == 1}
    nodes: dict[str, dict[str, Any]] = {}
    for node, name in enumerate(names):
        nodes[name] = {
            "op": problem.node_op[node],
            "children": [refer(cls) for cls in problem.node_children[node]],
            "eclass": problem.class_name[problem.node_class[node]],
            "cost": float(problem.node_cost[node]),
            "subsumed": node in subsumed,
        }
        if problem.node_requires[node]:
            nodes[name]["requires"] = [refer(cls) for cls in problem.node_requires[node]]
        if problem.node_vector is not None:
            row = problem.node_vector[node].tolist()
            nodes[name]["cycles"] = dict(zip(problem.pipes, row, strict=True))
    for root in problem.roots:
        refer(root)
    top: dict[str, Any] = {
        "nodes": nodes,
        "root_eclasses": [problem.class_name[root] for root in problem.roots],
    }
    if problem.pipes:
        top["pipes"] = list(problem.pipes)
    if problem.constraints:
        top["constraints"] = [
            {
                "name": constraint.name,
                "limit": float(constraint.limit),
                "weights": {
                    names[node]: float(weight) for node, weight in constraint.weights.items()
                },
            }
            for constraint in problem.constraints
        ]
    groups = [[names[node] for node in group] for group in problem.forbidden if len(group) > 1]
    if groups:
        top["forbidden"] = groups
    return json.dumps(top, indent=1) + "\n"


def _parse(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text, object_pairs_hook=_no_duplicates)
    except RecursionError:
        raise ExtractionError("the e-graph JSON is nested too deeply") from None
    except ValueError as error:
        raise ExtractionError(f"the e-graph is not JSON: {error}") from error
    return _mapping(value, "the top level")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise ExtractionError(f"the e-graph JSON has the key {key!r} twice")
        seen.add(key)
    return result


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ExtractionError(f"{where} of the e-graph JSON must be an object, not {_kind(value)}")
    return value


def _list(value: Any, where: str) -> list[Any]:
    if not isinstance(value, list):
        raise ExtractionError(f"{where} in the e-graph JSON must be a list, not {_kind(value)}")
    return value


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise ExtractionError(f"{where} in the e-graph JSON must be text, not {_kind(value)}")
    return value


def _number(value: Any, where: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ExtractionError(f"{where} in the e-graph JSON must be a number, not {_kind(value)}")
    try:
        return float(value)
    except OverflowError:
        raise ExtractionError(f"{where} in the e-graph JSON does not fit a float") from None


def _numbers(fields: Mapping[str, Mapping[str, Any]]) -> list[float]:
    return [
        _number(node.get("cost", 1.0), f"`cost` of node {name!r}") for name, node in fields.items()
    ]


def _cycles(fields: Mapping[str, Mapping[str, Any]], pipes: list[str]) -> npt.NDArray[np.float64]:
    rows = []
    for name, node in fields.items():
        where = f"`cycles` of node {name!r}"
        parts = _mapping(node.get("cycles", {}), where)
        for pipe in parts:
            if pipe not in pipes:
                raise ExtractionError(f"{where} names pipe {pipe!r}, which is not in `pipes`")
        rows.append([_number(parts.get(pipe, 0.0), where) for pipe in pipes])
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(pipes))


def _flag(node: Mapping[str, Any], name: str) -> bool:
    value = node.get("subsumed", False)
    if not isinstance(value, bool):
        raise ExtractionError(
            f"`subsumed` of node {name!r} must be true or false, not {_kind(value)}"
        )
    return value


def _known(name: Any, position: Mapping[str, int], where: str) -> str:
    if not isinstance(name, str) or name not in position:
        raise ExtractionError(f"{where} names node {name!r}, which the e-graph does not have")
    return name


def _constraint(entry: Any, position: Mapping[str, int]) -> Constraint:
    fields = _mapping(entry, "an entry of `constraints`")
    name = _text(fields.get("name"), "`name` of a constraint")
    weights = _mapping(fields.get("weights"), f"`weights` of constraint {name!r}")
    where = f"constraint {name!r}"
    return Constraint(
        name,
        {position[_known(n, position, where)]: _number(w, where) for n, w in weights.items()},
        _number(fields.get("limit"), f"`limit` of {where}"),
    )


def _kind(value: Any) -> str:
    return "missing" if value is None else type(value).__name__
