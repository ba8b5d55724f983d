"""The catalogue as a whole: no dead rules, and every alternative matters somewhere."""

from __future__ import annotations

from collections import Counter
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from firing import cube, vector
from generate import sample
from kernels import executed, kernel, tensor
from products import accumulation, product

from pypto_egg import optimize
from pypto_egg.errors import LoweringError, OptionError, PyptoEggError
from pypto_egg.extract.cost.model import CostModel, CostVector, OpInstance
from pypto_egg.rulesets.catalogue import (
    ALL,
    ALTERNATIVES,
    LOWERING,
    OPT_IN,
    SCHEDULED_ALTERNATIVES,
    without,
)
from pypto_egg.target.target import Target

ROOT = Path(__file__).parent.parent.parent
PRINTED = sorted((ROOT / "tests" / "programs").glob("*/*.py.txt"))
KERNELS = sorted((ROOT / "bench" / "kernels").glob("*.py"))


def corpus() -> list[str]:
    """Printed tensor programs, the kernels of the benchmark, and generated ones."""
    paths = [p for p in PRINTED if p.name.split(".")[1][:1] not in "123"]
    texts = [path.read_text() for path in (*paths, *KERNELS)]
    return texts + [sample(seed, 5) for seed in range(60)]


@cache
def counted() -> Counter[str]:
    total: Counter[str] = Counter()
    for text in corpus():
        try:
            result = optimize(text, verify=False, allow_reassociation=True)
        except PyptoEggError:
            continue
        for report in result.functions:
            total.update(report.saturation.matches)
    return total


def test_names_are_unique() -> None:
    names = [rule.name for ruleset in ALL.values() for rule in ruleset.rules]
    assert len(set(names)) == len(names)
    assert set(counted()) <= set(names)


def test_every_rule_says_why() -> None:
    for ruleset in ALL.values():
        assert ruleset.why
        for rule in ruleset.rules:
            assert rule.why.strip(), rule.name


def cases() -> dict[str, tuple[str, str]]:
    """The kernels of the other files of this folder: rule -> where it fires, where it does not."""
    found: dict[str, tuple[str, str]] = {}
    for path in sorted(Path(__file__).parent.glob("test_*.py")):
        if path != Path(__file__):
            found |= getattr(import_module(path.stem), "CASES", {})
    return found


def test_every_rule_has_its_cases() -> None:
    assert set(cases()) == {rule.name for ruleset in ALL.values() for rule in ruleset.rules}


def test_every_ruleset_file_has_a_test_file() -> None:
    here = {path.name for path in Path(__file__).parent.glob("test_*.py")}
    for path in (ROOT / "rulesets").glob("*.py"):
        if path.stem not in ("__init__", "ruleset", "patterns"):
            assert f"test_{path.name}" in here


def test_no_rule_is_for_its_own_test_only() -> None:
    """Two thirds of the rules work on ordinary programs; the rest have narrow conditions."""
    rules = {rule.name for ruleset in ALL.values() for rule in ruleset.rules}
    seldom = rules - set(+counted())
    assert len(seldom) < len(rules) / 3, sorted(seldom)


def chain(m: int, n: int) -> str:
    """(a @ b) @ c, where the product in the middle is m rows of n."""
    body = (
        "y = pl.matmul(a, b, out_dtype=pl.FP16)\nz = pl.matmul(y, c, out_dtype=pl.FP32)\nreturn z"
    )
    return cube(body, (m, 64), a=(m, 64), b=(64, n), c=tensor([n, 64], "FP16"))


WINS = {
    "algebra": vector("e = pl.exp(x)\nn = pl.neg(e)\nm = pl.neg(n)\nreturn m"),
    "operand-order": chain(128, 16),
    "wider-boxes": product(48, 48, 64, "FP16", False, False),
    "accumulation": cube(
        "y = pl.matmul(a, b, out_dtype=pl.FP32)\ns = pl.add(y, bias)\nreturn s",
        bias=tensor([1, 32], "FP32"),
    ),
    "rounding-drain": cube(
        "y = pl.matmul(a, b, out_dtype=pl.FP32)\nz = pl.cast(y, pl.FP16, mode='rint')\nreturn z",
        dtype="FP16",
    ),
    "drain-to-mat": chain(32, 32),
}


