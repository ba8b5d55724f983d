"""NZ tensors: blocked views, proofs of offsets, write-back of accumulators, host packing."""

from pypto_egg.nz.acc_store import check_actual_stores as check_actual_stores
from pypto_egg.nz.block import block_nz as block_nz
from pypto_egg.nz.block import check_nz_views_blocked as check_nz_views_blocked
from pypto_egg.nz.entry import entry_reshapes as entry_reshapes
from pypto_egg.nz.pack import pack as pack
from pypto_egg.nz.pack import unpack as unpack
