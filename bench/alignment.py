"""`bench alignment`: what every alignment of M and N costs, for every size and cost model.

Each choice is a kernel of its own: of the product's e-graph the cube calls of other physical
extents are ruled out, everything else is extracted anew, and what comes out is emitted, checked
for room and for values overwritten too early, and counted. The tiles of L0 are left to PyPTO, so
that alignment alone makes the difference: a product is priced in its box by the model. A product
that is too large for on-chip memory is a loop over blocks; its choices are those of one block, in
the blocking that extraction took, which the columns block_m, block_n and block_k state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product as pairs_of
from typing import Any

from pypto_egg import optimize
from pypto_egg.account import Account
from pypto_egg.bench.figures import SAME, Table, geometric_mean
from pypto_egg.bench.programs import product
from pypto_egg.bench.schema import ALIGNMENT, SPACES, Row
from pypto_egg.bench.traffic import traffic
from pypto_egg.bench.workloads import Workload
from pypto_egg.egraph.machine import l0_block
from pypto_egg.errors import InternalError, OptionError, PyptoEggError
from pypto_egg.ir.enums import Mem
from pypto_egg.lowering import Lowering
from pypto_egg.report.forced import NOT_PRICED, Extractions, Outcome
from pypto_egg.report.products import Product, chosen_node, granularity, operand_classes, products
from pypto_egg.report.words import tile_of
from pypto_egg.rulesets.asked_boxes import asked_boxes
from pypto_egg.target import Target, load_target
from pypto_egg.trial import try_selection

PYPTO, POW2, FULL, OPTIMIZED = "pypto", "pow2", "full", "optimized"
USUAL = ("16", "32", "64", "128", POW2, FULL)
LAYOUTS = ("nd", "nz")
Extents = tuple[int, int]


def choices(text: str | None) -> list[str]:
    """The alignments of one axis that a user names, "16,32,pow2,full".

    Raises:
        OptionError: one is no number of elements and no such word.
    """
    found = list(USUAL) if text is None else [part.strip() for part in text.split(",")]
    for one in found:
        if one not in (POW2, FULL) and not (one.isdecimal() and 0 < int(one) <= 2**16):
            raise OptionError(
                f"no alignment '{one}'",
                hint="a number of elements, pow2 (next power of two) or full (a whole L0 block)",
            )
    return list(dict.fromkeys(found))


def tasks(arguments: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One task for each size, layout, target and cost model, in that order."""
    shared = {name: arguments[name] for name in ("m", "n")}
    return [
        {"workload": workload, "layout": layout, "target": target, "model": model, **shared,
         "overrides": arguments["overrides"]}
        for workload in arguments["workloads"]
        for layout in arguments["layouts"] or [_own_layout(workload)]
        for target in arguments["targets"]
        for model in arguments["models"]
    ]  # fmt: skip


def _own_layout(workload: Mapping[str, Any]) -> str:
    return "nz" if workload["layout_b"] == "NZ" else "nd"


def rows(task: Mapping[str, Any]) -> list[Row]:
    """A row for each pair of alignments, PyPTO's own and the one that extraction took included."""
    target = load_target(task["target"]).with_(**task["overrides"])
    workload = Workload(**task["workload"])
    same = _same(task, workload, target)
    if not workload.is_product:
        why = f"{workload.op} is not one product of the cube: it has no M and N to align"
        return [_row(same, PYPTO, PYPTO, legal=False, reason=why)]
    source = product(workload, nz=task["layout"] == "nz")
    try:
        # Alignment is decided before L0 tiles are, which PyPTO cuts by its own law.
        lowering = optimize(
            source, target=target, cost_model=task["model"], verify=False, l0="leave"
        )
        kernels = _Kernels(lowering, task["model"], target)
    except PyptoEggError as error:
        why = f"{error.code}: {error.message}"
        wanted = [(PYPTO, PYPTO), *pairs_of(task["m"], task["n"])]
        return [_row(same, m, n, legal=False, reason=why) for m, n in wanted]
    asked = [(PYPTO, PYPTO), (OPTIMIZED, OPTIMIZED), *pairs_of(task["m"], task["n"])]
    return _with_ratios(same, asked, kernels)


