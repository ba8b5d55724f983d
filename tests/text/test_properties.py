"""Whatever is printed reads back as the same thing, for generated types, expressions, programs."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pypto_egg.ir import enums
from pypto_egg.ir.dtype import BF16, BOOL, DTYPES, FP16, FP32, INDEX, INT8, INT32, DType
from pypto_egg.ir.enums import FunctionType, Mem
from pypto_egg.ir.expr import (
    BinOp,
    Cast,
    ConstBool,
    ConstFloat,
    ConstInt,
    Expr,
    UnOp,
    Var,
    as_dim,
)
from pypto_egg.ir.program import Function, Param
from pypto_egg.ir.stmt import Return
from pypto_egg.ir.types import (
    ArrayType,
    ScalarType,
    TensorView,
    TileView,
    TupleType,
    Type,
    tensor_type,
    tile_type,
)
from pypto_egg.text import parse, print_function, print_program

QUICK = settings(max_examples=60, suppress_health_check=list(HealthCheck))

N, K = Var("n", ScalarType(INDEX)), Var("k", ScalarType(INDEX))
B, U = Var("b", ScalarType(INT32)), Var("u", ScalarType(INT8))
F, H = Var("f", ScalarType(FP32)), Var("h", ScalarType(FP16))
P = Var("p", ScalarType(BOOL))
SCALARS = (N, K, B, U, F, H, P)
BY_DTYPE: dict[DType, tuple[Var, ...]] = {
    INDEX: (N, K), INT32: (B,), INT8: (U,), FP32: (F,), FP16: (H,),
}  # fmt: skip


def constants(dtype: DType) -> st.SearchStrategy[Expr]:
    if dtype.is_float:
        floats = st.floats(allow_nan=False, allow_infinity=False)
        return floats.map(lambda value: ConstFloat(value, dtype))
    limit = 2 ** (dtype.bits - 1)
    return st.integers(-limit, limit - 1).map(lambda value: ConstInt(value, dtype))


def arithmetic(dtype: DType, depth: int = 3) -> st.SearchStrategy[Expr]:
    """Scalar expressions of one dtype, as PyPTO builds them: operands are of that dtype."""
    leaves = st.one_of(st.sampled_from(BY_DTYPE[dtype]), constants(dtype))
    if depth == 0:
        return leaves
    below = arithmetic(dtype, depth - 1)
    ops = ["+", "-", "*", "/", "//", "%", "min", "max"] + ([] if dtype.is_float else ["<<", ">>"])
    other = st.sampled_from([d for d in BY_DTYPE if d.is_float == dtype.is_float])
    signs = ["-"] if dtype.is_float else ["-", "~"]
    return st.one_of(
        leaves,
        st.builds(lambda op, a, b: BinOp(op, a, b, dtype), st.sampled_from(ops), below, below),
        st.builds(lambda op, a: UnOp(op, a, dtype), st.sampled_from(signs), below),
        other.flatmap(lambda d: st.sampled_from(BY_DTYPE[d])).map(lambda v: Cast(v, dtype)),
    )


def conditions(depth: int = 2) -> st.SearchStrategy[Expr]:
    compare = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
    compared = st.sampled_from(list(BY_DTYPE)).flatmap(
        lambda d: st.builds(
            lambda op, a, b: BinOp(op, a, b, BOOL), compare, arithmetic(d, 1), arithmetic(d, 1)
        )
    )
    leaves = st.one_of(st.just(P), st.booleans().map(ConstBool), compared)
    if depth == 0:
        return leaves
    below = conditions(depth - 1)
    return st.one_of(
        leaves,
        st.builds(
            lambda op, a, b: BinOp(op, a, b, BOOL), st.sampled_from(["and", "or"]), below, below
        ),
        below.map(lambda a: UnOp("not", a, BOOL)),
    )


def returning(value: Expr) -> Function:
    params = tuple(Param(var) for var in SCALARS)
    return Function("f", FunctionType.Opaque, params, (), (Return((value,)),))


def reread(function: Function) -> Function:
    """The function read back, its parameters replaced by the original ones."""
    text = print_function(function)
    (again,) = parse(text).functions
    assert print_function(again) == text
    return again


def renamed(value: Expr, names: dict[Var, Var]) -> Expr:
    """An expression with its variables replaced, for comparison by value."""
    match value:
        case Var():
            return names[value]
        case BinOp():
            lhs, rhs = renamed(value.lhs, names), renamed(value.rhs, names)
            return BinOp(value.op, lhs, rhs, value.dtype)
        case UnOp():
            return UnOp(value.op, renamed(value.operand, names), value.dtype)
        case Cast():
            return Cast(renamed(value.operand, names), value.dtype)
    return value


@QUICK
@given(st.sampled_from(list(BY_DTYPE)).flatmap(arithmetic))
def test_scalar_expressions(value: Expr) -> None:
    again = reread(returning(value))
    names = {p.var: q for p, q in zip(again.params, SCALARS, strict=True)}
    (statement,) = again.body
    assert isinstance(statement, Return)
    assert renamed(statement.values[0], names) == value


@QUICK
@given(conditions())
def test_conditions(value: Expr) -> None:
    reread(returning(value))


dims = st.one_of(
    st.integers(0, 4096),
    st.sampled_from([N, K]),
    st.builds(
        lambda op, a, b: as_dim(BinOp(op, a, b, INDEX)),
        st.sampled_from(["+", "-", "*", "//", "%", "min", "max"]),
        st.sampled_from([N, K]),
        st.one_of(st.sampled_from([N, K]), st.integers(1, 64).map(ConstInt)),
    ),
)
dtypes = st.sampled_from([d for d in DTYPES.values() if d.name != "TASK_ID"])


@st.composite
def tensor_types(draw: st.DrawFn) -> Type:
    shape = tuple(draw(st.lists(dims, max_size=4)))
    view = None
    if shape and draw(st.booleans()):
        same_rank = st.tuples(*[dims for _ in shape])
        view = TensorView(
            draw(st.none() | same_rank),
            draw(st.just(()) | same_rank),
            draw(st.sampled_from(enums.TensorLayout)),
            draw(st.sampled_from(enums.PadValue)),
        )
    return tensor_type(shape, draw(dtypes), view, distributed=draw(st.booleans()))


@st.composite
def tile_types(draw: st.DrawFn) -> Type:
    shape = tuple(draw(st.lists(dims, min_size=1, max_size=3)))
    view = None
    if draw(st.booleans()):
        same_rank = st.tuples(*[dims for _ in shape])
        view = TileView(
            draw(st.none() | same_rank),
            draw(st.just(()) | same_rank),
            draw(st.none() | st.sampled_from([N, ConstInt(64)])),
            draw(st.sampled_from(enums.TileLayout)),
            draw(st.sampled_from(enums.TileLayout)),
            draw(st.sampled_from([32, 512, 1024])),
            draw(st.sampled_from(enums.PadValue)),
            draw(st.sampled_from(enums.CompactMode)),
        )
    return tile_type(shape, draw(dtypes), draw(st.none() | st.sampled_from(Mem)), view)


simple_types = st.one_of(
    tensor_types(),
    tile_types(),
    dtypes.map(ScalarType),
    st.builds(ArrayType, st.integers(1, 64), dtypes),
)
types = simple_types | st.lists(simple_types, max_size=3).map(lambda t: TupleType(tuple(t)))


@QUICK
@given(types)
def test_types(kind: Type) -> None:
    x, y = Var("x", kind), Var("y", kind)
    params = tuple(Param(var) for var in (N, K, x, y))
    function = Function("f", FunctionType.Opaque, params, (), ())
    again = reread(function)
    first, second = again.params[2:]
    assert first.var.type == second.var.type
    assert type(first.var.type) is type(kind)


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A kernel of random elementwise statements, loops with carries and branches with phis."""
    lines: list[str] = []
    names = ["x"]
    counter = [0]

    def fresh(stem: str) -> str:
        counter[0] += 1
        return f"{stem}{counter[0]}"

    def statement(indent: str, depth: int) -> None:
        choice = draw(st.sampled_from(["op", "op", "loop", "if", "call"] if depth else ["op"]))
        source = draw(st.sampled_from(names))
        if choice == "op":
            op = draw(st.sampled_from(["exp({a})", "add({a}, {a})", "mul({a}, 0.5)", "neg({a})"]))
            target = fresh(draw(st.sampled_from(["t", "u", "v__ssa_v"])))
            lines.append(f"{indent}{target} = pl.{op.format(a=source)}")
            names.append(target)
        elif choice == "call":
            lines.append(f"{indent}pl.tensor.write({source}, [0, n], 1.0)")
        elif choice == "loop":
            block(indent, depth, f"for i, (c,) in pl.range(n, init_values=({source},)):", "c")
        else:
            result = fresh("r")
            block(indent, depth, "if n > 3:", source, result)
            block(indent, depth, "else:", source, result)
            names.append(result)

    def block(indent: str, depth: int, header: str, first: str, result: str = "") -> None:
        lines.append(f"{indent}{header}")
        outer = list(names)
        names.append(first)
        for _ in range(draw(st.integers(0, 2))):
            statement(indent + "    ", depth - 1)
        target = result or fresh("r")
        lines.append(f"{indent}    {target} = pl.yield_({draw(st.sampled_from(names))})")
        names[:] = outer if result else [*outer, target]

    for _ in range(draw(st.integers(1, 5))):
        statement("        ", 2)
    lines.append(f"        return {draw(st.sampled_from(names))}")
    kind = "pl.Tensor[[16, 64], pl.FP32]"
    return (
        "@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.InCore)\n"
        f"    def k(self, x: {kind}, n: pl.Scalar[pl.INDEX]) -> {kind}:\n" + "\n".join(lines) + "\n"
    )


@QUICK
@given(programs())
def test_programs(text: str) -> None:
    program = parse(text)
    printed = print_program(program)
    assert print_program(parse(printed)) == printed
    concise = print_program(program, concise=True)
    assert print_program(parse(concise)) == printed


@QUICK
@given(
    st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=60),
    st.text(alphabet="'\"\\\n\t\x00é😀a", max_size=12),
)
def test_strings_survive(comment: str, attribute: str) -> None:
    body = (Return((), comments=(comment,)),)
    function = Function("f", FunctionType.Opaque, (), (), body, attrs=(("key", attribute),))
    again = reread(function)
    assert again.attrs == function.attrs
    lines = [line.strip() for line in comment.splitlines() or [""]]
    assert list(again.body[0].comments) == lines


def test_bfloat_constants_keep_their_dtype() -> None:
    (again,) = parse(print_function(returning(ConstFloat(0.5, BF16)))).functions
    assert again.body[0].values == (ConstFloat(0.5, BF16),)
