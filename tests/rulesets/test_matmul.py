"""Products, accumulation in L0C and rounding on the way out."""

from __future__ import annotations

import pytest
from firing import EXP, MATMUL, assert_fires, assert_silent, cube, names
from kernels import calls, executed, kernel, tensor
from products import accumulation, operands

from pypto_egg import lower, optimize
from pypto_egg.ir.enums import Mem
from pypto_egg.rulesets.matmul import ACCUMULATION, ROUNDING_DRAIN
from pypto_egg.rulesets.matmul import MATMUL as PRODUCTS

LETTERS = {"nn": (False, False), "nt": (False, True), "tn": (True, False), "tt": (True, True)}


def flagged(letters: str) -> str:
    a_trans, b_trans = LETTERS[letters]
    return f"a_trans={a_trans}, b_trans={b_trans}"


def of(letters: str, body: str, rank: int = 2, **more: str) -> str:
    """A kernel over a, b, c, d of the shapes that the letters ask for; MM and ACC are calls."""
    a, b = operands(32, 48, 64, *LETTERS[letters])
    lead = [2] * (rank - 2)
    params = {n: tensor([*lead, *(a if n in "ac" else b)], "FP16") for n in "abcd"}
    body = body.replace("MM(", "pl.matmul(").replace("ACC(", "pl.matmul_acc(")
    lines = []
    for line in body.strip().splitlines():
        if "pl.matmul(" in line:
            line = f"{line[:-1]}, {flagged(letters)}, out_dtype=pl.FP32)"
        if "pl.matmul_acc(" in line:
            line = f"{line[:-1]}, {flagged(letters)})"
        lines.append(line)
    used = {n: t for n, t in params.items() if any(f"{n}," in x or f", {n}" in x for x in lines)}
    return kernel({**used, **more}, "\n".join(lines), tensor([*lead, 32, 48], "FP32"))


def other(letters: str) -> str:
    return {"nn": "tt", "tt": "nn", "nt": "tn", "tn": "nt"}[letters]


CASES: dict[str, tuple[str, str]] = {}
for _l in LETTERS:
    PLAIN, OTHER = of(_l, "y = MM(a, b)\nreturn y"), of(other(_l), "y = MM(a, b)\nreturn y")
    SUM = "y = MM(a, b)\nz = MM(c, d)\ns = pl.add({})\nreturn s"
    CASES |= {
        f"matmul-{_l}": (PLAIN, OTHER),
        f"batch-matmul-{_l}": (of(_l, "y = MM(a, b)\nreturn y", 3), PLAIN),
        f"matmul-acc-{_l}": (of(_l, "y = MM(a, b)\nz = ACC(y, c, d)\nreturn z"), PLAIN),
        f"matmul-acc-from-{_l}": (
            of(_l, "y = MM(a, b)\nz = ACC(y, c, d, init_cond=n > 2)\nreturn z",
               n="pl.Scalar[pl.INDEX]"),
            of(_l, "y = MM(a, b)\nz = ACC(y, c, d)\nreturn z"),
        ),
        f"batch-matmul-acc-{_l}": (
            of(_l, "y = MM(a, b)\nz = ACC(y, c, d)\nreturn z", 3),
            of(_l, "y = MM(a, b)\nreturn y", 3),
        ),
        f"zero-seeded-accumulator-{_l}": (
            accumulation(32, 48, "FP16", *LETTERS[_l], "zero"),
            accumulation(32, 48, "FP16", *LETTERS[_l], "created"),
        ),
        f"add-of-a-product-on-the-right-accumulates-{_l}": (of(_l, SUM.format("y, z")), PLAIN),
        f"add-of-a-product-on-the-left-accumulates-{_l}": (of(_l, SUM.format("y, z")), PLAIN),
        f"bias-in-the-cube-{_l}": (
            of(_l, "y = MM(a, b)\ns = pl.add(y, bias)\nreturn s", bias=tensor([1, 48], "FP32")),
            of(_l, "y = MM(a, b)\ns = pl.add(y, w)\nreturn s", w=tensor([32, 1], "FP32")),
        ),
    }  # fmt: skip
