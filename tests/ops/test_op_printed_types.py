"""The types that PyPTO prints for its own calls are the types that we infer.

Each case is one assignment of a program as PyPTO e2d0f78 (Ascend910B) prints it; the comment is
the printed line, shortened to its operator.
"""

import pytest

from pypto_egg.ir.dtype import BF16, FP16, FP32, INDEX, UINT8
from pypto_egg.ir.enums import CompactMode, Mem, TensorLayout, TileLayout
from pypto_egg.ir.expr import ConstFloat, ConstInt, Var, tuple_of
from pypto_egg.ir.types import (
    ScalarType,
    TensorView,
    TileView,
    implicit_view,
    tensor_type,
    tile_type,
)
from pypto_egg.ops.registry import make_call

ROW, COL, NONE = TileLayout.row_major, TileLayout.col_major, TileLayout.none_box
ROWS = Var("rows", ScalarType(INDEX))
K0 = Var("k0", ScalarType(INDEX))
BOXED = TileView(blayout=COL, slayout=ROW)
TRANSPOSED = TileView(blayout=ROW, slayout=COL)


def tensor(shape, dtype=FP32, view=None):
    return Var("x", tensor_type(shape, dtype, view))


def tile(shape, dtype=FP32, space=Mem.Vec, view=None):
    return Var("t", tile_type(shape, dtype, space, view))


def acc_view(valid):
    view = implicit_view(valid, Mem.Acc)
    return TileView(valid, (), None, view.blayout, view.slayout, 1024, compact=CompactMode.normal)


def mat_view(valid):
    return TileView(valid, (), None, COL, ROW)


TENSOR_CASES = [
    # s = pl.tensor.matmul(q, k, b_trans=True, out_dtype=pl.FP32)
    (
        ("tensor.matmul", (tensor((64, 128), BF16), tensor((96, 128), BF16))),
        {"b_trans": True, "out_dtype": FP32},
        tensor_type((64, 96), FP32),
    ),
    # s = pl.tensor.matmul(q, k, a_trans=True, b_trans=True, out_dtype=pl.FP32)
    (
        ("tensor.matmul", (tensor((128, 64), FP16), tensor((256, 128), FP16))),
        {"a_trans": True, "b_trans": True, "out_dtype": FP32},
        tensor_type((64, 256), FP32),
    ),
    # c = pl.tensor.matmul(a, b), rank 3
    (
        ("tensor.matmul", (tensor((4, 32, 64), FP16), tensor((4, 64, 48), FP16))),
        {"out_dtype": FP32},
        tensor_type((4, 32, 48), FP32),
    ),
    # xv = pl.tensor.slice(x, [16, 128], [0, 0], [rows, 128])
    (
        (
            "tensor.slice",
            (tensor((16, 128), BF16), *map(tuple_of, ((16, 128), (0, 0), (ROWS, 128)))),
        ),
        {},
        tensor_type((16, 128), BF16, TensorView(valid_shape=(ROWS, 128))),
    ),
    # t = pl.tensor.transpose(x, 0, 1)
    (
        ("tensor.transpose", (tensor((32, 64)), ConstInt(0), ConstInt(1))),
        {},
        tensor_type((64, 32), FP32, TensorView(stride=(1, 64), layout=TensorLayout.DN)),
    ),
    # a_mat_view2d = pl.tensor.view(a, [128, 64])
    (
        ("tensor.view", (tensor((4, 32, 64), FP16), tuple_of((128, 64)))),
        {},
        tensor_type((128, 64), FP16, TensorView(stride=(64, 1))),
    ),
    # m = pl.tensor.row_max(x)
    (("tensor.row_max", (tensor((32, 64)),)), {}, tensor_type((32, 1), FP32)),
]

