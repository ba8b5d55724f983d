"""Products over M, N, element types, transposes and targets: executed, and boxed by the rule."""

from __future__ import annotations

import itertools

import pytest
from kernels import (
    assert_whole_boxes,
    assigned,
    both,
    calls,
    loads_of,
    shape_of,
    stores,
    valid_of,
)
from products import (
    DTYPES,
    L0C_BYTES,
    MS,
    NS,
    TARGETS,
    TRANSPOSES,
    accumulation,
    m_step,
    n_step,
    operands,
    product,
    round_up,
)

from pypto_egg import lower, optimize
from pypto_egg.ir.enums import CompactMode, Mem


def pairwise() -> list[tuple[int, int, str, bool, bool, str]]:
    """Every M meets every N and every (element type, transposes) pair at least once.

    The full cross product is 896 programs; this walk through the columns of a Latin square has
    every pair of values of M against N, type, transposes and target in 56.
    """
    rows = []
    for (i, m), (j, n) in itertools.product(enumerate(MS), enumerate(NS)):
        for repeat in range(2):
            dtype = DTYPES[(i + j + 2 * repeat) % 4]
            a_trans, b_trans = TRANSPOSES[(2 * i + j + i // 2 + 3 * repeat) % 4]
            target = TARGETS[(i + j // 2 + repeat) % 2]
            if round_up(m, 32) * n * 4 > L0C_BYTES[target]:
                target = "a5"
            rows.append((m, n, dtype, a_trans, b_trans, target))
    return rows


def test_the_walk_meets_every_pair() -> None:
    walked = pairwise()
    assert {(m, n) for m, n, *_ in walked} == set(itertools.product(MS, NS))
    assert {(d, a, b) for _, _, d, a, b, _ in walked} == {
        (d, a, b) for d in DTYPES for a, b in TRANSPOSES
    }
    assert {(m, a, b) for m, _, _, a, b, _ in walked} == {
        (m, a, b) for m in MS for a, b in TRANSPOSES
    }
    assert {(m, t) for m, *_, t in walked} == set(itertools.product(MS, TARGETS))


@pytest.mark.req("C-124", "C-125", "C-126", "C-128", "C-131", "C-133", "C-134", "C-135", "C-136")
@pytest.mark.req("C-154", "C-155", "C-156", "C-157", "C-158", "C-160", "C-161", "C-164", "C-165")
@pytest.mark.parametrize(("m", "n", "dtype", "a_trans", "b_trans", "target"), pairwise())
def test_products(m: int, n: int, dtype: str, a_trans: bool, b_trans: bool, target: str) -> None:
    k = 64
    physical_m = round_up(m, m_step(dtype, a_trans))
    physical_n = round_up(n, n_step(dtype, b_trans))
    text = product(m, n, k, dtype, a_trans, b_trans)
    reference, best = both(text, target, l0="leave")
    (load_a,), (load_b,) = loads_of(reference, "a"), loads_of(reference, "b")
    box_a, box_b = operands(physical_m, physical_n, k, a_trans, b_trans)
    real_a, real_b = operands(m, n, k, a_trans, b_trans)
    assert (shape_of(load_a), valid_of(load_a)) == (box_a, real_a)
    assert (shape_of(load_b), valid_of(load_b)) == (box_b, real_b)
    assert load_a.kwarg("target_memory") is load_b.kwarg("target_memory") is Mem.Mat
    for result in (reference, best):
        assert_whole_boxes(result)
        (made,) = calls(result, "tile.matmul")
        rows, cols = valid_of(made)
        assert sorted((rows, cols)) == sorted((m, n))
        (stored,) = stores(result)
        assert valid_of(assigned(result, stored.args[0].name)) == [m, n]


TAILS = {
    "scaled": "r = pl.mul(y, 0.5)\nreturn r",
    "softmax": """
top = pl.row_max(y)
d = pl.row_expand_sub(y, top)
e = pl.exp(d)
s = pl.row_sum(e)
p = pl.row_expand_div(e, s)
return p""",
    "negated twice": "u = pl.neg(y)\nr = pl.exp(u)\nreturn r",
    "transposed": "u = pl.transpose(y, 0, 1)\nr = pl.abs(u)\nt = pl.transpose(r, 0, 1)\nreturn t",
}


@pytest.mark.req("C-128", "C-131", "C-166")
@pytest.mark.parametrize(("tail", "target"), [(t, x) for t in TAILS for x in TARGETS])
@pytest.mark.parametrize(("m", "n", "a_trans", "b_trans"), [
    (5, 24, False, True), (100, 100, True, False), (17, 16, True, True), (40, 256, False, False),
])  # fmt: skip
def test_products_with_a_vector_tail(
    m: int, n: int, a_trans: bool, b_trans: bool, tail: str, target: str
) -> None:
    dtype = "FP16" if m % 2 else "FP32"
    reference, best = both(product(m, n, 32, dtype, a_trans, b_trans, TAILS[tail]), target)
    for result in (reference, best):
        assert_whole_boxes(result)
        (stored,) = stores(result)
        assert valid_of(assigned(result, stored.args[0].name)) == [m, n]


def accumulations() -> list[tuple[int, int, str, bool, bool, str, str]]:
    rows = []
    for (i, m), (j, start) in itertools.product(enumerate(MS), enumerate(("created", "peeled"))):
        dtype = DTYPES[(i + j) % 4]
        a_trans, b_trans = TRANSPOSES[(i + 2 * j) % 4]
        n = (16, 48, 128)[i % 3]
        rows.append((m, n, dtype, a_trans, b_trans, start, TARGETS[(i + j) % 2]))
    return rows


@pytest.mark.req("C-017", "C-022", "C-023", "C-136", "C-137", "C-145", "C-147", "C-148", "C-150")
@pytest.mark.req("C-151", "C-152", "C-162", "C-163")
@pytest.mark.parametrize(
    ("m", "n", "dtype", "a_trans", "b_trans", "start", "target"), accumulations()
)
def test_split_k_loops(
    m: int, n: int, dtype: str, a_trans: bool, b_trans: bool, start: str, target: str
) -> None:
    text = accumulation(m, n, dtype, a_trans, b_trans, start)
    results = [optimize(text, target=target, verify=True)]
    if n % n_step(dtype, b_trans) == 0:
        results.append(lower(text, target=target, verify=True))
    physical_m = round_up(m, m_step(dtype, a_trans))
    physical_n = round_up(n, n_step(dtype, b_trans))
    for result in results:
        assert result.verified
        assert_whole_boxes(result)
        made = calls(result, "tile.matmul_acc")
        assert made
        for call in made:
            total, left, _ = call.args
            assert total.type == call.type, "the accumulator is the same tile before and after"
            assert call.type.space is Mem.Acc
            assert total.type.shape[0] == left.type.shape[0]
            if (physical_m, physical_n) != (m, n):
                assert total.type.layout.compact is CompactMode.normal
            assert valid_of(call) == [m, n]
    assert calls(results[-1], "tile.matmul_acc")[0].type.shape[0] == physical_m


@pytest.mark.req("C-138", "C-137", "C-163")
@pytest.mark.parametrize("m", [100, 112, 5])
def test_transposed_int8_needs_boxes_of_32_rows(m: int) -> None:
    text = accumulation(m, 64, "INT8", True, False, "created")
    for result in both(text):
        (create,) = [c for c in calls(result, "tile.create") if c.type.space is Mem.Acc]
        assert shape_of(create)[0] == round_up(m, 32)
        for load in loads_of(result, "a"):
            assert shape_of(load)[1] == round_up(m, 32)
        assert create.kwarg("compact") is True
