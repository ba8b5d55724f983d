"""Which demands are legal, and the enforcers that need no op of the program: loads, moves, views.

Staging (C-107..C-119): cube operands are loaded into Mat, vector operands into Vec; nothing is
loaded into an accumulator.
"""

from __future__ import annotations

from egglog import String, Vec, eq, i64, ne, union

from pypto_egg.egraph.language import (
    Gm,
    Index,
    Tensor,
    acc_dtype,
    around,
    at,
    batch,
    boxable,
    cols,
    computed,
    drains,
    dtype,
    extents,
    floating,
    fractal_rows,
    inserts,
    inside,
    lead,
    line,
    located,
    pinned,
    read_root,
    rows,
    store_root,
    transposable,
    valid,
    whole,
)
from pypto_egg.egraph.tile_language import (
    Form,
    Stmt,
    acc,
    demand,
    load,
    mat,
    mat_need,
    outer,
    read,
    realize,
    store,
    tile1,
    tile_cast,
    tile_insert,
    vec,
    vec_need,
)
from pypto_egg.rulesets.patterns import TO_MAT, TO_VEC, becomes
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

LEGALITY = RuleSet("legality", "which demanded forms the hardware can hold")
PLACEMENT = RuleSet("placement", "loads, stores, moves between memory spaces, views")
SINKING = RuleSet("sinking", "a read-only load may be repeated in the loop that uses it")
TRANSPOSED_LOAD = RuleSet("transposed-load", "read a transposed operand through a DN view")
DRAIN_TO_MAT = RuleSet("drain-to-mat", "an accumulator goes back to Mat on chip")


# --- legality ----------------------------------------------------------------------------------


@LEGALITY.rule
def vec_lines_are_whole_blocks(t: Tensor, r: Index, c: i64, k: i64, d: String, w: i64) -> Body:
    """A row of a Vec tile is a whole number of 32-byte blocks (PTO-ISA, unboxed tiles)."""
    return when(
        demand(t, vec(r, Index(c), k)), eq(d).to(dtype(t)), eq(w).to(line(d)), eq(c % w).to(i64(0))
    ).then(vec_need(t, r, Index(c), k))


@LEGALITY.rule
def vec_columns_are_whole_blocks(t: Tensor, r: i64, k: i64, d: String, w: i64) -> Body:
    """A [M, 1] tile is column-major, so its column is a whole number of 32-byte blocks."""
    return when(
        demand(t, vec(Index(r), Index(1), k)),
        eq(d).to(dtype(t)),
        eq(w).to(line(d)),
        eq(r % w).to(i64(0)),
    ).then(vec_need(t, Index(r), Index(1), k))


@LEGALITY.rule
def vec_takes_symbolic_columns(t: Tensor, r: Index, s: String, k: i64) -> Body:
    """A dynamic extent has no compile-time value to check (C-170)."""
    return when(demand(t, vec(r, Index.sym(s), k))).then(vec_need(t, r, Index.sym(s), k))


@LEGALITY.rule
def vec_takes_symbolic_rows_of_a_column(t: Tensor, s: String, k: i64) -> Body:
    """As for columns: a dynamic extent is not checked."""
    return when(demand(t, vec(Index.sym(s), Index(1), k))).then(
        vec_need(t, Index.sym(s), Index(1), k)
    )


@LEGALITY.rule
def mat_holds_whole_fractals(
    t: Tensor, r: i64, c: i64, o: String, k: i64, d: String, w: i64, b: i64
) -> Body:
    """A boxed tile has whole fractals: 16 rows (packed over the batch) by 32 bytes (C-125)."""
    return when(
        demand(t, mat(Index(r), Index(c), o, k)),
        eq(d).to(dtype(t)),
        eq(w).to(line(d)),
        eq(b).to(batch(t)),
        eq((b.max(1) * r) % fractal_rows()).to(i64(0)),
        eq(c % w).to(i64(0)),
    ).then(mat_need(t, Index(r), Index(c), o, k))


# --- roots -------------------------------------------------------------------------------------


@PLACEMENT.rule
def store_from_vec(k: i64, t: Tensor, region: i64, d: String, r: Index, c: Index) -> Body:
    """A vector result leaves through MTE3."""
    f = vec(r, c, region)
    return when(store_root(k, t, region, d), extents(t, r, c), eq(dtype(t)).to(d)).then(
        demand(t, f), union(Stmt(k)).with_(store(k, realize(t, f)))
    )


@PLACEMENT.rule
def store_from_acc(k: i64, t: Tensor, region: i64, d: String, r: i64, c: i64, a: String) -> Body:
    """A product leaves through FIXPIPE, which also rounds it to the destination's dtype."""
    f = acc(r, c, region)
    return when(
        store_root(k, t, region, d),
        extents(t, Index(r), Index(c)),
        eq(a).to(acc_dtype(t)),
        drains(a, d),
    ).then(demand(t, f), union(Stmt(k)).with_(store(k, realize(t, f))))


