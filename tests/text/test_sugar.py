"""The DSL's short spellings become PyPTO's canonical form (PyPTO language reference, 12)."""

from collections.abc import Callable

import pytest

Canonical = Callable[..., str]

T = "pl.Tensor[[16, 64], pl.FP32]"
S = "pl.Scalar[pl.INDEX]"

SUBSCRIPTS = {
    "a = x[0:8, :]": "a: pl.Tensor[[8, 64], pl.FP32] = pl.tensor.slice(x, [8, 64], [0, 0])",
    "a = x[n:n + 4, 2 * 3:]": (
        "a: pl.Tensor[[4, 58], pl.FP32] = pl.tensor.slice(x, [4, 58], [n, 6])"
    ),
    "a = x[n, 3]": "a: pl.Scalar[pl.FP32] = pl.tensor.read(x, [n, 3])",
    "a = x[n, 0:32]": (
        "a: pl.Tensor[[32], pl.FP32] = pl.tensor.slice(x, [1, 32], [n, 0], [], [0])"
    ),
    "a = x[1]": "a: pl.Tensor[[64], pl.FP32] = pl.tensor.slice(x, [1, 64], [1, 0], [], [0])",
    "x[8:16, 0:8] = src[0:8, :]": (
        f"x: {T} = pl.tensor.assemble(x, pl.tensor.slice(src, [8, 8], [0, 0]), [8, 0])"
    ),
    "x[3, 0:8] = src[n]": (
        f"x: {T} = pl.tensor.assemble(x, pl.tensor.reshape("
        "pl.tensor.slice(src, [1, 8], [n, 0], [], [0]), [1, 8]), [3, 0])"
    ),
    "r = pl.array.create(4, dtype=pl.INT32)\nr[n] = 3\na = r[1]": (
        "r: pl.Array[4, pl.INT32] = pl.array.create(4, dtype=pl.INT32)\n"
        "r: pl.Array[4, pl.INT32] = pl.array.update_element(r, n, pl.const(3, pl.INT32))\n"
        "a: pl.Scalar[pl.INT32] = pl.array.get_element(r, 1)"
    ),
    "p = [n, 2]\na = p[1]": f"p: pl.Tuple[{S}, {S}] = [n, 2]\na: {S} = p[1]",
}

DISPATCH = {
    "a = pl.add(x, x)": f"a: {T} = pl.tensor.add(x, x)",
    "a = pl.add(x, 2.0)": f"a: {T} = pl.tensor.adds(x, 2.0)",
    "a = pl.tensor.add(lhs=x, rhs=x)": f"a: {T} = pl.tensor.add(x, x)",
    "a = pl.maximum(x, 0.0)": f"a: {T} = pl.tensor.maximum(x, 0.0)",
    "a = pl.and_(z, z)": "a: pl.Tensor[[16, 64], pl.INT32] = pl.tensor.and_(z, z)",
    "a = pl.cast(x, pl.BF16)": (
        "a: pl.Tensor[[16, 64], pl.BF16] = pl.tensor.cast(x, target_type=pl.BF16, mode='round')"
    ),
    "a = pl.cast(x, pl.BF16, mode=4)": (
        "a: pl.Tensor[[16, 64], pl.BF16] = pl.tensor.cast(x, target_type=pl.BF16, mode='ceil')"
    ),
    "a = pl.cast(b, target_type=pl.INDEX, mode='round')": f"a: {S} = pl.cast(b, pl.INDEX)",
    "a = pl.cast(target_type=pl.INDEX, input=b)": f"a: {S} = pl.cast(b, pl.INDEX)",
    "a = pl.add(n, 2)": f"a: {S} = n + 2",
    "a = pl.div(n, n)": f"a: {S} = n / n",
    "pl.write(x, [0, n], 1.0)": "pl.tensor.write(x, [0, n], 1.0)",
    "tensor.write(x, (0, n), 1.0)": "pl.tensor.write(x, [0, n], 1.0)",
    "a = tensor.create([4], dtype=pl.FP32)": (
        "a: pl.Tensor[[4], pl.FP32] = "
        "pl.tensor.create([4], dtype=pl.FP32, layout=pl.TensorLayout.ND)"
    ),
    "a = pl.create_tensor((4,), pl.FP32)": (
        "a: pl.Tensor[[4], pl.FP32] = "
        "pl.tensor.create([4], dtype=pl.FP32, layout=pl.TensorLayout.ND)"
    ),
    "a = pl.full([2, 3], pl.FP16, 0.5)": (
        "a: pl.Tensor[[2, 3], pl.FP16] = pl.tensor.full([2, 3], dtype=pl.FP16, value=0.5)"
    ),
    "a = pl.full([2, 3], dtype=pl.INT32, value=7)": (
        "a: pl.Tensor[[2, 3], pl.INT32] = pl.tensor.full([2, 3], dtype=pl.INT32, value=7)"
    ),
    "a = pl.arange(0, [1, 64], dtype=pl.INT32)": (
        "a: pl.Tensor[[1, 64], pl.INT32] = "
        "pl.tensor.ci(pl.const(0, pl.INT32), [1, 64], dtype=pl.INT32, descending=False)"
    ),
    "a = pl.fillpad(x, pl.PadValue.min)": (
        f"a: {T} = pl.tensor.fillpad(x, pad_value=pl.PadValue.min)"
    ),
    "a = pl.reinterpret_view(x, pl.INT32, [32, 32])": (
        "a: pl.Tensor[[32, 32], pl.INT32] = "
        "pl.tensor.reinterpret_view(x, dtype=pl.INT32, shape=[32, 32])"
    ),
    "a = pl.slice(x, [8, 64], [0, 0], valid_shape=[n, 64])": (
        "a: pl.Tensor[[8, 64], pl.FP32, pl.TensorView(valid_shape=[n, 64], stride=[], "
        "layout=pl.TensorLayout.ND)] = pl.tensor.slice(x, [8, 64], [0, 0], [n, 64])"
    ),
}