def _with_ratios(
    same: Mapping[str, Any], asked: Sequence[tuple[str, str]], kernels: _Kernels
) -> list[Row]:
    choices = [kernels.choice(*labels) for labels in asked]
    found = kernels.made(choices)
    cycles = [one.figures["cycles"] for one in found.values() if one.legal]
    best, pypto = min(cycles, default=0.0), found[kernels.pypto].figures.get("cycles")
    made: list[Row] = []
    for (m, n), wanted in zip(asked, choices, strict=True):
        one = found[wanted]
        physical = kernels.shown(wanted)
        figures: Row = {"physical_m": physical[0], "physical_n": physical[1], **one.figures}
        if one.legal:
            figures["ratio_best"] = one.figures["cycles"] / best if best else None
            figures["ratio_pypto"] = one.figures["cycles"] / pypto if pypto else None
        figures["pypto"] = wanted == kernels.pypto
        figures["chosen"] = wanted == kernels.chosen
        made.append(_row(same, m, n, legal=one.legal, reason=one.reason, **figures))
    return made


def _same(task: Mapping[str, Any], w: Workload, target: Target) -> dict[str, Any]:
    return {
        "workload": w.name, "op": w.op, "m": w.m, "n": w.n, "k": w.k, "batch": w.batch,
        "dtype_a": w.dtype_a, "dtype_b": w.dtype_b, "dtype_out": w.dtype_out,
        "a_trans": w.a_trans, "b_trans": w.b_trans, "layout": task["layout"],
        "target": target.name, "constants": target.fingerprint(), "model": task["model"],
    }  # fmt: skip


def _row(same: Mapping[str, Any], m: str, n: str, **values: Any) -> Row:
    row: Row = {**dict.fromkeys(ALIGNMENT.names), **same, "m_align": m, "n_align": n}
    row |= {"pypto": (m, n) == (PYPTO, PYPTO), "chosen": False, **values}
    return row


@dataclass(frozen=True)
class Kernel:
    """A kernel with given physical extents, in figures by column; or the reason why none is."""

    legal: bool
    reason: str
    figures: dict[str, Any]


@dataclass(frozen=True)
class _Boxes:
    """One product of the kernel: its extents (M, N), and of what they are multiples.

    Args:
        depth: logical and physical extent that is summed over.
        chosen: the physical extents that extraction took.
    """

    logical: Extents
    steps: Extents
    depth: Extents
    chosen: Extents

    def aligned(self, choice: tuple[str, str], target: Target) -> Extents:
        """The physical extents of a pair of choices."""
        m, n = (self._aligned(axis, choice[axis], target) for axis in (0, 1))
        return m, n

    def _aligned(self, axis: int, choice: str, target: Target) -> int:
        logical, step = self.logical[axis], self.steps[axis]
        if choice == OPTIMIZED:
            return self.chosen[axis]
        if choice == PYPTO:
            return _round_up(logical, step)
        if choice == POW2:
            return max(1 << (logical - 1).bit_length(), step)
        return _round_up(logical, l0_block(target)[axis] if choice == FULL else int(choice))

    def illegal(self, extents: Extents, target: Target) -> str:
        """Why no kernel can have these extents; empty if nothing speaks against them yet."""
        for axis, (letter, unit) in enumerate((("M", "rows"), ("N", "columns"))):
            step = self.steps[axis]
            if extents[axis] % step:
                return f"{letter}: {extents[axis]} {unit} are not whole fractals of {step} {unit}"
        needed, room = extents[0] * extents[1] * 4, target.capacity_bytes(Mem.Acc)
        if needed > room:
            return f"the accumulator of {extents[0]} x {extents[1]} needs {needed} bytes of {room}"
        return ""


Choice = tuple[Extents, ...]
"""Physical extents of every product of a kernel; blocks at an edge are products of their own."""