TILE_CASES = [
    # x__tile = pl.tile.load(x, [0, 0], [32, 64], [32, 64], target_memory=pl.Mem.Vec)
    (
        ("tile.load", (tensor((32, 64)), *map(tuple_of, ((0, 0), (32, 64), (32, 64))))),
        {"target_memory": Mem.Vec},
        tile_type((32, 64), FP32, Mem.Vec),
    ),
    # xk__tile = pl.tile.load(x, [0, k0], [16, 256], [16, 256], target_memory=pl.Mem.Mat)
    (
        ("tile.load", (tensor((16, 5120), BF16), *map(tuple_of, ((0, K0), (16, 256), (16, 256))))),
        {"target_memory": Mem.Mat},
        tile_type((16, 256), BF16, Mem.Mat),
    ),
    # xv__tile = pl.tile.load(x, [0, 0], [16, 128], [rows, 128], target_memory=pl.Mem.Mat)
    (
        ("tile.load", (tensor((16, 128), BF16), *map(tuple_of, ((0, 0), (16, 128), (ROWS, 128))))),
        {"target_memory": Mem.Mat},
        tile_type((16, 128), BF16, Mem.Mat, mat_view((ROWS, 128))),
    ),
    # k_mat_t = pl.tile.transpose_view(k_mat)
    (
        ("tile.transpose_view", (tile((96, 128), BF16, Mem.Mat),)),
        {},
        tile_type((128, 96), BF16, Mem.Mat, TRANSPOSED),
    ),
    # y__tile = pl.tile.matmul(xv__tile, w_mat), partial rows
    (
        (
            "tile.matmul",
            (tile((16, 128), BF16, Mem.Mat, mat_view((ROWS, 128))), tile((128, 64), BF16, Mem.Mat)),
        ),
        {},
        tile_type((16, 64), FP32, Mem.Acc, acc_view((ROWS, 64))),
    ),
    # c__tile = pl.tile.batch_matmul(a_mat, b_mat)
    (
        (
            "tile.batch_matmul",
            (tile((4, 32, 64), FP16, Mem.Mat), tile((4, 64, 48), FP16, Mem.Mat)),
        ),
        {},
        tile_type((4, 32, 48), FP32, Mem.Acc),
    ),
    # acc_next = pl.tile.matmul_acc(acc_iter, a, b), the accumulator still carried in Vec
    (
        (
            "tile.matmul_acc",
            (
                tile((16, 256)),
                tile((16, 64), BF16, Mem.Left, TileView(blayout=ROW, slayout=ROW)),
                tile((64, 256), BF16, Mem.Right),
            ),
        ),
        {},
        tile_type((16, 256), FP32, Mem.Acc),
    ),
    # s1__tile = pl.tile.muls(s__tile, 0.088), reading the accumulator
    (
        ("tile.muls", (tile((64, 128), FP32, Mem.Acc), ConstFloat(0.088))),
        {},
        tile_type((64, 128), FP32, Mem.Vec, BOXED),
    ),
    # m__tile = pl.tile.row_max(s1__tile, tmp_tile)
    (
        ("tile.row_max", (tile((64, 128), FP32, Mem.Vec, BOXED), tile((64, 128)))),
        {},
        tile_type((64, 1), FP32, Mem.Vec),
    ),
    # c__tile = pl.tile.row_expand_sub(s1__tile, m__tile)
    (
        ("tile.row_expand_sub", (tile((64, 128), FP32, Mem.Vec, BOXED), tile((64, 1)))),
        {},
        tile_type((64, 128), FP32, Mem.Vec, BOXED),
    ),
    # pb__tile = pl.tile.cast(p__tile, target_type=pl.BF16, mode='round')
    (
        ("tile.cast", (tile((64, 128), FP32, Mem.Vec, BOXED),)),
        {"target_type": BF16, "mode": "round"},
        tile_type((64, 128), BF16, Mem.Vec, BOXED),
    ),
    # c__tile_l0_a = pl.tile.extract(a_mat, 0, ko, [64, 128], target_memory=pl.Mem.Left)
    (
        (
            "tile.extract",
            (tile((64, 256), BF16, Mem.Mat), ConstInt(0), K0, tuple_of((64, 128))),
        ),
        {"target_memory": Mem.Left},
        tile_type((64, 128), BF16, Mem.Left, TileView(blayout=ROW, slayout=ROW)),
    ),
    # c__tile_l0_b = pl.tile.extract(b_mat, ko, 0, [128, 128], target_memory=pl.Mem.Right)
    (
        (
            "tile.extract",
            (tile((256, 128), BF16, Mem.Mat), K0, ConstInt(0), tuple_of((128, 128))),
        ),
        {"target_memory": Mem.Right},
        tile_type((128, 128), BF16, Mem.Right),
    ),
    # lhs_slice_1 = pl.tile.slice(a_mat, [32, 64], [32, 0])
    (
        ("tile.slice", (tile((128, 64), FP16, Mem.Mat), tuple_of((32, 64)), tuple_of((32, 0)))),
        {},
        tile_type((32, 64), FP16, Mem.Mat),
    ),
    # t__tile = pl.tile.transpose(x__tile, 0, 1, transpose_tmp)
    (
        ("tile.transpose", (tile((32, 64)), ConstInt(0), ConstInt(1), tile((32, 64)))),
        {},
        tile_type((64, 32), FP32, Mem.Vec),
    ),
    # r__tile = pl.tile.reshape(e__tile, [16, 128])
    (
        ("tile.reshape", (tile((64, 32)), tuple_of((16, 128)))),
        {},
        tile_type((16, 128), FP32, Mem.Vec),
    ),
    # the compare mask of a 64 x 128 tile
    (
        ("tile.cmp", (tile((64, 128)), tile((64, 128)))),
        {"cmp_type": 2},
        tile_type((64, 32), UINT8, Mem.Vec, TileView(valid_shape=(64, 16))),
    ),
    # a rank-3 reduction prints its column-major layout
    (
        ("tile.row_sum", (tile((4, 16, 64)), tile((4, 16, 128)))),
        {},
        tile_type((4, 16, 1), FP32, Mem.Vec, TileView(blayout=COL)),
    ),
    # one matrix-vector product fills one row of one accumulator fractal
    (
        ("tile.gemv", (tile((1, 64), FP16, Mem.Left), tile((64, 32), FP16, Mem.Right))),
        {},
        tile_type((16, 32), FP32, Mem.Acc, acc_view((1, 32))),
    ),
    # ret0__store_1 = pl.tile.store(matmul_1, [1, 0, 0], ret0__store_0, [1, 32, 48])
    (
        (
            "tile.store",
            (
                tile((32, 48), FP32, Mem.Acc),
                tuple_of((1, 0, 0)),
                tensor((4, 32, 48)),
                tuple_of((1, 32, 48)),
            ),
        ),
        {},
        tensor_type((4, 32, 48), FP32),
    ),
]


