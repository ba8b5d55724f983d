"""Any text gives a program or one of our errors with a place, never a raw traceback.

Valid programs are changed at random, on tokens and on the syntax tree; what still reads must
print and read back unchanged. The seeds are fixed, so a failure repeats.
"""

from __future__ import annotations

import ast
import copy
import random
import re
from pathlib import Path

import pytest

from pypto_egg.errors import PyptoEggError
from pypto_egg.ir.program import Program
from pypto_egg.text import parse, print_program

PROGRAMS = Path(__file__).parent.parent / "programs"
TEXTS = [
    path.read_text()
    for pattern in ("language/*.py.txt", "pypto/*_l*.txt")
    for path in sorted(PROGRAMS.glob(pattern))
]
TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
STRAY = [
    "lambda x: x", "**", "-1", "1e999", "'s'", "None", "...", "[:]", "*a", "a if b else c", "yield",
    "9" * 30, "a<b<c", "\\", "\t", "é", "{}", "()", "self", "pl.Mem.Vec", "pl.FP32", "pl",
    "\0", "#",
]  # fmt: skip
EXPRESSIONS = [
    "x[0]", "x[1:2, :]", "-x", "not x", "x + 1", "1 < 2", "[1, 2]", "()", "None", "'abc'", "1.5",
    "pl.const(3, pl.INT32)", "pl.const(1, pl.BOOL)", "pl.min(i, 3)", "pl.cast(x, pl.FP16)",
    "pl.Mem.Mat", "pl.FP16", "pl.TileView(valid_shape=[n, 3])", 'pl.MemRef("a", slots=2)[1]',
    "pl.yield_(x)", "pl.range(3)", "pl.tensor.dim(x, 0)", "pl.submit(self.f, x)", "self.f(x)",
    "pl.tensor.foo(x, 'a', pl.FP32, k=[1, (2, 3)])", "{'a': 1}", "pl.Array[4, pl.INT32]",
    "pl.Tensor[[], pl.FP32]", "pl.gather(x, dim=-1, index=x)", "pl.transpose(x, 0, 1)", "M * 2",
    "10**3", "lambda: 0", "1 << 70", "1 // 0", "x if y else z", "pl.reshape(x, [4, -1])",
]  # fmt: skip


def outcome(text: str) -> Program | PyptoEggError:
    try:
        return parse(text)
    except PyptoEggError as error:
        return error


def check(text: str) -> None:
    result = outcome(text)
    if isinstance(result, PyptoEggError):
        assert result.span is not None
        assert str(result).startswith("<string>:")
        return
    printed = print_program(result)
    assert print_program(parse(printed)) == printed


@pytest.mark.parametrize("seed", range(8))
def test_changed_tokens(seed: int) -> None:
    rng = random.Random(seed)
    pool = [*{token: None for text in TEXTS for token in TOKEN.findall(text)}, *STRAY]
    for _ in range(60):
        tokens = TOKEN.findall(rng.choice(TEXTS))
        for _ in range(rng.randint(1, 3)):
            index = rng.randrange(len(tokens))
            change = rng.randrange(4)
            if change == 0:
                tokens[index] = rng.choice(pool)
            elif change == 1 and len(tokens) > 1:
                del tokens[index]
            elif change == 2:
                tokens.insert(index, rng.choice(pool))
            else:
                other = rng.randrange(len(tokens))
                tokens[index], tokens[other] = tokens[other], tokens[index]
        check("".join(tokens))


@pytest.mark.parametrize("seed", range(8))
def test_changed_syntax_trees(seed: int) -> None:
    rng = random.Random(seed)
    trees = [ast.parse(text) for text in TEXTS]
    found = [node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.expr)]
    made = [ast.parse(text, mode="eval").body for text in EXPRESSIONS]
    for _ in range(40):
        tree = copy.deepcopy(rng.choice(trees))
        for _ in range(rng.randint(1, 2)):
            _change(tree, rng, copy.deepcopy(rng.choice(made if rng.random() < 0.6 else found)))
        check(ast.unparse(tree))


def _change(tree: ast.Module, rng: random.Random, new: ast.expr) -> None:
    """Replace one expression of the tree, or drop or repeat one statement or list element."""
    places = [
        (node, name, index)
        for node in ast.walk(tree)
        for name, value in ast.iter_fields(node)
        for index, item in enumerate(value if isinstance(value, list) else [value])
        if isinstance(item, ast.expr | ast.stmt | ast.keyword)
    ]
    if not places:
        return
    node, name, index = rng.choice(places)
    value = getattr(node, name)
    if not isinstance(value, list):
        setattr(node, name, new)
    elif isinstance(value[index], ast.expr) and rng.random() < 0.7:
        value[index] = new
    elif len(value) > 1 and rng.random() < 0.5:
        del value[index]
    else:
        value.insert(index, copy.deepcopy(value[index]))
