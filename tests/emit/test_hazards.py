"""Values that an in-place op destroys while they are needed."""

from __future__ import annotations

import pytest
from tile_text import tile_function

from pypto_egg.emit.hazards import hazards


def lost(body: str) -> list[tuple[str, str | None]]:
    """(the name whose value is gone, the result of the op that took its place)."""
    return [
        (hazard.lost.name, hazard.by.name if hazard.by is not None else None)
        for hazard in hazards(tile_function(body))
    ]


def test_a_sum_takes_the_place_of_its_accumulator():
    assert (
        lost("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        t = pl.tile.matmul_acc(s, a, a)
        STORE t
    """)
        == []
    )


def test_an_accumulator_that_is_used_after_its_sum_is_lost():
    assert lost("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        t = pl.tile.matmul_acc(s, a, a)
        STORE s
    """) == [("s", "t")]


def test_only_the_last_of_a_chain_of_sums_is_left():
    assert lost("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        t = pl.tile.matmul_acc(s, a, a)
        u = pl.tile.matmul_acc(t, a, a)
        v = pl.tile.move(t, target_memory=pl.Mem.Vec)
        w = pl.tile.move(u, target_memory=pl.Mem.Vec)
        y = pl.tile.add(v, w)
        STORE y
    """) == [("t", "u")]


def test_a_copy_in_another_space_survives():
    assert (
        lost("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        v = pl.tile.move(s, target_memory=pl.Mem.Vec)
        t = pl.tile.matmul_acc(s, a, a)
        w = pl.tile.move(t, target_memory=pl.Mem.Vec)
        y = pl.tile.add(v, w)
        STORE y
    """)
        == []
    )


def test_an_assembled_tile_is_lost_and_so_are_its_views():
    body = """
        a = LOAD x
        r = pl.tile.reshape(a, [16, 16])
        b = pl.tile.load(x, [0, 0], [8, 16])
        c = pl.tile.assemble(a, b, [0, 0])
        STORE {stored}
    """
    assert lost(body.format(stored="c")) == []
    assert lost(body.format(stored="a")) == [("a", "c")]
    assert lost(body.format(stored="r")) == [("r", "c")]


def test_what_a_loop_overwrites_is_gone_in_its_second_round():
    assert lost("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        z = LOAD x
        for i, (c,) in pl.range(4, init_values=(z,)):
            t = pl.tile.matmul_acc(s, a, a)
            v = pl.tile.move(t, target_memory=pl.Mem.Vec)
            r = pl.yield_(v)
        STORE r
    """) == [("s", "t")]


def test_a_carried_accumulator_is_not_lost():
    assert (
        lost("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        for i, (c,) in pl.range(4, init_values=(s,)):
            t = pl.tile.matmul_acc(c, a, a)
            r = pl.yield_(t)
        STORE r
    """)
        == []
    )


def test_the_initial_value_of_a_carried_accumulator_is_lost_after_the_loop():
    assert lost("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        for i, (c,) in pl.range(4, init_values=(s,)):
            t = pl.tile.matmul_acc(c, a, a)
            r = pl.yield_(t)
        STORE s
    """) == [("s", "t")]


@pytest.mark.parametrize(("used", "gone"), [("s", [("s", "t")]), ("u", [])])
def test_what_one_arm_of_a_branch_overwrites_is_gone_after_it(used, gone):
    assert (
        lost(f"""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        if n == 0:
            t = pl.tile.matmul_acc(s, a, a)
            u = pl.yield_(t)
        else:
            w = pl.tile.matmul(a, a)
            u = pl.yield_(w)
        STORE {used}
    """)
        == gone
    )


def test_the_other_arm_of_a_branch_still_has_the_value():
    assert (
        lost("""
        a = LOAD x Mat
        s = pl.tile.matmul(a, a)
        if n == 0:
            t = pl.tile.matmul_acc(s, a, a)
            u = pl.yield_(t)
        else:
            u = pl.yield_(s)
        v = pl.tile.move(u, target_memory=pl.Mem.Vec)
        STORE v
    """)
        == []
    )


def test_a_deep_nest_of_loops_is_walked_once():
    """Not twice a loop, which would be 2**40 walks of the innermost body."""
    loops = "".join(f"{'    ' * (2 + k)}for i{k} in pl.range(0, 2, 1):\n" for k in range(40))
    assert (
        lost(f"""
        a = LOAD x
{loops}{"    " * 42}b = pl.tile.add(a, a)
        STORE a
    """)
        == []
    )
