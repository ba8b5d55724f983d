"""The names and argument orders of PyPTO's DSL where they differ from the IR's.

Sources: PyPTO language reference, 8.1, 12 and 13 (DSL wrappers of operators).
"""

from __future__ import annotations

NAMESPACES = ("tensor", "tile", "system", "array", "prefetch", "pld")
# Namespaces of opaque operators: their undeclared keywords are kept as they are.
OPEN_NAMESPACES = ("system", "prefetch", "pld")

# Binary names whose right operand may be a scalar, with the operator that then is meant.
SCALAR_FORMS = {
    "add": "adds",
    "sub": "subs",
    "mul": "muls",
    "div": "divs",
    "fmod": "fmods",
    "and": "ands",
    "or": "ors",
    "xor": "xors",
    "shl": "shls",
    "shr": "shrs",
}
# ... and those that only tiles spell in two ways.
TILE_SCALAR_FORMS = {
    "maximum": "maximums",
    "minimum": "minimums",
    "cmp": "cmps",
    "rem": "rems",
    "addc": "addsc",
    "subc": "subsc",
}
SCALAR_OPERATORS = {"add": "+", "sub": "-", "mul": "*", "div": "/"}

# `pl.X` without a namespace that always means one operator.
FIXED = {
    "create_tensor": "tensor.create",
    "full": "tensor.full",
    "dim": "tensor.dim",
    "gather": "tensor.gather",
    "scatter": "tensor.scatter",
    "random": "tensor.random",
    "paged_gather": "tensor.paged_gather",
    "create_l1": "tensor.create_l1",
    "gather_row": "tensor.gather_row",
    "expand_clone": "tensor.expand_clone",
    "arange": "tensor.ci",
    "ci": "tensor.ci",
    "get_block_idx": "tensor.get_block_idx",
    "get_block_num": "tensor.get_block_num",
    "get_subblock_idx": "tensor.get_subblock_idx",
    "no_dep": "tensor.no_dep",
    "dump_tag": "tensor.dump_tag",
    "load": "tile.load",
    "store": "tile.store",
    "move": "tile.move",
    "create_tile": "tile.create",
    "tri": "tile.tri",
    "mgather": "tile.mgather",
    "mscatter": "tile.mscatter",
}
# Other spellings of an operator inside its namespace.
RENAMED = {
    "tensor.create_tensor": "tensor.create",
    "tile.create_tile": "tile.create",
    "tensor.arange": "tensor.ci",
    "tile.arange": "tile.ci",
}

# Operators whose positional arguments are not "operands, then kwargs" in the DSL.
POSITIONAL = {
    "tensor.full": ("shape", "dtype", "value"),
    "tile.full": ("shape", "dtype", "value"),
    "tensor.matmul": ("lhs", "rhs", "out_dtype", "a_trans", "b_trans", "c_matrix_nz"),
    "tensor.matmul_acc": ("acc", "lhs", "rhs", "a_trans", "b_trans", "init_cond"),
    "tensor.gather": ("input", "dim", "index"),
    "tensor.scatter": ("input", "dim", "index", "src"),
    "tensor.scatter_update": ("input", "dim", "index", "src"),
    "tile.scatter_update": ("input", "dim", "index", "src"),
    "tensor.gather_row": ("acc", "src", "dst_offset", "src_offset", "shapes", "transpose"),
    "tile.gather_row": ("dst", "src", "dst_offset", "src_offset", "shapes", "transpose"),
    "tensor.reinterpret_view": ("data", "dtype", "shape"),
    "tile.reinterpret_view": ("data", "dtype", "shape"),
}
# Operators of POSITIONAL whose IR order is accepted too: where the argument at this position is a
# tensor, a tile or a runtime condition, PyPTO's printer wrote it (language reference, 13).
IR_ORDER_AT = {
    "tensor.gather": 1,
    "tensor.scatter": 1,
    "tensor.scatter_update": 1,
    "tile.scatter_update": 1,
    "tensor.matmul_acc": 3,
}

# Keyword names that the DSL and its documents use for the same operand.
KEYWORD_GROUPS = (
    ("valid_shape", "valid_shapes"),
    ("offset", "offsets"),
    ("shape", "shapes"),
    ("index", "indices", "idx", "indexes"),
    ("dst", "input", "target", "acc"),
    ("src", "source"),
    ("value", "rhs", "scalar"),
    ("input", "tensor", "tile", "x", "src", "data", "lhs", "target"),
    ("target", "out", "output_tensor", "tensor", "dst"),
    ("tmp", "tmp_tile", "scratch"),
)

# Operators whose integer literals take the dtype of operand 0, and from which operand on.
RETYPED_FROM = {
    **dict.fromkeys(
        (
            *SCALAR_FORMS.values(),
            *TILE_SCALAR_FORMS.values(),
            "maximum",
            "minimum",
            "cmp",
            "lrelu",
            "expands",
            "gather_compare",
        ),
        1,
    ),
    "write": 2,
    "update_element": 2,
}
# Operators whose literal operands take the dtype that the `dtype` keyword names.
TYPED_BY_KWARG = {"full": "value", "ci": "start"}
INT32_SCALARS = ("random", "tri")

# Keyword operands print after these kwargs; in all other operators operands print first.
OPERAND_BEFORE_KWARGS = ("gather_row", "mgather")
# Operands that print as keywords so that PyPTO reads them back (language reference, 8.1 and 13).
PRINTED_KEYWORDS = {
    "tensor.full": {"value": "value"},
    "tile.full": {"value": "value"},
    "tensor.gather": {"index": "index"},
    "tensor.scatter": {"index": "index", "src": "src"},
    "tensor.matmul_acc": {"init_cond": "init_cond"},
}

CMP_CODES = {"eq": 0, "ne": 1, "lt": 2, "le": 3, "gt": 4, "ge": 5}
CAST_MODES = ("none", "rint", "round", "floor", "ceil", "trunc", "odd")
