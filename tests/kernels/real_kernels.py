"""What each kernel of bench/kernels computes, written once more in plain float64 numpy.

Nothing here uses pypto_egg's interpreter: inputs are numpy arrays, `reference` takes them as
float64 (integers as int64) and rounds nothing in between.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np

import pypto_egg.bench

FOLDER = Path(pypto_egg.bench.__path__[0]) / "kernels"

# Largest error, relative to the value plus the root mean square of all values. fp32 sums of up to
# 16384 products; values that were rounded to bf16 (8 bits of mantissa) once or twice; integers.
FP32, BF16, EXACT = 2.0**-18, 2.0**-7, 0.0

Arrays = dict[str, np.ndarray]
Random = np.random.Generator


@dataclass(frozen=True)
class Kernel:
    """A kernel, how to feed it and what must come out.

    Args:
        products: the logical (M, N, K) of every cube product in the text, sorted.
    """

    name: str
    inputs: Callable[[Random], Arrays]
    reference: Callable[[Arrays], tuple[np.ndarray, ...]]
    tolerance: float
    products: tuple[tuple[int, int, int], ...]

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.py"

    def random_inputs(self) -> Arrays:
        return self.inputs(np.random.default_rng(20240817))

    def expected(self, inputs: Arrays) -> tuple[np.ndarray, ...]:
        wide = {
            name: array.astype(np.int64 if array.dtype.kind == "i" else np.float64)
            for name, array in inputs.items()
        }
        return self.reference(wide)


def fp32(random: Random, *shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float32)


def fp16(random: Random, *shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(np.float16)


def bf16(random: Random, *shape: int) -> np.ndarray:
    return random.standard_normal(shape).astype(ml_dtypes.bfloat16)


def weight(random: Random, *shape: int) -> np.ndarray:
    """Weights scaled by their depth, as models initialise them: products stay near 1."""
    return (random.standard_normal(shape) / np.sqrt(shape[0])).astype(ml_dtypes.bfloat16)


def int8(random: Random, *shape: int) -> np.ndarray:
    return random.integers(-128, 128, size=shape).astype(np.int8)


def scale(random: Random, *shape: int) -> np.ndarray:
    return random.uniform(0.001, 0.01, size=shape).astype(np.float32)


def silu(x: np.ndarray) -> np.ndarray:
    return x / (1 + np.exp(-x))


def attention(i: Arrays, keys: int) -> tuple[np.ndarray, ...]:
    """Softmax attention of heads that have 5 query rows and `keys` rows of K and V each."""
    heads = []
    for head in range(len(i["q"]) // 5):
        q = i["q"][5 * head : 5 * head + 5]
        k, v = (i[name][keys * head : keys * head + keys] for name in "kv")
        scores = q @ k.T / np.sqrt(128)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        heads.append(weights / weights.sum(axis=1, keepdims=True) @ v)
    return (np.concatenate(heads),)


def rmsnorm(i: Arrays) -> tuple[np.ndarray, ...]:
    rms = np.sqrt(np.mean(i["x"] ** 2, axis=1, keepdims=True) + 1e-6)
    return (i["x"] / rms * i["gamma"] @ i["w"],)


def layer_norm(i: Arrays) -> tuple[np.ndarray, ...]:
    x = i["x"]
    unit = (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)
    y = unit * i["gamma"] + i["beta"]
    blocks = y.reshape(4, 32, 36)
    return y, blocks.sum(axis=1), blocks.max(axis=1)


def experts(i: Arrays) -> tuple[np.ndarray, ...]:
    return (np.einsum("erk,ekn->ern", i["x"].reshape(4, 8, 1024), i["w"]).reshape(32, 512),)


KERNELS: dict[str, Kernel] = {
    kernel.name: kernel
    for kernel in (
        Kernel(
            "qwen3_decode_proj",
            lambda r: {"x": bf16(r, 5, 5120), "w": weight(r, 5120, 1024)},
            lambda i: (i["x"] @ i["w"],),
            FP32,
            ((5, 256, 256),),
        ),
        Kernel(
            "swiglu_gate_up",
            lambda r: {
                "x": bf16(r, 16, 5120),
                "w_gate": weight(r, 5120, 512),
                "w_up": weight(r, 5120, 512),
            },
            lambda i: (silu(i["x"] @ i["w_gate"]) * (i["x"] @ i["w_up"]),),
            BF16,
            ((16, 256, 128), (16, 256, 128)),
        ),
        Kernel(
            "int8_proj_scales",
            lambda r: {
                "x": int8(r, 8, 1024),
                "w": int8(r, 1024, 1024),
                "x_scale": scale(r, 8, 1),
                "w_scale": scale(r, 1, 1024),
            },
            lambda i: (i["x"] @ i["w"] * i["x_scale"] * i["w_scale"],),
            BF16,
            ((8, 512, 128),),
        ),
        Kernel(
            "attention_block",
            lambda r: {"q": bf16(r, 40, 128), "k": bf16(r, 1024, 128), "v": bf16(r, 1024, 128)},
            lambda i: attention(i, 128),
            BF16,
            ((5, 128, 128), (5, 128, 128)),
        ),
        Kernel(
            "flash_attention",
            lambda r: {"q": bf16(r, 10, 128), "k": bf16(r, 1024, 128), "v": bf16(r, 1024, 128)},
            lambda i: attention(i, 512),
            BF16,
            ((5, 128, 128), (5, 128, 128)),
        ),
        Kernel(
            "rmsnorm_matmul",
            lambda r: {
                "x": 3 * fp32(r, 5, 5120),
                "gamma": 1 + fp32(r, 1, 5120) / 4,
                "w": weight(r, 5120, 1024),
            },
            rmsnorm,
            BF16,
            ((5, 256, 256),),
        ),
        Kernel(
            "both_transposed",
            lambda r: {"q_t": bf16(r, 128, 100), "k": bf16(r, 36, 128)},
            lambda i: (i["q_t"].T @ i["k"].T,),
            FP32,
            ((100, 36, 128),),
        ),
        Kernel(
            "chained_product",
            lambda r: {"a": bf16(r, 256, 128), "b": weight(r, 128, 256), "c": weight(r, 256, 64)},
            lambda i: (i["a"] @ i["b"] @ i["c"],),
            BF16,
            ((64, 64, 256), (64, 256, 128)),
        ),
        Kernel(
            "batch_matmul",
            lambda r: {"a": fp32(r, 2, 16, 80), "b": fp32(r, 2, 48, 80)},
            lambda i: (np.einsum("bmk,bnk->bmn", i["a"], i["b"]),),
            FP32,
            ((16, 48, 80),),
        ),
        Kernel(
            "elementwise_reduction",
            lambda r: {
                "x": 2 + 3 * fp32(r, 128, 36),
                "gamma": fp32(r, 1, 36),
                "beta": fp32(r, 1, 36),
            },
            layer_norm,
            FP32,
            (),
        ),
        Kernel(
            "grouped_product",
            lambda r: {"x": int8(r, 32, 1024), "w": int8(r, 4, 1024, 512)},
            experts,
            EXACT,
            ((8, 256, 256),),
        ),
        Kernel(
            "grouped_output_proj",
            lambda r: {"x": bf16(r, 4, 8, 1024), "w": bf16(r, 4, 256, 1024)},
            lambda i: (np.einsum("gmk,gnk->gmn", i["x"], i["w"]),),
            FP32,
            ((8, 128, 256),),
        ),
        Kernel(
            "bias_matmul",
            lambda r: {"x": fp32(r, 64, 64), "w": fp32(r, 64, 64), "bias": fp32(r, 1, 64)},
            lambda i: (np.maximum(i["x"] @ i["w"] + i["bias"], 0),),
            FP32,
            ((64, 64, 64),),
        ),
        Kernel(
            "boxed_100x256x512",
            lambda r: {"a": fp16(r, 100, 512), "b": fp16(r, 512, 256)},
            lambda i: (i["a"] @ i["b"],),
            FP32,
            ((100, 256, 512),),
        ),
        Kernel(
            "hyper_connection_mix",
            lambda r: {"x": fp32(r, 8, 16384), "w": fp32(r, 24, 16384)},
            lambda i: (i["x"] @ i["w"].T,),
            FP32,
            ((8, 24, 256),),
        ),
    )
}


def largest_error(actual: np.ndarray, expected: np.ndarray) -> float:
    """The largest error relative to the value plus the root mean square; NaN where one is NaN."""
    error = np.abs(actual.astype(np.float64) - expected)
    floor = np.sqrt(np.mean(np.square(expected, dtype=np.float64)))
    return float(np.max(error / (np.abs(expected) + floor)))
