"""Bytes in use at the worst place of a tile function."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_text import tile_function

from pypto_egg.emit.liveness import peaks
from pypto_egg.ir.enums import Mem
from pypto_egg.ir.types import TileType
from pypto_egg.ir.visit import definitions

TILE = 16 * 16 * 4


def tiles_at_once(body: str, space: Mem = Mem.Vec) -> float:
    """The peak in units of one [16, 16] FP32 tile."""
    return peaks(tile_function(body))[space].size_bytes / TILE


def test_tiles_that_are_needed_together_add_up():
    assert (
        tiles_at_once("""
        a = LOAD x
        b = LOAD x
        c = LOAD x
        d = pl.tile.add(b, c)
        e = pl.tile.add(a, d)
        STORE e
    """)
        == 3
    )


def test_an_elementwise_result_takes_the_place_of_an_operand_that_is_used_up():
    assert (
        tiles_at_once("""
        a = LOAD x
        b = pl.tile.exp(a)
        c = pl.tile.adds(b, 1.0)
        STORE c
    """)
        == 1
    )


def test_an_operand_that_is_needed_later_keeps_its_place():
    assert (
        tiles_at_once("""
        a = LOAD x
        b = pl.tile.exp(a)
        c = pl.tile.add(a, b)
        STORE c
    """)
        == 2
    )


def test_an_op_that_is_not_in_place_safe_has_a_buffer_of_its_own():
    assert (
        tiles_at_once("""
        a = LOAD x
        b = pl.tile.recip(a)
        STORE b
    """)
        == 2
    )


def test_a_narrower_result_does_not_take_a_place_of_other_element_size():
    assert (
        tiles_at_once("""
        a = LOAD x
        b = pl.tile.cast(a, target_type=pl.FP16, mode="rint")
        c = pl.tile.cast(b, target_type=pl.FP32, mode="rint")
        STORE c
    """)
        == 1.5
    )


def test_views_and_accumulations_share_the_buffer_they_are_made_from():
    body = """
        a = LOAD x Mat
        t = pl.tile.transpose_view(a)
        s = pl.tile.matmul(a, t)
        u = pl.tile.matmul_acc(s, a, t)
        v = pl.tile.matmul_acc(u, a, a)
        STORE v
    """
    assert tiles_at_once(body, Mem.Mat) == 1
    assert tiles_at_once(body, Mem.Acc) == 1


def test_a_loop_carries_one_buffer_besides_the_value_that_it_yields():
    assert (
        tiles_at_once("""
        a = LOAD x
        for i, (s,) in pl.range(4, init_values=(a,)):
            t = pl.tile.exp(s)
            r = pl.yield_(t)
        STORE r
    """)
        == 2
    )


def test_what_a_loop_uses_from_outside_lives_until_its_end():
    body = """
        a = LOAD x
        k = LOAD x
        for i, (s,) in pl.range(4, init_values=(a,)):
            t = pl.tile.add(s, k)
            u = pl.tile.exp(t)
            r = pl.yield_({yielded})
        STORE r
    """
    # In straight-line code t would take the place of k; the next round needs k again.
    assert tiles_at_once(body.format(yielded="u")) == 3
    assert tiles_at_once(body.replace("k)", "s)").format(yielded="u")) == 2


@pytest.mark.parametrize("stages", [2, 3])
def test_a_pipeline_holds_a_loaded_tile_once_for_each_stage(stages):
    assert (
        tiles_at_once(f"""
        a = LOAD x
        for i, (s,) in pl.pipeline(4, stage={stages}, init_values=(a,)):
            d = LOAD x
            t = pl.tile.add(s, d)
            r = pl.yield_(t)
        STORE r
    """)
        == 1 + stages
    )


def test_the_arms_of_a_branch_do_not_add_up():
    assert (
        tiles_at_once("""
        if n == 0:
            a = LOAD x
            b = LOAD x
            c = pl.tile.add(a, b)
            r = pl.yield_(c)
        else:
            d = LOAD x
            e = LOAD x
            f = pl.tile.add(d, e)
            r = pl.yield_(f)
        STORE r
    """)
        == 3
    )  # the result has one place in both arms


def test_spaces_are_counted_apart():
    used = peaks(
        tile_function("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        v = pl.tile.move(s, target_memory=pl.Mem.Vec)
        STORE v
    """)
    )
    assert {space: peak.size_bytes for space, peak in used.items()} == {
        Mem.Mat: TILE, Mem.Acc: TILE, Mem.Vec: TILE
    }  # fmt: skip
    for peak in used.values():
        assert sum(buffer.size_bytes for buffer in peak.buffers) == peak.size_bytes


@st.composite
def straight_lines(draw: st.DrawFn) -> list[str]:
    """Loads, exponentials and sums of any earlier tiles, each assigned once."""
    lines = ["t0 = LOAD x"]
    for i in range(1, draw(st.integers(1, 12))):
        x, y = (f"t{draw(st.integers(0, i - 1))}" for _ in range(2))
        op = draw(st.sampled_from(["LOAD x", f"pl.tile.exp({x})", f"pl.tile.add({x}, {y})"]))
        lines.append(f"t{i} = {op}")
    return lines


def most_alive(lines: list[str]) -> int:
    """The most values that exist and are used later at any place between two statements."""
    last = len(lines) - 1
    uses = {i: [j for j in range(i + 1, last + 1) if f"t{i})" in lines[j] or f"t{i}," in lines[j]]
            for i in range(last + 1)}  # fmt: skip
    uses[last].append(last + 1)
    return max(
        sum(i <= place < max(uses[i], default=i) for i in range(place + 1))
        for place in range(last + 1)
    )


@settings(max_examples=60)
@given(lines=straight_lines())
def test_the_peak_lies_between_what_is_alive_and_all_there_is(lines):
    function = tile_function("\n".join([*lines, f"STORE t{len(lines) - 1}"]))
    tiles = [var for var in definitions(function) if isinstance(var.type, TileType)]
    peak = peaks(function)[Mem.Vec].size_bytes // TILE
    assert most_alive(lines) <= peak <= len(tiles)
