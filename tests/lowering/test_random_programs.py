"""Random kernels: what is lowered computes the same, and what is refused is refused clearly."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from generate import programs, sample
from hypothesis import HealthCheck, Phase, given, settings
from kernels import assert_whole_boxes, executed

from pypto_egg import lower, optimize
from pypto_egg.errors import LoweringError
from pypto_egg.lowering import Lowering
from pypto_egg.text import parse, print_program

# Refusals that a well-typed kernel of the generator may meet: no lowering, alignment, dtype, size.
CODES = {"E401", "E402", "E404", "E501"}


def attempt(make: Callable[..., Lowering], text: str, target: str) -> Lowering | LoweringError:
    """The executed lowering, or the refusal; wrong results and other exceptions pass through."""
    try:
        result = make(text, target=target, verify=True)
    except LoweringError as error:
        return error
    return executed(result)


def lowered_or_refused(text: str, target: str = "a2a3") -> bool:
    """Whether the kernel lowers; both entry points are run, executed and checked."""
    reference, best = attempt(lower, text, target), attempt(optimize, text, target)
    for result in (reference, best):
        if isinstance(result, LoweringError):
            assert result.code in CODES, text
            assert len(result.message) > 20
            continue
        assert_whole_boxes(result)
        assert print_program(parse(result.text)) == result.text
    if isinstance(best, LoweringError):
        assert isinstance(reference, LoweringError), "what the reference lowers, optimize lowers"
        return False
    if isinstance(reference, LoweringError):
        assert best.baseline_refused.startswith(reference.code)
    else:
        assert best.cost.total <= reference.cost.total * (1 + 1e-9)
    return True


@pytest.mark.req("C-002", "C-013", "C-032", "C-033", "C-036", "C-037", "C-038", "C-039", "C-131")
@settings(
    max_examples=60,
    phases=[Phase.generate],
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(programs())
def test_random_kernels(text: str) -> None:
    lowered_or_refused(text)


@pytest.mark.parametrize("block", range(8))
def test_samples(block: int) -> None:
    """Four fifths and more of the samples lower: refusals stay the exception."""
    seeds = range(8 * block, 8 * block + 8)
    lowered = [lowered_or_refused(sample(seed, 4), ("a2a3", "a5")[seed % 2]) for seed in seeds]
    assert sum(lowered) >= 5


def test_the_generator_reaches_every_construct() -> None:
    texts = [sample(seed, 6) for seed in range(160)]
    for construct in (
        r"matmul\(", r"matmul_acc\(", r"transpose\(", r"reshape\(", r"full\(", r"slice\(",
        r"set_validshape\(", r"assemble\(", r"row_expand_", r"col_expand_", r"row_(max|sum|min)\(",
        r"col_(max|sum|min)\(", r"cast\(", r"create_tensor\(", r"if n >", r"if i\d+ >", "else:",
        r"init_values=\(\w+, \)", r"init_values=\(\w+, \w+, \)", r"-> tuple\[", r"pl\.Out\[",
        r"\n {12}for ", r"\[i\d+ \* \d+, 0\]", "a_trans=True", "b_trans=True",
        r"while_\(", r"pl\.cond\(", r"tensor\.read\(x\d", r"tensor\.read\(v\d",
        r"tensor\.write\(x\d", r"tensor\.write\(v\d", r"assemble\(x\d", r"assemble\(o\d",
        r"v\d+ = x\d+\n", r"pl\.InOut\[", "Orchestration", "Spmd", "Group", r"self\.k2\(",
    ):  # fmt: skip
        assert any(re.search(construct, text) for text in texts), construct
