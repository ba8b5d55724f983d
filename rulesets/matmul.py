"""Cube products: matmul, matmul_acc, bias, and the ways of accumulating in L0C."""

from __future__ import annotations

from egglog import String, Vec, eq, i64, ne, set_, union

from pypto_egg.egraph.language import (
    Form,
    Gm,
    Index,
    Scalar,
    Tensor,
    acc,
    acc_dtype,
    at,
    batch,
    bias_bytes,
    binary,
    capacity,
    carried,
    carry,
    cast,
    cols,
    computed,
    create,
    defined,
    demand,
    drains,
    dtype,
    element_bytes,
    fractal_rows,
    floating,
    iter_arg,
    lead,
    line,
    load,
    located,
    loop_carry,
    loop_result,
    looped,
    m_granularity,
    mat,
    matmul,
    matmul_acc,
    matmul_acc_from,
    n_granularity,
    outer,
    pads_n,
    realize,
    rows,
    seeded,
    tile1,
    tile2,
    tile3,
    tile_accumulate_from,
    tile_create,
    valid,
    whole,
)
from pypto_egg.rulesets.patterns import TO_BIAS, becomes
from pypto_egg.rulesets.ruleset import Body, RuleSet, when

MATMUL = RuleSet("matmul", "products on the cube")
ACCUMULATION = RuleSet("accumulation", "an addend joins the sum in L0C instead of the vector unit")
ROUNDING_DRAIN = RuleSet("rounding-drain", "a cast to even is folded into the accumulator's drain")


def _left(x: Tensor, a_trans: int, m: i64, k: i64) -> Form:
    """The form of the left operand: M is boxed on the axis where it is (C-133, C-134)."""
    if a_trans:
        return mat(rows(x), Index(m), "zn", k)
    return mat(Index(m), cols(x), "nz", k)


def _right(y: Tensor, b_trans: int, n: i64, k: i64) -> Form:
    if b_trans:
        return mat(Index(n), cols(y), "zn", k)
    return mat(rows(y), Index(n), "nz", k)


def _depth(x: Tensor, a_trans: int) -> Index:
    return rows(x) if a_trans else cols(x)


def _flags() -> list[tuple[int, int, str]]:
    """The four ways of transposing, with the letters the field uses for them."""
    return [(a, b, "nt"[a] + "nt"[b]) for a in (0, 1) for b in (0, 1)]


def _add_matmul(a_trans: int, b_trans: int, letters: str) -> None:
    def body(
        t: Tensor, x: Tensor, y: Tensor, d: String, m: i64, n: i64, k: i64, depth: i64
    ) -> Body:
        """Both operands go to Mat in whole fractals; K is never padded (C-128, C-168)."""
        left, right = _left(x, a_trans, m, k), _right(y, b_trans, n, k)
        return when(
            demand(t, acc(m, n, k)), at(t, k), eq(t).to(matmul(x, y, a_trans, b_trans, d)),
            eq(batch(t)).to(i64(0)), m * n * element_bytes(acc_dtype(t)) <= capacity("Acc"),
            eq(m % m_granularity(t)).to(i64(0)), eq(n % n_granularity(t)).to(i64(0)),
            eq(_depth(x, a_trans)).to(Index(depth)), eq(depth % line(dtype(x))).to(i64(0)),
        ).then(
            demand(x, left), demand(y, right),
            becomes(t, acc(m, n, k), tile2("tile.matmul", "", realize(x, left), realize(y, right))),
        )  # fmt: skip

    MATMUL.add(f"matmul-{letters}", body)