ADD = of("nn", "y = MM(a, b)\nz = MM(c, d)\ns = pl.add(y, z)\nreturn s")
SUB = of("nn", "y = MM(a, b)\nz = MM(c, d)\ns = pl.sub(y, z)\nreturn s")
ADD_GM = of("nn", "y = MM(a, b)\ns = pl.add(y, w)\nreturn s", w=tensor([32, 48], "FP32"))
BIAS = of("nn", "y = MM(a, b)\ns = pl.add(y, bias)\nreturn s", bias=tensor([1, 48], "FP32"))
ROUND = "y = pl.matmul(a, b, out_dtype=pl.FP32)\nz = pl.cast(y, pl.FP16, mode='{}')\nreturn z"
CASES |= {
    "created-accumulator-is-boxed": (accumulation(40, 48, "FP16", False, False, "created"), MATMUL),
    "created-buffer-can-be-an-accumulator": (
        of("nn", "z = pl.create_tensor([32, 48], pl.FP32)\ny = ACC(z, a, b)\nreturn y"), MATMUL,
    ),
    "created-buffer-can-be-overwritten-in-l0c": (
        of("nn", "z = pl.create_tensor([32, 48], pl.FP32)\ny = ACC(z, a, b, init_cond=True)\n"
                 "return y"),
        MATMUL,
    ),
    "accumulation-is-a-sum": (of("nn", "y = MM(a, b)\nz = ACC(y, c, d)\nreturn z"), ADD_GM),
    "sum-of-products-is-in-an-accumulator": (ADD, SUB),
    "product-plus-sum-is-in-an-accumulator": (ADD, SUB),
    "biased-product-is-in-an-accumulator": (BIAS, ADD_GM),
    "bias-goes-through-mat": (BIAS, ADD_GM),
    "bias-row-is-loaded-into-mat": (BIAS, ADD_GM),
    "cast-to-even-is-the-drain": (
        cube(ROUND.format("rint"), dtype="FP16"), cube(ROUND.format("floor"), dtype="FP16"),
    ),
    "drained-cast-is-the-accumulator": (
        cube(ROUND.format("rint"), dtype="FP16"), cube(ROUND.format("round"), dtype="FP16"),
    ),
}  # fmt: skip


def test_every_rule_has_a_case() -> None:
    assert set(CASES) == names(PRODUCTS) | names(ACCUMULATION) | names(ROUNDING_DRAIN)


@pytest.mark.req("C-107", "C-113", "C-145", "C-147")
@pytest.mark.parametrize("rule", CASES)
def test_fires(rule: str) -> None:
    assert_fires(rule, CASES[rule][0])


@pytest.mark.parametrize("rule", CASES)
def test_is_silent(rule: str) -> None:
    assert_silent(rule, CASES[rule][1])
    assert_silent(rule, EXP)


def test_a_sum_of_products_stays_in_l0c() -> None:
    reference, best = lower(ADD), executed(optimize(ADD, verify=True))
    assert len(calls(reference, "tile.add")) == 1
    assert calls(best, "tile.add") == []
    assert len(calls(best, "tile.matmul_acc")) == 1
    assert best.cost.total < reference.cost.total


def test_a_rounded_product_leaves_through_the_drain() -> None:
    text = CASES["cast-to-even-is-the-drain"][0]
    best = executed(optimize(text, verify=True))
    assert calls(best, "tile.cast") == []
    (store,) = calls(best, "tile.store")
    assert store.args[0].type.space is Mem.Acc
    assert len(calls(lower(text), "tile.cast")) == 1


@pytest.mark.parametrize("mode", ["floor", "ceil", "trunc", "round"])
def test_other_rounding_is_left_to_the_vector_unit(mode: str) -> None:
    best = executed(optimize(cube(ROUND.format(mode), dtype="FP16"), verify=True))
    (cast,) = calls(best, "tile.cast")
    assert cast.kwarg("mode") == mode