GATHER = "a: pl.Tensor[[16, 8], pl.FP32] = pl.tensor.gather(x, dim=-1, index=idx)"
SCATTER = f"a: {T} = pl.tensor.scatter(x, dim=-1, index=idx, src=src)"
ARGUMENT_ORDERS = {
    "a = pl.gather(x, -1, idx)": GATHER,
    "a = pl.gather(x, dim=-1, index=idx)": GATHER,
    "a = pl.tensor.gather(x, idx, dim=-1)": GATHER,
    "a = pl.scatter(x, -1, idx, src)": SCATTER,
    "a = pl.tensor.scatter(x, idx, src, dim=-1)": SCATTER,
    "a = pl.gather(x, mask_pattern=1)": (
        "a: pl.Tensor[[16, 32], pl.FP32] = pl.tensor.gather_mask(x, mask_pattern=1)"
    ),
    "a = pl.scatter(x[:, 0:32], mask_pattern=1, dst=x)": (
        f"a: {T} = pl.tensor.scatter_mask(pl.tensor.slice(x, [16, 32], [0, 0]), x, mask_pattern=1)"
    ),
    "a = pl.matmul(h, h, pl.FP32, b_trans=True)\nd = pl.matmul_acc(a, h, h, b_trans=True)": (
        "a: pl.Tensor[[16, 16], pl.FP32] = pl.tensor.matmul(h, h, a_trans=False, b_trans=True, "
        "c_matrix_nz=False, out_dtype=pl.FP32)\n"
        "d: pl.Tensor[[16, 16], pl.FP32] = "
        "pl.tensor.matmul_acc(a, h, h, a_trans=False, b_trans=True)"
    ),
    "a = pl.matmul(h, h, pl.FP32, False, True)\n"
    "d = pl.tensor.matmul_acc(a, h, h, c, b_trans=True)": (
        "a: pl.Tensor[[16, 16], pl.FP32] = pl.tensor.matmul(h, h, a_trans=False, b_trans=True, "
        "c_matrix_nz=False, out_dtype=pl.FP32)\n"
        "d: pl.Tensor[[16, 16], pl.FP32] = "
        "pl.tensor.matmul_acc(a, h, h, a_trans=False, b_trans=True, init_cond=c)"
    ),
}

LOADED = "pl.tile.load(x, [0, 0], [16, 64], [16, 64], target_memory=pl.Mem.Vec)"
VEC = "pl.Tile[[16, 64], pl.FP32, pl.Mem.Vec]"
TILES = {
    "a = pl.load(x, [0, 0], [16, 64])": f"a: {VEC} = {LOADED}",
    "a = pl.tile.load(x, (0, 0), (16, 64))": f"a: {VEC} = {LOADED}",
    "a = pl.load(x, [0, 0], [16, 64], target_memory=pl.Mem.Mat, cache=pl.CachePolicy.BYPASS)": (
        "a: pl.Tile[[16, 64], pl.FP32, pl.Mem.Mat] = pl.tile.load(x, [0, 0], [16, 64], [16, 64], "
        "target_memory=pl.Mem.Mat, cache=pl.CachePolicy.BYPASS)"
    ),
    "a = pl.load(x, [0, 0], [16, 64])\nd = pl.maximum(a, 0.0)\npl.store(d, [0, 0], x)": (
        f"a: {VEC} = {LOADED}\nd: {VEC} = pl.tile.maximums(a, 0.0)\npl.tile.store(d, [0, 0], x)"
    ),
    "a = pl.load(x, [0, 0], [16, 64])\nd = a[0:8, :]\ne = a[1, n]": (
        f"a: {VEC} = {LOADED}\n"
        "d: pl.Tile[[8, 64], pl.FP32, pl.Mem.Vec] = pl.tile.slice(a, [8, 64], [0, 0])\n"
        "e: pl.Scalar[pl.FP32] = pl.tile.read(a, [1, n])"
    ),
    "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    a = pl.aiv_shard(x)": (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n"
        "    a: pl.Tensor[[8, 64], pl.FP32] = pl.tensor.aiv_shard(x)"
    ),
}