def _add_batch_matmul(a_trans: int, b_trans: int, letters: str) -> None:
    def body(
        t: Tensor, x: Tensor, y: Tensor, d: String, m: i64, n: i64, k: i64, depth: i64
    ) -> Body:
        """Rank 3 and more is one batched op, unrolled after the conversion (C-113, C-169)."""
        left, right = _left(x, a_trans, m, k), _right(y, b_trans, n, k)
        return when(
            demand(t, acc(m, n, k)), at(t, k), eq(t).to(matmul(x, y, a_trans, b_trans, d)),
            batch(t) > i64(0), eq((batch(t) * m) % fractal_rows()).to(i64(0)),
            eq(n % fractal_rows()).to(i64(0)), m * n * element_bytes(acc_dtype(t)) <= capacity("Acc"),
            eq(_depth(x, a_trans)).to(Index(depth)), eq(depth % line(dtype(x))).to(i64(0)),
        ).then(
            demand(x, left), demand(y, right),
            becomes(
                t, acc(m, n, k), tile2("tile.batch_matmul", "", realize(x, left), realize(y, right))
            ),
        )  # fmt: skip

    MATMUL.add(f"batch-matmul-{letters}", body)


def _add_matmul_acc(a_trans: int, b_trans: int, letters: str) -> None:
    def body(
        t: Tensor, z: Tensor, x: Tensor, y: Tensor, m: i64, n: i64, k: i64, depth: i64
    ) -> Body:
        """The accumulator is demanded with the product's own physical M and N (C-145)."""
        left, right, sum_ = _left(x, a_trans, m, k), _right(y, b_trans, n, k), acc(m, n, k)
        return when(
            demand(t, sum_), at(t, k), eq(t).to(matmul_acc(z, x, y, a_trans, b_trans)),
            eq(batch(t)).to(i64(0)), m * n * element_bytes(acc_dtype(t)) <= capacity("Acc"),
            eq(m % m_granularity(t)).to(i64(0)), eq(n % n_granularity(t)).to(i64(0)), pads_n(t),
            eq(_depth(x, a_trans)).to(Index(depth)), eq(depth % line(dtype(x))).to(i64(0)),
        ).then(
            demand(z, sum_), demand(x, left), demand(y, right),
            becomes(
                t, sum_,
                tile3("tile.matmul_acc", "", realize(z, sum_), realize(x, left), realize(y, right)),
            ),
        )  # fmt: skip

    MATMUL.add(f"matmul-acc-{letters}", body)


def _add_matmul_acc_from(a_trans: int, b_trans: int, letters: str) -> None:
    def body(
        t: Tensor, z: Tensor, x: Tensor, y: Tensor, m: i64, n: i64, k: i64, depth: i64, s: Scalar
    ) -> Body:
        """As matmul_acc; the condition goes with the op (init_cond)."""
        left, right, sum_ = _left(x, a_trans, m, k), _right(y, b_trans, n, k), acc(m, n, k)
        return when(
            demand(t, sum_), at(t, k), eq(t).to(matmul_acc_from(z, x, y, a_trans, b_trans, s)),
            eq(batch(t)).to(i64(0)), m * n * element_bytes(acc_dtype(t)) <= capacity("Acc"),
            eq(m % m_granularity(t)).to(i64(0)), eq(n % n_granularity(t)).to(i64(0)), pads_n(t),
            eq(_depth(x, a_trans)).to(Index(depth)), eq(depth % line(dtype(x))).to(i64(0)),
        ).then(
            demand(z, sum_), demand(x, left), demand(y, right),
            becomes(
                t, sum_,
                tile_accumulate_from(realize(z, sum_), realize(x, left), realize(y, right), s),
            ),
        )  # fmt: skip

    MATMUL.add(f"matmul-acc-from-{letters}", body)


def _add_batch_matmul_acc(a_trans: int, b_trans: int, letters: str) -> None:
    def body(
        t: Tensor, z: Tensor, x: Tensor, y: Tensor, m: i64, n: i64, k: i64, depth: i64
    ) -> Body:
        """As for rank 2; a batch keeps its own M and N (C-169)."""
        left, right, sum_ = _left(x, a_trans, m, k), _right(y, b_trans, n, k), acc(m, n, k)
        return when(
            demand(t, sum_), at(t, k), eq(t).to(matmul_acc(z, x, y, a_trans, b_trans)),
            batch(t) > i64(0), eq((batch(t) * m) % fractal_rows()).to(i64(0)),
            eq(n % fractal_rows()).to(i64(0)), m * n * element_bytes(acc_dtype(t)) <= capacity("Acc"),
            eq(_depth(x, a_trans)).to(Index(depth)), eq(depth % line(dtype(x))).to(i64(0)),
        ).then(
            demand(z, sum_), demand(x, left), demand(y, right),
            becomes(
                t, sum_,
                tile3(
                    "tile.batch_matmul_acc", "",
                    realize(z, sum_), realize(x, left), realize(y, right),
                ),
            ),
        )  # fmt: skip

    MATMUL.add(f"batch-matmul-acc-{letters}", body)