@PLACEMENT.rule
def scalar_read_from_vec(k: i64, t: Tensor, region: i64, r: Index, c: Index) -> Body:
    """A scalar can be read from a Vec tile only."""
    f = vec(r, c, region)
    return when(read_root(k, t, region), extents(t, r, c)).then(
        demand(t, f), union(Stmt(k)).with_(read(k, realize(t, f)))
    )


# --- loads -------------------------------------------------------------------------------------


@PLACEMENT.rule
def load_into_vec(
    t: Tensor, g: Gm, o: Vec[Index], r: Index, c: Index, k: i64, s: Vec[Index], v: Vec[Index]
) -> Body:
    """A GM window is loaded where its consumer wants it; the valid region stays logical."""
    f = vec(r, c, k)
    return when(
        vec_need(t, r, c, k), located(t, g, o), floating(t), at(t, k),
        eq(s).to(lead(t)), eq(v).to(valid(t)),
    ).then(becomes(t, f, load(g, o, s.append(Vec(r, c)), v, "Vec", k, 0)))  # fmt: skip


@PLACEMENT.rule
def load_written_memory_into_vec(
    t: Tensor, g: Gm, o: Vec[Index], r: Index, c: Index, k: i64, s: Vec[Index], v: Vec[Index],
    p: i64,
) -> Body:  # fmt: skip
    """Memory that is written is loaded at the reading statement, never shared (C-034, C-059)."""
    f = vec(r, c, k)
    return when(
        vec_need(t, r, c, k), located(t, g, o), pinned(t, p), at(t, k),
        eq(s).to(lead(t)), eq(v).to(valid(t)),
    ).then(becomes(t, f, load(g, o, s.append(Vec(r, c)), v, "Vec", k, p)))  # fmt: skip


@PLACEMENT.rule
def load_written_memory_into_mat(
    t: Tensor, g: Gm, o: Vec[Index], r: Index, c: Index, k: i64, s: Vec[Index], v: Vec[Index],
    p: i64,
) -> Body:  # fmt: skip
    """As into Vec; boxed for the cube (C-140)."""
    f = mat(r, c, "nz", k)
    return when(
        mat_need(t, r, c, "nz", k), located(t, g, o), pinned(t, p), at(t, k),
        eq(s).to(lead(t)), eq(v).to(valid(t)),
    ).then(becomes(t, f, load(g, o, s.append(Vec(r, c)), v, "Mat", k, p)))  # fmt: skip


@PLACEMENT.rule
def load_into_mat(
    t: Tensor, g: Gm, o: Vec[Index], r: Index, c: Index, k: i64, s: Vec[Index], v: Vec[Index]
) -> Body:
    """A window of whole fractals that feeds the cube is loaded straight into Mat (C-016)."""
    f = mat(r, c, "nz", k)
    return when(
        mat_need(t, r, c, "nz", k), located(t, g, o), floating(t), at(t, k),
        eq(s).to(lead(t)), eq(v).to(valid(t)), eq(r).to(rows(t)), eq(c).to(cols(t)),
    ).then(becomes(t, f, load(g, o, s.append(Vec(r, c)), v, "Mat", k, 0)))  # fmt: skip


@PLACEMENT.rule
def load_boxed_into_mat(
    t: Tensor, g: Gm, o: Vec[Index], r: Index, c: Index, k: i64, s: Vec[Index], v: Vec[Index]
) -> Body:
    """The physical extents are whole boxes, the valid ones the tensor's own (C-128, C-141)."""
    f = mat(r, c, "nz", k)
    return when(
        mat_need(t, r, c, "nz", k), located(t, g, o), floating(t), at(t, k), boxable(t),
        eq(s).to(lead(t)), eq(v).to(valid(t)),
    ).then(becomes(t, f, load(g, o, s.append(Vec(r, c)), v, "Mat", k, 0)))  # fmt: skip


@SINKING.rule
def load_into_vec_at_use(
    t: Tensor, g: Gm, o: Vec[Index], r: Index, c: Index, k: i64, a: i64, s: Vec[Index],
    v: Vec[Index],
) -> Body:  # fmt: skip
    """Loading in the loop costs a load each trip and frees the buffer in between (A-04)."""
    f = vec(r, c, k)
    return when(
        vec_need(t, r, c, k), located(t, g, o), floating(t), at(t, a), inside(k, a),
        eq(s).to(lead(t)), eq(v).to(valid(t)),
    ).then(becomes(t, f, load(g, o, s.append(Vec(r, c)), v, "Vec", k, 0)))  # fmt: skip


