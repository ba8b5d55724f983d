"""PyPTO's L0 law: the price of products and drains."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.errors import CapacityError
from pypto_egg.extract.cost.l0 import Product, drain_cycles, product_cycles
from pypto_egg.extract.cost.pypto_l0 import choose
from pypto_egg.ir.dtype import FP16, FP32, INT8, INT32
from pypto_egg.target import load_target

A2A3, A5 = load_target("a2a3"), load_target("a5")


def product(valid, physical=None, dtype=FP16, acc=FP32, **in_l0):
    return Product(valid, physical or valid, dtype, dtype, acc, **in_l0)


@pytest.mark.req("K-01", "K-02", "C-130")
def test_boxing_m_to_112_beats_the_unpadded_choice():
    """100 x 256 x 512 fp16: m = 112 is not legal for 100 rows, so PyPTO takes m = 64 twice."""
    unpadded = choose(100, 256, 512, FP16, FP16, FP32, A2A3)
    load, cube = product_cycles(product((100, 256, 512), (112, 256, 512)), A2A3)
    drain = drain_cycles((100, 256), (112, 256), FP32, A2A3)
    assert load < unpadded.load_cycles
    assert cube < unpadded.cube_cycles
    boxed_wall = max(load, cube) + drain
    assert boxed_wall < choose(112, 256, 512, FP16, FP16, FP32, A2A3).wall_cycles
    assert load + cube + drain < (
        unpadded.load_cycles + unpadded.cube_cycles + unpadded.drain_cycles
    )


@pytest.mark.req("K-02", "C-130")
@given(
    st.integers(1, 128),
    st.integers(1, 512),
    st.integers(1, 512),
    st.sampled_from([(16, 32), (16, 64), (32, 64)]),
    st.sampled_from([A2A3, A5]),
)
@settings(max_examples=60)
def test_passes_and_transfers_are_those_of_the_valid_rows(m, n, k, boxes, target):
    """A larger box may only open more tiles, never cost more."""
    small, large = (-(-m // box) * box for box in boxes)
    costs = [sum(product_cycles(product((m, n, k), (p, n, k)), target)) for p in (small, large)]
    assert costs[1] <= costs[0]


def test_a_product_of_whole_fractals_costs_what_pypto_says():
    chosen = choose(128, 256, 64, FP16, FP16, FP32, A2A3)
    load, cube = product_cycles(product((128, 256, 64)), A2A3)
    assert (chosen.m, chosen.n, chosen.k) == (128, 256, 64)
    assert (load, cube) == (pytest.approx(chosen.load_cycles), chosen.cube_cycles)


@pytest.mark.parametrize(
    ("target", "dtype", "cycles"),
    [(A2A3, FP16, 21 + 512), (A2A3, FP32, 21 + 2048), (A5, FP16, 25 + 512), (A5, FP32, 25 + 8192)],
)
def test_operands_in_l0_are_one_instruction(target, dtype, cycles):
    """128 x 256 x 64: 8 x 16 fractals, 4 along K at 2 bytes and 8 at 4 bytes."""
    in_l0 = product((128, 256, 64), dtype=dtype, lhs_in_l0=True, rhs_in_l0=True)
    assert product_cycles(in_l0, target) == (0.0, cycles)


def test_an_operand_in_l0_costs_no_transfer():
    both = product_cycles(product((64, 64, 128)), A2A3)[0]
    lhs_only = product_cycles(product((64, 64, 128), rhs_in_l0=True), A2A3)[0]
    assert lhs_only == pytest.approx(2 * 64 * 128 / 129.7)
    assert both == pytest.approx(lhs_only + 2 * 64 * 128 / 85.4)


extent = st.integers(1, 300)


@given(st.tuples(extent, extent, extent), st.tuples(extent, extent, extent), st.data())
@settings(max_examples=80)
def test_a_larger_valid_product_is_never_cheaper(one, two, data):
    low = tuple(map(min, one, two))
    high = tuple(map(max, one, two))
    physical = tuple(-(-e // 32) * 32 for e in high)
    dtype, acc = data.draw(st.sampled_from([(FP16, FP32), (FP32, FP32), (INT8, INT32)]))
    target = data.draw(st.sampled_from([A2A3, A5]))
    less, more = (
        sum(product_cycles(product(v, physical, dtype, acc), target)) for v in (low, high)
    )
    assert less <= more
    less, more = (drain_cycles(v[:2], physical[:2], acc, target) for v in (low, high))
    assert less <= more


def by_enumeration(valid, physical, dtype, target):
    """The least MTE1 + cube over all legal L0 tiles, written out tile by tile."""
    (vm, vn, vk), size, l0 = valid, dtype.bytes, target.l0
    k_fractal = 32 // size
    passes = l0.fp32_passes if size == 4 else 1
    best = None
    for m in range(16, physical[0] + 1, 16):
        for n in range(16, physical[1] + 1, 16):
            for k in range(16, physical[2] + 1, 16):
                if 2 * size * m * k > 65536 or 2 * size * k * n > 65536:
                    continue
                if 4 * m * n > target.memory["Acc"].usable_bytes:
                    continue
                rows, cols, blocks = -(-vm // m), -(-vn // n), -(-vk // k)
                kk = -(-vk // k_fractal) * k_fractal
                lhs = size * -(-vm // 16) * 16 * kk / l0.left_bytes_per_cycle
                rhs = size * -(-vn // 16) * 16 * kk / l0.right_bytes_per_cycle
                moved = lhs * cols + rhs * rows
                if k >= vk:
                    moved = min(lhs + rhs * rows, lhs * cols + rhs)
                deep = sum(-(-min(k, vk - at) // k_fractal) for at in range(0, vk, k))
                cube = rows * cols * blocks * l0.issue_cycles
                cube += passes * -(-vm // 16) * -(-vn // 16) * deep
                if best is None or moved + cube < best:
                    best = moved + cube
    return best


@given(
    st.tuples(st.integers(1, 160), st.integers(1, 400), st.integers(1, 200)),
    st.sampled_from([FP16, FP32, INT8]),
    st.sampled_from([A2A3, A5]),
)
@settings(max_examples=15)
def test_the_price_is_the_least_over_all_tiles(valid, dtype, target):
    physical = tuple(-(-e // 16) * 16 for e in valid)
    found = sum(product_cycles(product(valid, physical, dtype), target))
    assert found == pytest.approx(by_enumeration(valid, physical, dtype, target))


@pytest.mark.parametrize(
    ("valid", "physical", "cycles"),
    [
        ((128, 256), (128, 256), 164 + 128 * 4 * 256 / 118),  # one tile, throughput
        ((128, 64), (128, 64), 164 + 128 * 4.45),  # one tile, the floor of a row
        ((100, 64), (112, 64), 164 + 100 * 4.45),  # valid rows only
        ((256, 256), (256, 256), 2 * 164 + 256 * 4 * 256 / 118),  # two tiles fill L0C twice
        ((96, 160), (96, 160), 1182.4),  # n = 160 has 20 fractals, odd part 5: cut into two of 128
    ],
)
@pytest.mark.req("C-131", "K-03")
def test_drain(valid, physical, cycles):
    assert drain_cycles(valid, physical, FP32, A2A3) == pytest.approx(cycles, abs=0.05)


def test_a_smaller_l0c_makes_drains_dearer():
    small = A2A3.with_(**{"memory.Acc.usable_bytes": 32768})
    assert drain_cycles((128, 256), (128, 256), FP32, small) > drain_cycles(
        (128, 256), (128, 256), FP32, A2A3
    )


def test_l0_buffers_too_small_for_any_tile_are_reported():
    tiny = A2A3.with_(**{"memory.Left.usable_bytes": 512})
    with pytest.raises(CapacityError, match="not one 16 x 16 x 16 product fits the L0 buffers"):
        product_cycles(product((16, 16, 16)), tiny)
