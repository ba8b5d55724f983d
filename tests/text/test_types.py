"""Types in every legal spelling, and how they print (PyPTO language reference, 3 to 5)."""

from collections.abc import Callable

import pytest

from pypto_egg.errors import PyptoEggError
from pypto_egg.ir.dtype import BF16, FP32
from pypto_egg.ir.enums import Mem, TensorLayout, TileLayout
from pypto_egg.ir.types import TensorType, TileType, Type, implicit_view
from pypto_egg.text import parse, print_program, print_type


def first_parameter(annotation: str) -> Type:
    text = f"@pl.function\ndef f(p: {annotation}, n: pl.Scalar[pl.INDEX]):\n    pass\n"
    return parse(text).functions[0].params[0].var.type


CANONICAL = [
    "pl.Scalar[pl.INT32]",
    "pl.Scalar[pl.TASK_ID]",
    "pl.Tensor[[16, 64], pl.FP8E4M3FN]",
    "pl.Tensor[[], pl.FP32]",
    "pl.Tensor[[n, M, 64], pl.FP32]",
    "pl.Tensor[[n * pl.const(2, pl.INDEX) + pl.const(1, pl.INDEX), 64], pl.FP32]",
    "pl.Tensor[[pl.min(n, pl.const(64, pl.INDEX)), n // pl.const(2, pl.INDEX)], pl.FP32]",
    "pl.Tensor[[64, 128], pl.FP32, "
    "pl.TensorView(valid_shape=[n, 128], stride=[], layout=pl.TensorLayout.ND)]",
    "pl.Tensor[[64, 128], pl.FP32, pl.TensorView(stride=[1, 64], layout=pl.TensorLayout.DN)]",
    "pl.Tensor[[64, 128], pl.FP32, "
    "pl.TensorView(stride=[], layout=pl.TensorLayout.ND, pad=pl.PadValue.min)]",
    "pl.Tensor[[64, 128], pl.BF16, pl.TensorView(stride=[], layout=pl.TensorLayout.NZ)]",
    'pl.Tensor[[64, 128], pl.BF16, pl.MemRef("ddr", 0, 16384)]',
    "pld.DistributedTensor[[64, M], pl.BF16]",
    "pl.Tile[[64, 128], pl.FP32]",
    "pl.Tile[[64, 1], pl.FP32, pl.Mem.Vec]",
    "pl.Tile[[4, 16, 1], pl.FP32, pl.Mem.Vec, pl.TileView(blayout=pl.TileLayout.col_major)]",
    "pl.Tile[[64, 128], pl.FP32, pl.Mem.Vec, "
    "pl.TileView(blayout=pl.TileLayout.col_major, slayout=pl.TileLayout.row_major)]",
    "pl.Tile[[64, 128], pl.FP32, pl.Mem.Acc, "
    "pl.TileView(valid_shape=[n, 64], compact=pl.CompactMode.normal)]",
    "pl.Tile[[64, 128], pl.FP32, pl.Mem.Acc, pl.TileView(fractal=512)]",
    "pl.Tile[[64, 128], pl.FP32, pl.Mem.Vec, pl.TileView(valid_shape=[n, 64], stride=[128, 1], "
    "start_offset=n * pl.const(4, pl.INDEX), pad=pl.PadValue.max)]",
    'pl.Tile[[64, 128], pl.FP32, pl.MemRef("buf", slots=2)[n], pl.Mem.Vec]',
    "pl.Array[4, pl.INT32]",
    "pl.Tuple[pl.Scalar[pl.INT32], pl.Tensor[[4], pl.FP32]]",
    "pl.Tuple[()]",
    "pl.MemRefType",
    "pl.Ptr",
    "pl.AsyncEvent",
    "pl.UnknownType",
    "pld.WindowBufferType",
    "pld.CommCtxType",
]


@pytest.mark.parametrize("text", CANONICAL)
def test_canonical_types_print_as_read(text: str) -> None:
    assert print_type(first_parameter(text)) == text


