"""What a variable stands for while a function is loaded, and the keys under which expressions,
handles and names go into the e-graph."""

from __future__ import annotations

from dataclasses import dataclass, field

from pypto_egg.analysis.regions import Region
from pypto_egg.egraph.bulk import Term, node, vector
from pypto_egg.ir.dtype import DType
from pypto_egg.ir.enums import CachePolicy
from pypto_egg.ir.expr import Expr, Var, as_dim
from pypto_egg.ir.fold import fold
from pypto_egg.ir.stmt import Stmt
from pypto_egg.ir.types import TensorType

Dim = int | Expr


@dataclass(frozen=True, slots=True)
class Local:
    """A computed tensor: its term and what later statements need to know of it.

    Args:
        home: the outermost region in which it can be computed.
        window: the key of the window it is loaded from, for a tensor in global memory.
        defined: False if it may hold what a `tensor.create` left undefined.
        settled: False for a sum that is carried with all rows valid although its products have
            fewer (C-275, C-276).
    """

    term: Term
    type: TensorType
    home: Region
    window: str | None = None
    defined: bool = True
    settled: bool = True


@dataclass(frozen=True, slots=True)
class Window:
    """A window of global memory: a handle and where the window starts in it.

    Args:
        handle: the variable that names the memory.
        offsets: one for each axis of the handle.
        type: the window's own shape, valid shape and dtype.
        exact: False for a handle whose view the loader cannot turn into offsets; it can be
            stored to and passed on, but not loaded from.
        taken: the view that reads the memory, where later writes must not show in it; None if
            the consumer does.
        written: the view that the window is; None for a whole tensor.
    """

    handle: Var
    offsets: tuple[Dim, ...]
    type: TensorType
    exact: bool = True
    taken: Stmt | None = None
    written: Stmt | None = None


Value = Local | Window


@dataclass
class Keys:
    """Two-way tables between IR objects and the strings that stand for them in the e-graph."""

    expressions: dict[str, Expr] = field(default_factory=dict)
    handles: dict[str, Var] = field(default_factory=dict)
    names: list[str] = field(default_factory=list)
    created: dict[int, TensorType] = field(default_factory=dict)
    cache: dict[str, CachePolicy] = field(default_factory=dict)
    _expression_keys: dict[Expr, str] = field(default_factory=dict)
    _handle_keys: dict[Var, str] = field(default_factory=dict)

    def index(self, dim: Dim) -> Term:
        """A dimension or offset as an index term."""
        text = self.text(dim)
        return node("index.sym", text) if text in self.expressions else node("index", int(text))

    def indices(self, dims: tuple[Dim, ...]) -> Term:
        """Dimensions or offsets as a vector of index terms."""
        return vector([self.index(dim) for dim in dims])

    def text(self, dim: Dim) -> str:
        """A dimension or offset as text, equal for equal values."""
        value = as_dim(fold(dim)) if isinstance(dim, Expr) else dim
        return str(value) if isinstance(value, int) else self.expression(value)

    def scalar(self, expr: Expr) -> Term:
        """A scalar operand as a term."""
        return node("scalar", self.expression(expr))

    def expression(self, expr: Expr) -> str:
        """The key of a scalar expression; equal expressions have equal keys."""
        key = self._expression_keys.get(expr)
        if key is None:
            key = f"e{len(self._expression_keys)}"
            self._expression_keys[expr] = key
            self.expressions[key] = expr
        return key

    def handle(self, var: Var) -> str:
        """The key of a handle of global memory."""
        key = self._handle_keys.get(var)
        if key is None:
            key = f"g{len(self._handle_keys)}"
            self._handle_keys[var] = key
            self.handles[key] = var
        return key

    def name(self, hint: str) -> int:
        """A number for the source name of a tensor; earlier names are preferred."""
        self.names.append(hint)
        return len(self.names) - 1


def static_extents(type_: TensorType) -> tuple[Dim, Dim]:
    """Rows and columns: the last two axes; a rank-1 tensor has one row."""
    if type_.rank == 1:
        return 1, type_.shape[0]
    return type_.shape[-2], type_.shape[-1]


def vec_extents(type_: TensorType, line_elems: int) -> tuple[Dim, Dim]:
    """The least extents of a Vec tile whose lines are whole 32-byte blocks.

    Args:
        line_elems: elements of the dtype in 32 bytes.
    """
    rows, cols = static_extents(type_)
    if cols == 1 and type_.rank > 1:
        return (_round_up(rows, line_elems), cols)
    return (rows, _round_up(cols, line_elems))


def _round_up(extent: Dim, granularity: int) -> Dim:
    if not isinstance(extent, int):
        return extent
    return -(-extent // granularity) * granularity


def deepest(*regions: Region) -> Region:
    """The innermost of regions that lie on one path of the region tree."""
    return max(regions, key=lambda region: region.depth)


def element_line(dtype: DType) -> int:
    """Elements in a 32-byte line."""
    return 256 // dtype.bits