def _add_zero_seed(a_trans: int, b_trans: int, letters: str) -> None:
    def body(
        t: Tensor, i: i64, position: i64, p: i64, z: Tensor, u: Tensor, x: Tensor, y: Tensor,
        m: i64, n: i64, key: i64, first: Scalar, d: String,
    ) -> Body:  # fmt: skip
        """Zeros cannot be written to L0C; the first product overwrites instead (init_cond)."""
        inside_loop = acc(m, n, i)
        left, right = _left(x, a_trans, m, i), _right(y, b_trans, n, i)
        return when(
            demand(t, acc(m, n, p)), eq(t).to(loop_result(i, position)),
            carry(i, position, p, z, u), seeded(i, position, key, first), eq(d).to(acc_dtype(u)),
            eq(u).to(matmul_acc(iter_arg(i, position), x, y, a_trans, b_trans)), at(u, i),
            eq(m % m_granularity(u)).to(i64(0)), eq(n % n_granularity(u)).to(i64(0)), pads_n(u),
        ).then(
            demand(x, left), demand(y, right),
            union(loop_carry(i, position, inside_loop)).with_(
                looped(
                    i, position, inside_loop,
                    tile_create(key, Vec(Index(m), Index(n)), rows(t), cols(t), d, "Acc", p),
                    tile_accumulate_from(
                        carried(i, position, inside_loop),
                        realize(x, left), realize(y, right), first,
                    ),
                )
            ),
            becomes(t, acc(m, n, p), outer(loop_carry(i, position, inside_loop), p)),
        )  # fmt: skip

    MATMUL.add(f"zero-seeded-accumulator-{letters}", body)


def _add_accumulated_add(a_trans: int, b_trans: int, letters: str, swapped: bool) -> None:
    def body(
        t: Tensor, z: Tensor, p: Tensor, x: Tensor, y: Tensor, m: i64, n: i64, k: i64, d: String
    ) -> Body:
        """z + x @ y continues the sum in z's accumulator, if z is in one (matmul_acc)."""
        left, right, sum_ = _left(x, a_trans, m, k), _right(y, b_trans, n, k), acc(m, n, k)
        pair = (p, z) if swapped else (z, p)
        return when(
            demand(t, acc(m, n, k)), at(t, k), eq(t).to(binary("tensor.add", "", *pair)),
            eq(p).to(matmul(x, y, a_trans, b_trans, d)), eq(acc_dtype(p)).to(d),
            eq(acc_dtype(z)).to(d), eq(dtype(z)).to(d), ne(z).to(p), eq(batch(p)).to(i64(0)),
            eq(rows(z)).to(rows(t)), eq(cols(z)).to(cols(t)),
            eq(m % m_granularity(p)).to(i64(0)), eq(n % n_granularity(p)).to(i64(0)),
        ).then(
            demand(z, sum_), demand(x, left), demand(y, right),
            becomes(
                t, sum_,
                tile3("tile.matmul_acc", "", realize(z, sum_), realize(x, left), realize(y, right)),
            ),
        )  # fmt: skip

    side = "left" if swapped else "right"
    ACCUMULATION.add(f"add-of-a-product-on-the-{side}-accumulates-{letters}", body)