class _Kernels:
    """The kernels of one workload, by the physical extents of their cube calls."""

    def __init__(self, lowering: Lowering, model: str, target: Target) -> None:
        self._model, self._target = model, target
        self._source = lowering.source
        self._account = lowering.functions[0].account
        self._boxes = [_boxes_of(one, self._account) for one in products(self._account)]
        self._main = max(self._boxes, key=lambda one: one.logical[0] * one.logical[1])
        self.chosen = self.choice(OPTIMIZED, OPTIMIZED)
        self.pypto = self.choice(PYPTO, PYPTO)

    def choice(self, m: str, n: str) -> Choice:
        """What a pair of choices means for each product."""
        return tuple(one.aligned((m, n), self._target) for one in self._boxes)

    def shown(self, choice: Choice) -> Extents:
        """The physical extents of the largest product."""
        return choice[self._boxes.index(self._main)]

    def made(self, wanted: Iterable[Choice]) -> dict[Choice, Kernel]:
        """The kernel of each choice."""
        asked = list(dict.fromkeys(wanted))
        why = {choice: self._illegal(choice) for choice in asked}
        offering = self._offering([choice for choice in asked if not why[choice]])
        found = {}
        for choice in asked:
            if choice == self.chosen:
                outcome = Extractions(self._account).chosen
                found[choice] = self._kernel(self._account, outcome)
            elif why[choice]:
                found[choice] = Kernel(False, why[choice], {})
            else:
                found[choice] = self._forced(offering, choice)
        return found

    def _illegal(self, choice: Choice) -> str:
        pairs = zip(self._boxes, choice, strict=True)
        return next(filter(None, (one.illegal(e, self._target) for one, e in pairs)), "")

    def _offering(self, choices: Iterable[Choice]) -> Account:
        """The account of the kernel with all of these extents on offer."""
        known = [set(one.nodes.values()) for one in products(self._account)]
        missing: dict[Extents, set[Extents]] = {}
        for choice in choices:
            for one, extents, there in zip(self._boxes, choice, known, strict=True):
                if extents not in there:
                    missing.setdefault(one.logical, set()).add(extents)
        if not missing:
            return self._account
        lowering = optimize(
            self._source.with_functions((self._account.function,)), target=self._target,
            cost_model=self._model, verify=False, l0="leave",
            rules=[asked_boxes(logical, asked) for logical, asked in missing.items()],
        )  # fmt: skip
        return lowering.functions[0].account

    def _forced(self, account: Account, choice: Choice) -> Kernel:
        """The cheapest kernel all of whose cube calls have these physical extents."""
        rivals = [
            node
            for one, wanted in zip(products(account), choice, strict=True)
            for node, extents in one.nodes.items()
            if extents != wanted
        ]
        outcome = Extractions(account).without(rivals)
        if outcome is None or outcome is NOT_PRICED:
            why = "no kernel with it fits on chip, or its consumers cannot take it"
            return Kernel(False, why, {})
        return self._kernel(account, outcome)

    def _kernel(self, account: Account, outcome: Outcome) -> Kernel:
        """A selection's kernel, emitted and counted."""
        trial = try_selection(
            account.function, account.skeleton, account.graph, account.priced, outcome.choice,
            account.target,
        )  # fmt: skip
        moved = traffic(trial.emitted.function, account.target)
        peaks = {space.value.lower(): peak.size_bytes for space, peak in trial.used.items()}
        figures: dict[str, Any] = {
            "block_m": self._main.logical[0], "block_n": self._main.logical[1],
            "block_k": self._main.depth[0], "physical_k": self._main.depth[1],
            "products": moved.products,
            **{f"{space}_bytes": peaks.get(space, 0) for space in SPACES},
            "load_bytes": moved.load_bytes, "store_bytes": moved.store_bytes,
            "cube_passes": moved.cube_passes,
            **{f"{pipe}_cycles": value for pipe, value in outcome.cost.by_pipe().items()},
            "cycles": outcome.cycles,
        }  # fmt: skip
        return Kernel(True, "", figures)


def _boxes_of(one: Product, account: Account) -> _Boxes:
    node = account.priced.nodes[next(iter(one.nodes))]
    sides = [tile_of(account.graph, cls) for cls in operand_classes(node)]
    left, right = sides
    taken = chosen_node(one, account.selection.choice.values())
    if left is None or right is None or taken is None:
        raise InternalError(f"product '{one.name}' has no operands or is not selected")
    steps = granularity(left, 0), granularity(right, 1)
    logical = one.logical(account, 0), one.logical(account, 1)
    depth = left.valid_shape[-1], left.shape[-1]
    return _Boxes(_static(logical), steps, _static(depth), one.nodes[taken])


def _static(extents: tuple[Any, Any]) -> Extents:
    if not all(isinstance(extent, int) for extent in extents):
        raise InternalError(f"a product of static extents has {extents}")
    return extents