SYNONYMS = {
    "pl.TaskId": "pl.Scalar[pl.TASK_ID]",
    "pl.Tensor[(16, 64), pl.FP32]": "pl.Tensor[[16, 64], pl.FP32]",
    "pl.Tensor((16, 64), pl.FP32)": "pl.Tensor[[16, 64], pl.FP32]",
    "pl.Tensor[[2 * 8, 64], pl.FP32]": "pl.Tensor[[16, 64], pl.FP32]",
    "pl.Tensor[[16, 64], pl.FP32, pl.ND]": "pl.Tensor[[16, 64], pl.FP32]",
    "pl.Tensor[[16, 64], pl.FP32, pl.NZ]": (
        "pl.Tensor[[16, 64], pl.FP32, pl.TensorView(stride=[], layout=pl.TensorLayout.NZ)]"
    ),
    "pl.Tensor[[16, 64], pl.FP32, pl.TensorView()]": "pl.Tensor[[16, 64], pl.FP32]",
    "pl.Tensor[[16, 64], pl.FP32, "
    "pl.TensorView(layout=pl.TensorLayout.ND, valid_shape=[16, 64])]": (
        "pl.Tensor[[16, 64], pl.FP32]"
    ),
    "pl.Tensor[[n + 1, 64], pl.FP32]": "pl.Tensor[[n + pl.const(1, pl.INDEX), 64], pl.FP32]",
    "pl.Tile[[64, 128], pl.FP32, pl.TileView(pad=pl.PadValue.min), pl.MemorySpace.Vec, "
    'pl.MemRef("a")]': (
        'pl.Tile[[64, 128], pl.FP32, pl.MemRef("a"), pl.Mem.Vec, pl.TileView(pad=pl.PadValue.min)]'
    ),
    "pl.Tile[[64, 128], pl.FP32, pl.Mem.Acc, pl.TileView(blayout=pl.TileLayout.col_major, "
    "slayout=pl.TileLayout.row_major, fractal=1024, valid_shape=[64, 128])]": (
        "pl.Tile[[64, 128], pl.FP32, pl.Mem.Acc]"
    ),
}


@pytest.mark.parametrize("text", SYNONYMS)
def test_synonyms(text: str) -> None:
    assert print_type(first_parameter(text)) == SYNONYMS[text]


def test_omitted_fields_come_from_the_annotations_own_space() -> None:
    kind = first_parameter(
        "pl.Tile[[64, 128], pl.BF16, pl.Mem.Left, pl.TileView(fractal=512, "
        "blayout=pl.TileLayout.row_major)]"
    )
    assert isinstance(kind, TileType)
    assert kind.space is Mem.Left
    assert kind.layout.blayout is TileLayout.row_major
    assert kind.layout.slayout is implicit_view(kind.shape, Mem.Left).slayout


def test_a_tensor_keeps_its_parts() -> None:
    kind = first_parameter("pl.Tensor[[32, 64], pl.BF16, pl.NZ]")
    assert isinstance(kind, TensorType)
    assert (kind.shape, kind.dtype, kind.layout) == ((32, 64), BF16, TensorLayout.NZ)


def test_symbols_are_shared_by_name_over_the_program() -> None:
    program = parse(
        "@pl.program\nclass P:\n"
        "    @pl.function\n"
        "    def f(self, a: pl.Tensor[[M, 4], pl.FP32]) -> pl.Tensor[[M, 4], pl.FP32]:\n"
        "        return a\n"
        "    @pl.function\n"
        "    def g(self, b: pl.Tensor[[M, 4], pl.FP32]):\n"
        "        pass\n"
    )
    first, second = program.functions
    assert first.params[0].var.type == second.params[0].var.type == first.returns[0]
    assert 'M = pl.dynamic("M")' in print_program(program)


def test_a_symbol_may_be_used_as_a_value_if_a_type_mentions_it() -> None:
    text = (
        'M = pl.dynamic("M")\n@pl.function\ndef f():\n    a = pl.create_tensor([M, 64], pl.FP32)\n'
    )
    assert "a: pl.Tensor[[M, 64], pl.FP32] = pl.tensor.create([M, 64], " in print_program(
        parse(text)
    )


def test_a_scalar_parameter_is_the_symbol_of_its_name() -> None:
    text = (
        "# pypto.program: P\nimport pypto.language as pl\n\n"
        'n = pl.dynamic("n")\n\n'
        "@pl.program\nclass P:\n"
        "    @pl.function\n"
        "    def f(self, a: pl.Tensor[[8, 4], pl.FP32, pl.TensorView(valid_shape=[n, 4], "
        "stride=[], layout=pl.TensorLayout.ND)], n: pl.Scalar[pl.INDEX]):\n"
        "        pass\n"
    )
    program = parse(text)
    tensor, scalar = (param.var for param in program.functions[0].params)
    assert isinstance(tensor.type, TensorType)
    assert tensor.type.valid_shape[0] is scalar
    assert print_program(program) == text