def _add_bias(a_trans: int, b_trans: int, letters: str) -> None:
    def body(
        t: Tensor, p: Tensor, x: Tensor, y: Tensor, bias: Tensor, m: i64, n: i64, k: i64,
        d: String,
    ) -> Body:  # fmt: skip
        """x @ y + bias starts the sum from the bias table, if the row fits it (matmul_bias)."""
        left, right = _left(x, a_trans, m, k), _right(y, b_trans, n, k)
        row = Form("Bias", Index(1), Index(n), "nd", k)
        return when(
            demand(t, acc(m, n, k)), at(t, k),
            eq(t).to(binary("tensor.col_expand_add", "", p, bias)),
            eq(p).to(matmul(x, y, a_trans, b_trans, d)), eq(acc_dtype(p)).to(d),
            eq(dtype(bias)).to(d), eq(batch(p)).to(i64(0)),
            eq(m % m_granularity(p)).to(i64(0)), eq(n % n_granularity(p)).to(i64(0)),
            n * element_bytes(d) <= capacity("Bias"),
            eq((n * element_bytes(d)) % bias_bytes()).to(i64(0)),
        ).then(
            demand(x, left), demand(y, right), demand(bias, row),
            becomes(
                t, acc(m, n, k),
                tile3(
                    "tile.matmul_bias", "", realize(x, left), realize(y, right), realize(bias, row)
                ),
            ),
        )  # fmt: skip

    ACCUMULATION.add(f"bias-in-the-cube-{letters}", body)


for _a, _b, _letters in _flags():
    _add_matmul(_a, _b, _letters)
    _add_batch_matmul(_a, _b, _letters)
    _add_matmul_acc(_a, _b, _letters)
    _add_matmul_acc_from(_a, _b, _letters)
    _add_batch_matmul_acc(_a, _b, _letters)
    _add_zero_seed(_a, _b, _letters)
    _add_accumulated_add(_a, _b, _letters, swapped=False)
    _add_accumulated_add(_a, _b, _letters, swapped=True)
    _add_bias(_a, _b, _letters)


@ACCUMULATION.rule
def accumulation_is_a_sum(
    t: Tensor, z: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, k: i64, d: String, s: Vec[Index],
    v: Vec[Index],
) -> Body:  # fmt: skip
    """acc + x @ y can also be a product of its own and an addition on the vector unit."""
    p = matmul(x, y, i, j, d)
    return when(
        eq(t).to(matmul_acc(z, x, y, i, j)), defined(z), eq(d).to(acc_dtype(t)), at(t, k),
        eq(batch(t)).to(i64(0)), eq(s).to(lead(t)), eq(v).to(valid(t)), whole(t),
    ).then(
        union(t).with_(binary("tensor.add", "", z, p)),
        union(rows(p)).with_(rows(t)), union(cols(p)).with_(cols(t)),
        set_(lead(p)).to(s), set_(batch(p)).to(0), set_(valid(p)).to(v), set_(dtype(p)).to(d),
        at(p, k), computed(p), whole(p),
    )  # fmt: skip


@ACCUMULATION.rule
def sum_of_products_is_in_an_accumulator(
    t: Tensor, z: Tensor, p: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String
) -> Body:
    """The sum can be left in L0C if both addends can, unrounded."""
    return when(
        eq(t).to(binary("tensor.add", "", z, p)), eq(p).to(matmul(x, y, i, j, d)),
        eq(acc_dtype(z)).to(d), eq(acc_dtype(p)).to(d), eq(dtype(z)).to(d), ne(z).to(p),
    ).then(set_(acc_dtype(t)).to(d))  # fmt: skip


@ACCUMULATION.rule
def product_plus_sum_is_in_an_accumulator(
    t: Tensor, z: Tensor, p: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String
) -> Body:
    """As above, with the product on the left."""
    return when(
        eq(t).to(binary("tensor.add", "", p, z)), eq(p).to(matmul(x, y, i, j, d)),
        eq(acc_dtype(z)).to(d), eq(acc_dtype(p)).to(d), eq(dtype(z)).to(d), ne(z).to(p),
    ).then(set_(acc_dtype(t)).to(d))  # fmt: skip


