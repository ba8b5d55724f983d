"""One operator on whole arrays, in tensor and in tile form."""

from __future__ import annotations

import numpy as np
from interp_programs import VEC, kernel, out, params, tensor

from pypto_egg.interp import run
from pypto_egg.interp.poison import numpy_dtype

SHAPE = (16, 32)


def values(dtype, shape=SHAPE, seed=0, low=-2.0, high=2.0):
    source = np.random.default_rng(seed)
    if dtype.is_float:
        return source.uniform(low, high, shape).astype(np.float32).astype(numpy_dtype(dtype))
    smallest = max(int(low), 0) if not dtype.is_signed else -100
    return source.integers(smallest, 100, shape).astype(numpy_dtype(dtype))


def run_tensor(name, arrays, dtypes, *scalars, **kwargs):
    names = [f"x{i}" for i in range(len(arrays))]
    types = {n: tensor(list(a.shape), d) for n, a, d in zip(names, arrays, dtypes, strict=True)}
    program = kernel(
        params(**types), lambda b, *xs: b.op(f"tensor.{name}", *xs, *scalars, **kwargs)
    )
    return run(program, dict(zip(names, arrays, strict=True))).returns[0]


def run_tile(name, arrays, dtypes, *scalars, result=None, scratch=(), **kwargs):
    """Load every array whole into Vec, apply tile.<name>, store the result."""
    names = [f"x{i}" for i in range(len(arrays))]
    types = {n: tensor(list(a.shape), d) for n, a, d in zip(names, arrays, dtypes, strict=True)}

    def build(b, *xs):
        target, sources = xs[-1], xs[:-1]
        tiles = [
            b.op("tile.load", x, [0] * x.type.rank, list(x.type.shape), target_memory=VEC)
            for x in sources
        ]
        spare = [b.op("tile.create", s, dtype=d, target_memory=VEC) for s, d in scratch]
        y = b.op(f"tile.{name}", *tiles, *scalars, *spare, **kwargs)
        return b.op("tile.store", y, [0] * target.type.rank, target)

    shape, dtype = result or (list(arrays[0].shape), dtypes[0])
    program = kernel(params(**types, o=out(tensor(list(shape), dtype))), build)
    return run(program, dict(zip(names, arrays, strict=True))).returns[0]


def rounded(expected, dtype):
    return np.asarray(expected, np.float32).astype(numpy_dtype(dtype))