@pytest.mark.parametrize("name", WINS)
def test_an_alternative_makes_a_kernel_cheaper(name: str) -> None:
    options: dict[str, Any] = {"verify": True, "l0": "leave"}
    best = executed(optimize(WINS[name], **options))
    without_it = executed(optimize(WINS[name], without_rules=[name], **options))
    assert best.cost.total < without_it.cost.total
    assert best.text != without_it.text


SUNK = kernel(
    {n: tensor([96, 128], "FP32") for n in "xvw"},
    """
for i, (c,) in pl.range(4, init_values=(x,)):
    d = pl.add(c, v)
    e = pl.mul(d, w)
    r = pl.yield_(e)
return r""",
    tensor([96, 128], "FP32"),
)
UNALIGNED_SUM = accumulation(32, 40, "FP16", False, False, "created")


@pytest.mark.req("C-027", "C-033")
@pytest.mark.parametrize(
    ("name", "text", "code"),
    [("sinking", SUNK, "E501"), ("accumulated-n", UNALIGNED_SUM, "E402")],
)
def test_an_alternative_makes_a_kernel_possible(name: str, text: str, code: str) -> None:
    executed(optimize(text, verify=True))
    with pytest.raises(LoweringError) as caught:
        optimize(text, without_rules=[name])
    assert caught.value.code == code


def test_a_transposed_load_is_held_though_it_does_not_win() -> None:
    """The model prices the DMA alike; the choice is in the e-graph for models that do not."""
    text = product(32, 48, 64, "FP16", True, True)
    result = optimize(text)
    assert result.functions[0].saturation.matches["transposed-operand-is-loaded-transposed"] > 0
    assert result.cost.total == optimize(text, without_rules=["transposed-load"]).cost.total


def test_every_alternative_matters() -> None:
    shown = {*WINS, "sinking", "accumulated-n", "transposed-load"}
    assert shown == {ruleset.name for ruleset in ALTERNATIVES}


def test_rulesets_are_left_out_by_name() -> None:
    assert without(ALTERNATIVES, []) == ALTERNATIVES
    left = without((*LOWERING, *ALTERNATIVES), ["algebra", "sinking"])
    assert {r.name for r in (*LOWERING, *ALTERNATIVES)} - {r.name for r in left} == {
        "algebra",
        "sinking",
    }


def test_an_unknown_ruleset_is_refused_with_the_names() -> None:
    with pytest.raises(OptionError) as caught:
        optimize(WINS["algebra"], without_rules=["algbra"])
    assert "'algbra'" in caught.value.message
    for ruleset in (*LOWERING, *ALTERNATIVES, *OPT_IN):
        assert ruleset.name in caught.value.hint


def test_without_any_alternative_the_reference_is_left() -> None:
    text = WINS["drain-to-mat"]
    names = [ruleset.name for ruleset in (*ALTERNATIVES, *SCHEDULED_ALTERNATIVES)]
    for l0 in ("leave", "pypto"):
        bare = executed(optimize(text, without_rules=names, l0=l0, verify=True))
        assert bare.cost.total == bare.baseline.cost.total


class RandomPrices(CostModel):
    """Prices that mean nothing, so that any alternative may be the one that is chosen."""

    name = "random_prices"

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def price(self, op: OpInstance, target: Target) -> CostVector:
        types, keywords = map(str, op.operands), sorted(map(str, op.kwargs.items()))
        said = "; ".join((str(self.seed), op.op, *types, *keywords))
        return CostVector(vector=1.0 + crc32(said.encode()) % 1000)


@pytest.mark.parametrize("seed", [0, 1])
def test_what_is_chosen_computes_the_same_whatever_the_prices(seed: int) -> None:
    """A rule that fires need not be the one that is picked: here others are, and are executed."""
    texts = {text for pair in cases().values() for text in pair}
    chosen = set()
    for text in sorted(texts):
        model = RandomPrices(seed)
        picked = optimize(text, cost_model=model, allow_reassociation=True, verify=True)
        chosen.add(executed(picked).text != optimize(text, verify=False).text)
    assert chosen == {False, True}