@ACCUMULATION.rule
def biased_product_is_in_an_accumulator(
    t: Tensor, p: Tensor, x: Tensor, y: Tensor, bias: Tensor, i: i64, j: i64, d: String
) -> Body:
    """A product with a bias row can be left in L0C."""
    return when(
        eq(t).to(binary("tensor.col_expand_add", "", p, bias)),
        eq(p).to(matmul(x, y, i, j, d)), eq(acc_dtype(p)).to(d), eq(dtype(bias)).to(d),
    ).then(set_(acc_dtype(t)).to(d))  # fmt: skip


@ACCUMULATION.rule
def bias_goes_through_mat(bias: Tensor, c: Index, k: i64) -> Body:
    """The bias table is filled from Mat (C-117)."""
    row = mat(Index(1), c, "row", k)
    return when(demand(bias, Form("Bias", Index(1), c, "nd", k))).then(
        demand(bias, row),
        becomes(
            bias, Form("Bias", Index(1), c, "nd", k),
            tile1("tile.move", TO_BIAS, realize(bias, row)),
        ),
    )  # fmt: skip


@ACCUMULATION.rule
def bias_row_is_loaded_into_mat(
    bias: Tensor, g: Gm, o: Vec[Index], c: Index, k: i64, v: Vec[Index]
) -> Body:
    """A one-row Mat tile is not boxed."""
    row = mat(Index(1), c, "row", k)
    return when(
        demand(bias, row), located(bias, g, o), floating(bias), at(bias, k),
        eq(v).to(valid(bias)), eq(rows(bias)).to(Index(1)),
    ).then(becomes(bias, row, load(g, o, Vec(Index(1), c), v, "Mat", k, 0)))  # fmt: skip


@MATMUL.rule
def created_accumulator_is_boxed(
    t: Tensor, key: i64, m: i64, n: i64, k: i64, d: String, s: Vec[Index]
) -> Body:
    """An accumulator is created in L0C, never loaded, with its true shape as valid (C-147)."""
    return when(
        demand(t, acc(m, n, k)), eq(t).to(create(key)), at(t, k), eq(d).to(dtype(t)), eq(s).to(lead(t))
    ).then(
        becomes(
            t, acc(m, n, k),
            tile_create(key, s.append(Vec(Index(m), Index(n))), rows(t), cols(t), d, "Acc", k),
        )
    )  # fmt: skip


@MATMUL.rule
def created_buffer_can_be_an_accumulator(t: Tensor, u: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, d: String) -> Body:
    """What is accumulated into lies in L0C from the start (C-146)."""
    return when(
        eq(u).to(matmul_acc(t, x, y, i, j)), eq(d).to(acc_dtype(u))
    ).then(set_(acc_dtype(t)).to(d))


@MATMUL.rule
def created_buffer_can_be_overwritten_in_l0c(
    t: Tensor, u: Tensor, x: Tensor, y: Tensor, i: i64, j: i64, s: Scalar, d: String
) -> Body:
    """As above with an initial condition."""
    return when(
        eq(u).to(matmul_acc_from(t, x, y, i, j, s)), eq(d).to(acc_dtype(u))
    ).then(set_(acc_dtype(t)).to(d))


@ROUNDING_DRAIN.rule
def cast_to_even_is_the_drain(t: Tensor, x: Tensor, d: String, a: String) -> Body:
    """FIXPIPE rounds to nearest even, which is what the cast asks for."""
    return when(
        eq(t).to(cast(x, d, "rint")), eq(a).to(acc_dtype(x)), eq(a).to(dtype(x)), drains(a, d)
    ).then(set_(acc_dtype(t)).to(a))


@ROUNDING_DRAIN.rule
def drained_cast_is_the_accumulator(
    t: Tensor, x: Tensor, d: String, a: String, m: i64, n: i64, k: i64
) -> Body:
    """The accumulator holds the unrounded value of both."""
    return when(
        demand(t, acc(m, n, k)), eq(t).to(cast(x, d, "rint")), eq(a).to(acc_dtype(x)),
        eq(a).to(dtype(x)), drains(a, d), at(t, k),
    ).then(demand(x, acc(m, n, k)), becomes(t, acc(m, n, k), realize(x, acc(m, n, k))))  # fmt: skip