@SINKING.rule
def load_into_mat_at_use(
    t: Tensor, g: Gm, o: Vec[Index], r: Index, c: Index, k: i64, a: i64, s: Vec[Index],
    v: Vec[Index],
) -> Body:  # fmt: skip
    """As into Vec."""
    f = mat(r, c, "nz", k)
    return when(
        mat_need(t, r, c, "nz", k), located(t, g, o), floating(t), at(t, a), inside(k, a),
        boxable(t), eq(s).to(lead(t)), eq(v).to(valid(t)),
    ).then(becomes(t, f, load(g, o, s.append(Vec(r, c)), v, "Mat", k, 0)))  # fmt: skip


# --- views and moves ---------------------------------------------------------------------------


@PLACEMENT.rule
def transposed_operand_is_a_view(t: Tensor, r: Index, c: Index, k: i64) -> Body:
    """The natural Mat tile read as its transpose, without moving a byte (C-019, K-05)."""
    return when(demand(t, mat(r, c, "zn", k))).then(
        demand(t, mat(r, c, "nz", k)),
        becomes(
            t, mat(r, c, "zn", k), tile1("tile.transpose_view", "", realize(t, mat(r, c, "nz", k)))
        ),
    )


@TRANSPOSED_LOAD.rule
def transposed_operand_is_loaded_transposed(
    t: Tensor, g: Gm, o: Vec[Index], r: Index, c: Index, k: i64
) -> Body:
    """The DN view of the tensor is loaded: the DMA makes the other fractal order (A-06)."""
    f = mat(r, c, "zn", k)
    return when(
        mat_need(t, r, c, "zn", k), located(t, g, o), transposable(g), floating(t),
        at(t, k), whole(t), boxable(t),
    ).then(
        becomes(
            t, f,
            load(g.transposed(), Vec(o[1], o[0]), Vec(c, r), Vec(cols(t), rows(t)), "Mat", k, 0),
        )
    )  # fmt: skip


@PLACEMENT.rule
def vector_result_to_mat(t: Tensor, r: i64, c: i64, k: i64) -> Body:
    """A computed cube operand crosses from the vector side into Mat (A-05)."""
    f, before = mat(Index(r), Index(c), "nz", k), vec(Index(r), Index(c), k)
    return when(
        demand(t, f), computed(t), at(t, k), eq(c % line(dtype(t))).to(i64(0)),
        eq((batch(t).max(1) * r) % fractal_rows()).to(i64(0)),
    ).then(
        demand(t, before), becomes(t, f, tile1("tile.move", TO_MAT, realize(t, before)))
    )  # fmt: skip


@PLACEMENT.rule
def accumulator_to_vec(t: Tensor, r: i64, c: i64, k: i64, d: String) -> Body:
    """A product that a vector op consumes leaves L0C for Vec, as plain rows."""
    f = vec(Index(r), Index(c), k)
    return when(demand(t, f), eq(d).to(acc_dtype(t)), eq(d).to(dtype(t)), at(t, k)).then(
        demand(t, acc(r, c, k)), becomes(t, f, tile1("tile.move", TO_VEC, realize(t, acc(r, c, k))))
    )


@PLACEMENT.rule
def accumulator_to_vec_rounds(t: Tensor, r: i64, c: i64, k: i64, d: String, e: String) -> Body:
    """Out of L0C the value is rounded to the tensor's own dtype."""
    f = vec(Index(r), Index(c), k)
    return when(
        demand(t, f), eq(d).to(acc_dtype(t)), eq(e).to(dtype(t)), ne(d).to(e), at(t, k),
    ).then(
        demand(t, acc(r, c, k)),
        becomes(t, f, tile_cast(tile1("tile.move", TO_VEC, realize(t, acc(r, c, k))), e, "rint")),
    )  # fmt: skip


@DRAIN_TO_MAT.rule
def accumulator_to_mat(t: Tensor, r: i64, c: i64, k: i64, a: String, d: String) -> Body:
    """A chained product stays on the cube side: FIXPIPE rounds it into Mat."""
    f = mat(Index(r), Index(c), "nz", k)
    return when(
        demand(t, f), eq(a).to(acc_dtype(t)), eq(d).to(dtype(t)), inserts(a, d), at(t, k),
    ).then(
        demand(t, acc(r, c, k)), becomes(t, f, tile_insert(realize(t, acc(r, c, k)), d))
    )  # fmt: skip


@PLACEMENT.rule
def made_in_an_enclosing_region(
    t: Tensor, s: String, r: Index, c: Index, o: String, k: i64, a: i64, p: i64
) -> Body:
    """What does not depend on a loop may be made before it and used in it."""
    inner, before = Form(s, r, c, o, k), Form(s, r, c, o, p)
    return when(demand(t, inner), at(t, a), inside(k, a), eq(p).to(around(k))).then(
        demand(t, before), becomes(t, inner, outer(realize(t, before), k))
    )