REFUSED = {
    "pl.Tensor[[16, 64], pl.FP64]": "'pl.FP64' is not a dtype",
    "pl.Tensor[[16, 64]]": "needs a shape and a dtype",
    "pl.Tensor[[16, 1.5], pl.FP32]": "'1.5' is not an integer scalar",
    "pl.Tensor[[16, n / 2.0], pl.FP32]": "'/' cannot combine INDEX and FP32",
    "pl.Tensor[[16, f(3)], pl.FP32]": "'f(3)' cannot be part of a dimension",
    "pl.Tensor[[16, 64], pl.FP32, pl.DN]": "the layout DN needs strides",
    "pl.Tensor[[16, 64], pl.FP32, pl.TensorView(stride=[1, 16])]": "needs layout=",
    "pl.Tensor[[16, 64], pl.FP32, pl.TensorView(valid_shape=[1], layout=pl.TensorLayout.ND)]": (
        "valid_shape has 1 entries, but the shape has rank 2"
    ),
    'pl.Tensor[[16, 64], pl.FP32, pl.MemRef("a", 0, 4), pl.NZ]': "before its MemRef",
    "pl.Tensor[[16, 64], pl.FP32, pl.Mem.Vec]": "'pl.Mem.Vec' does not belong in a tensor type",
    "pl.Tile[[16, 64], pl.FP32, pl.Mem.L1]": "pl.Mem has no member 'L1'",
    "pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec, pl.Mem.Mat]": "takes one Mem",
    'pl.Tile[[16, 64], pl.FP32, pl.MemRef("a", 0, 4)]': "needs a memory space",
    "pl.Tile[[16, 64], pl.FP32, pl.TileView(layout=pl.TileLayout.row_major)]": "no field 'layout'",
    "pl.Array[0, pl.INT32]": "must be positive, got 0",
    "pl.Tuple[pl.Tuple[()]]": "tuples cannot be nested",
    "pl.Tensr[[1], pl.FP32]": "unknown type 'pl.Tensr[[1], pl.FP32]'",
    "'pl.Tensor'": "the string annotation 'pl.Tensor' is not a type",
    "int": "'int' is not a type of the language",
    "lambda: 0": "a lambda is not a type",
    "pl.InOut[pl.Scalar[pl.INT32]]": "cannot be InOut",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused_types(text: str) -> None:
    with pytest.raises(PyptoEggError) as caught:
        first_parameter(text)
    assert REFUSED[text] in caught.value.message
    assert caught.value.span is not None
    assert caught.value.span.line == 2


ANNOTATIONS = {
    # spelled space, view and buffer win; what is left out is inferred
    "a: pl.Tile[[16, 64], pl.FP32, pl.Mem.Mat] = pl.load(x, [0, 0], [16, 64])": (
        "pl.Tile[[16, 64], pl.FP32, pl.Mem.Mat]"
    ),
    "a: pl.Tile[[16, 64], pl.FP32] = pl.load(x, [0, 0], [16, 64])": (
        "pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec]"
    ),
    "a: pl.Tensor[[16, 64], pl.FP32, pl.NZ] = pl.exp(x)": (
        "pl.Tensor[[16, 64], pl.FP32, pl.TensorView(stride=[], layout=pl.TensorLayout.NZ)]"
    ),
    "a: pl.Tensor[[64, 16], pl.FP32] = pl.transpose(x, 0, 1)": (
        "pl.Tensor[[64, 16], pl.FP32, pl.TensorView(stride=[1, 64], layout=pl.TensorLayout.DN)]"
    ),
    "a: pl.Scalar[pl.INT64] = n": "pl.Scalar[pl.INT64]",
    "a: pl.Tensor[[16, n], pl.FP32] = pl.exp(x)": "pl.Tensor[[16, n], pl.FP32]",
}


@pytest.mark.parametrize("body", ANNOTATIONS)
def test_the_annotation_decides_what_it_spells(canonical: Callable[..., str], body: str) -> None:
    line = canonical(body)
    assert line.startswith(f"a: {ANNOTATIONS[body]} = ")


def test_equal_dtypes_are_one_object() -> None:
    kind = first_parameter("pl.Tensor[[1], pl.FP32]")
    assert isinstance(kind, TensorType)
    assert kind.dtype is FP32