LITERALS = {
    "a = pl.add(h, 2)": (
        "a: pl.Tensor[[16, 64], pl.FP16] = pl.tensor.adds(h, pl.const(2.0, pl.FP16))"
    ),
    "a = pl.add(h, 0.5)": f"a: {T} = pl.tensor.adds(h, 0.5)",
    "a = pl.mul(z, 3)": (
        "a: pl.Tensor[[16, 64], pl.INT32] = pl.tensor.muls(z, pl.const(3, pl.INT32))"
    ),
    "a = pl.mul(h, pl.const(0.5, pl.FP16))": (
        "a: pl.Tensor[[16, 64], pl.FP16] = pl.tensor.muls(h, pl.const(0.5, pl.FP16))"
    ),
    "a = pl.mul(h, f)": "a: pl.Tensor[[16, 64], pl.FP16] = pl.tensor.muls(h, f)",
    "pl.write(z, [0, 0], 1)": "pl.tensor.write(z, [0, 0], pl.const(1, pl.INT32))",
    "a: pl.Scalar[pl.INT32] = 3": "a: pl.Scalar[pl.INT32] = pl.const(3, pl.INT32)",
    "a: pl.Scalar[pl.FP16] = 0.5": "a: pl.Scalar[pl.FP16] = pl.const(0.5, pl.FP16)",
}

SCALARS = {
    "a = (n * 4 + n) * 2": f"a: {S} = (n * 4 + n) * 2",
    "a = ((n) * 4) + 2": f"a: {S} = n * 4 + 2",
    "a = n - (n - 1)": f"a: {S} = n - (n - 1)",
    "a = n - (3 - 2 * 2)": f"a: {S} = n - -1",
    "a = 2 * 3": f"a: {S} = 6",
    "a = pl.const(2, pl.INDEX) + pl.const(3, pl.INDEX)": (
        f"a: {S} = pl.const(2, pl.INDEX) + pl.const(3, pl.INDEX)"
    ),
    "a = u + b": "a: pl.Scalar[pl.INT32] = pl.cast(u, pl.INT32) + b",
    "a = b * 2": f"a: {S} = pl.cast(b, pl.INDEX) * 2",
    "a = f * 2.0": "a: pl.Scalar[pl.FP32] = pl.cast(f, pl.FP32) * 2.0",
    "a = n % 2 == 0 and not n == 3 or c": (
        "a: pl.Scalar[pl.BOOL] = n % 2 == 0 and not n == 3 or c"
    ),
    "a = not (c and c)": "a: pl.Scalar[pl.BOOL] = not (c and c)",
    "a = -(n + 1) // ~n": f"a: {S} = -(n + 1) // ~n",
    "a = n << 1 >> n": f"a: {S} = n << 1 >> n",
    "a = pl.min(n, 3) + pl.max(n, 1)": f"a: {S} = pl.min(n, 3) + pl.max(n, 1)",
    "a = 0.1": "a: pl.Scalar[pl.FP32] = 0.10000000000000001",
    "a = 1e-6": "a: pl.Scalar[pl.FP32] = 9.9999999999999995e-07",
    "a = pl.const(1, pl.BOOL)": "a: pl.Scalar[pl.BOOL] = pl.const(1, pl.BOOL)",
    "a = True": "a: pl.Scalar[pl.BOOL] = True",
    "a: pl.TaskId = None": "a: pl.Scalar[pl.TASK_ID] = None",
}

CASES = {
    **SUBSCRIPTS, **DISPATCH, **ARGUMENT_ORDERS, **TILES, **LITERALS, **SCALARS,
}  # fmt: skip


@pytest.mark.parametrize("source", CASES, ids=lambda source: source.split("\n")[0])
def test_canonical_form(canonical: Canonical, source: str) -> None:
    assert canonical(source) == CASES[source]


def test_valid_shape_of_gather_row_is_an_operand(canonical: Canonical) -> None:
    """C-244, C-245: keyword-only in the text, the sixth positional is `transpose`."""
    body = (
        "acc = pl.create_l1([16, 64], pl.FP32)\n"
        "a = pl.gather_row(acc, x, [0, 0], [n, 0], [16, 64], valid_shape=[n, 64])\n"
        "d = pl.gather_row(acc, x, [0, 0], [n, 0], [16, 64], True)"
    )
    lines = canonical(body).split("\n")
    assert lines[1].endswith("[16, 64], valid_shape=[n, 64], transpose=False)")
    assert lines[2].endswith("[16, 64], transpose=True)")
