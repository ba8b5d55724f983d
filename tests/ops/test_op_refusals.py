"""Whatever operands an operator gets, it gives a type or one clear error, never a traceback."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pypto_egg.errors import TypeCheckError
from pypto_egg.ir.dtype import BF16, BOOL, FP8E4M3FN, FP16, FP32, INDEX, INT8, INT32, UINT8, UINT32
from pypto_egg.ir.enums import (
    AtomicType,
    CachePolicy,
    Mem,
    PadValue,
    SplitMode,
    TensorLayout,
    TileLayout,
)
from pypto_egg.ir.expr import ConstFloat, ConstInt, Var, tuple_of
from pypto_egg.ir.types import ArrayType, ScalarType, TensorView, Type, tensor_type, tile_type
from pypto_egg.ops.registry import declared, make_call

DECLS = [d for d in declared() if "test" not in d.name]
N = Var("n", ScalarType(INDEX))
DTYPE = st.sampled_from([FP32, FP16, BF16, INT32, INT8, UINT8, UINT32, BOOL, FP8E4M3FN])
DIM = st.sampled_from([0, 1, 2, 16, 64, N])
SHAPE = st.lists(DIM, max_size=4).map(tuple)
SAME = st.sampled_from([(16, 64), (16, 16), (1, 64), (16, 1), (64,)])


@st.composite
def tensors(draw):
    shape = draw(SAME | SHAPE)
    layout = draw(st.sampled_from(list(TensorLayout)))
    valid = tuple(draw(st.sampled_from([dim, 1, N])) for dim in shape)
    view = TensorView(valid, (), layout)
    return Var("x", tensor_type(shape, draw(DTYPE), view, distributed=draw(st.booleans())))


@st.composite
def tiles(draw):
    shape = draw(SAME | SHAPE)
    plain = tile_type(shape, draw(DTYPE), draw(st.sampled_from([None, *Mem])))
    valid = tuple(draw(st.sampled_from([dim, 1, N])) for dim in shape)
    return Var("t", plain.with_view(valid_shape=valid))


SCALARS = st.sampled_from(
    [N, ConstInt(0), ConstInt(-1), ConstInt(7, INT32), ConstFloat(0.5), Var("f", ScalarType(FP16))]
)
TUPLES = (SAME | SHAPE).map(tuple_of)
OPERANDS = {
    "tensor": tensors(),
    "tile": tiles(),
    "scalar": SCALARS,
    "tuple": TUPLES,
}
ANY = st.one_of(*OPERANDS.values(), st.just(Var("a", ArrayType(4, INT32))))
KWARGS = {
    "bool": st.booleans(),
    "int": st.integers(-3, 70),
    "float": st.sampled_from([0.0, 1]),
    "str": st.sampled_from(["elem", "row", "soft", ""]),
    "dtype": DTYPE,
    "mem": st.sampled_from(list(Mem)),
    "tensor_layout": st.sampled_from(list(TensorLayout)),
    "tile_layout": st.sampled_from(list(TileLayout)),
    "pad": st.sampled_from(list(PadValue)),
    "atomic": st.sampled_from(list(AtomicType)),
    "cache": st.sampled_from(list(CachePolicy)),
    "split": st.sampled_from(list(SplitMode)),
    "any": st.sampled_from([0, 2, "round", "eq", None]),
}


@st.composite
def calls(draw):
    decl = draw(st.sampled_from(DECLS))
    odd = draw(st.integers(0, 9)) == 0
    args = []
    for operand in decl.operands:
        if operand.optional and draw(st.booleans()):
            break
        args.append(draw(ANY if odd else OPERANDS.get(operand.kind, ANY)))
    given_kwargs = {
        kwarg.name: draw(KWARGS[kwarg.kind])
        for kwarg in decl.kwargs
        if repr(kwarg.default) == "REQUIRED" or draw(st.booleans())
    }
    return decl, tuple(args), given_kwargs


def outcome(decl, args, kwargs):
    """The call, or the error that refuses it."""
    try:
        return make_call(decl.name, args, kwargs)
    except TypeCheckError as error:
        return error


@settings(max_examples=1500)
@given(calls())
def test_every_call_has_a_type_or_one_error_that_names_the_op(call):
    decl, args, kwargs = call
    result = outcome(decl, args, kwargs)
    if isinstance(result, TypeCheckError):
        assert result.message.startswith(decl.name)
        return
    assert isinstance(result.type, Type)
    assert make_call(decl.name, args, dict(result.kwargs)) == result
