"""NZ tensors: blocked views, proofs of offsets, write-back of accumulators, host packing."""

from pypto_egg.nz.pack import pack as pack
from pypto_egg.nz.pack import unpack as unpack