def _round_up(extent: int, step: int) -> int:
    return -(-extent // step) * step


# --- what is told of it --------------------------------------------------------------------------

_CASE = ("workload", "dtype_a", "layout", "target", "model")
_WHOLE = 4
"""Cases of which every choice is shown; of more, a line each."""


def summary(rows: Sequence[Row]) -> list[Table]:
    """Every choice of the first few products, or a line for each product of many."""
    cases: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        cases.setdefault(tuple(row[name] for name in _CASE), []).append(row)
    if len(cases) <= _WHOLE:
        return [_choices_table(case, found) for case, found in cases.items()]
    return [_cases_table(cases), _totals_table(cases)]


def _choices_table(case: tuple[Any, ...], rows: Sequence[Row]) -> Table:
    """One line for each pair of physical extents, with all choices that lead to it."""
    same: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        same.setdefault((row["physical_m"], row["physical_n"]), []).append(row)
    lines = []
    for (m, n), found in same.items():
        first = found[0]
        labels = (_labels(found, "m_align"), _labels(found, "n_align"))
        extents = f"{m} x {n}" if m is not None else ""
        if not first["legal"]:
            lines.append((*labels, extents, *[""] * 7, str(first["reason"])))
            continue
        names = ("mat_bytes", "acc_bytes", "load_bytes", "cube_passes", "fixpipe_cycles", "cycles")
        numbers = [f"{first[name]:,.0f}" for name in names]
        marks = [word for word in ("pypto", "chosen") if first[word]]
        lines.append((*labels, extents, *numbers, f"{first['ratio_pypto']:.4f}", ", ".join(marks)))
    header = (
        "M", "N", "physical", "Mat bytes", "Acc bytes", "loaded", "passes", "drain", "cycles",
        "/ pypto", "",
    )  # fmt: skip
    return Table(header, tuple(lines), title=", ".join(map(str, case)))


def _labels(rows: Sequence[Row], name: str) -> str:
    found = dict.fromkeys(str(row[name]) for row in rows)
    return " ".join(label for label in found if label not in (PYPTO, OPTIMIZED)) or " ".join(found)


def _cases_table(cases: Mapping[tuple[Any, ...], Sequence[Row]]) -> Table:
    lines = []
    for case, rows in cases.items():
        legal = [row for row in rows if row["legal"]]
        if not legal:
            lines.append((*case, *[""] * 5, str(rows[0]["reason"])))
            continue
        best = min(legal, key=_cycles)
        rule = next(row for row in rows if row["pypto"])
        chosen = next(row for row in rows if row["chosen"])
        lines.append(
            (*case, _extents(rule), _extents(chosen), _extents(best), f"{best['cycles']:,.0f}",
             _ratio(chosen), "")
        )  # fmt: skip
    header = (*_CASE, "PyPTO's", "chosen", "best", "best cycles", "chosen / PyPTO's", "refused")
    return Table(header, tuple(lines), title="each product")


def _totals_table(cases: Mapping[tuple[Any, ...], Sequence[Row]]) -> Table:
    """How often and by how much what extraction took is cheaper than PyPTO's rule."""
    groups: dict[tuple[Any, ...], list[float]] = {}
    refused: dict[tuple[Any, ...], int] = {}
    for case, rows in cases.items():
        group = case[-2:]
        ratio = next((row["ratio_pypto"] for row in rows if row["chosen"]), None)
        groups.setdefault(group, []).extend([] if ratio is None else [float(ratio)])
        refused[group] = refused.get(group, 0) + (ratio is None)
    lines = [
        (*group, str(len(ratios)), str(refused[group]),
         str(sum(ratio < 1 - SAME for ratio in ratios)), f"{geometric_mean(ratios):.4f}")
        for group, ratios in groups.items()
    ]  # fmt: skip
    header = ("target", "model", "products", "refused", "cheaper", "geometric mean / PyPTO's")
    return Table(header, tuple(lines), title="what extraction took, against PyPTO's rule")


def _cycles(row: Row) -> float:
    value = row["cycles"]
    assert isinstance(value, float | int)
    return float(value)


def _ratio(row: Row) -> str:
    return f"{row['ratio_pypto']:.4f}" if row["ratio_pypto"] is not None else ""


def _extents(row: Row) -> str:
    return f"{row['physical_m']} x {row['physical_n']}"