@pytest.mark.parametrize(("call", "kwargs", "printed"), TENSOR_CASES + TILE_CASES)
def test_inferred_type_is_the_printed_one(call, kwargs, printed):
    assert make_call(*call, kwargs).type == printed


PRINTED_KWARGS = [
    ("tensor.matmul", {"out_dtype": FP32}, ["a_trans", "b_trans", "c_matrix_nz", "out_dtype"]),
    ("tensor.matmul", {}, ["a_trans", "b_trans", "c_matrix_nz"]),
    ("tile.cast", {"target_type": BF16}, ["target_type", "mode"]),
    ("tensor.cast", {"target_type": BF16}, ["target_type", "mode"]),
    ("tile.load", {"clamp": True, "target_memory": Mem.Vec}, ["target_memory", "clamp"]),
    ("tile.load", {}, []),
    ("tile.move", {"slayout": ROW, "blayout": ROW}, ["target_memory", "blayout", "slayout"]),
    ("tensor.row_max", {}, []),
    ("tensor.div", {}, []),
    ("tensor.div", {"high_precision": True}, ["high_precision"]),
    ("tensor.cmp", {}, ["cmp_type"]),
]
ARGS = {
    "tensor.matmul": (tensor((16, 16)), tensor((16, 16))),
    "tile.cast": (tile((16, 16)),),
    "tensor.cast": (tensor((16, 16)),),
    "tile.load": (tensor((16, 16)), *map(tuple_of, ((0, 0), (16, 16), (16, 16)))),
    "tile.move": (tile((16, 16)),),
    "tensor.row_max": (tensor((16, 16)),),
    "tensor.div": (tensor((16, 16)), tensor((16, 16))),
    "tensor.cmp": (tensor((16, 16)), tensor((16, 16))),
}


@pytest.mark.parametrize(("name", "given", "stored"), PRINTED_KWARGS)
def test_kwargs_are_stored_in_printed_order(name, given, stored):
    assert [key for key, _ in make_call(name, ARGS[name], given).kwargs] == stored


@pytest.mark.parametrize(
    ("name", "kwargs", "stored"),
    [
        ("tensor.create", {"dtype": FP32, "init_value": 0.0}, ["dtype", "layout", "init_value"]),
        (
            "tile.create",
            {"compact": True, "target_memory": Mem.Acc, "dtype": FP32},
            ["dtype", "target_memory", "compact"],
        ),
        ("tensor.create_l1", {"dtype": BF16}, ["dtype", "transpose"]),
    ],
)
def test_creation_kwargs_are_stored_in_printed_order(name, kwargs, stored):
    assert [key for key, _ in make_call(name, (tuple_of((32, 16)),), kwargs).kwargs] == stored
