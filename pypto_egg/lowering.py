"""The result of lowering a program: the tile program, what it costs, and why it is this one."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pypto_egg.errors import OptionError
from pypto_egg.extract.cost.model import ZERO, CostVector
from pypto_egg.ir.program import Program
from pypto_egg.nz.plan import NzAdvice, PackedParameter
from pypto_egg.text import print_program

if TYPE_CHECKING:
    from pypto_egg.account import Account
    from pypto_egg.egraph.saturate import Saturation
    from pypto_egg.extract.problem import Problem
    from pypto_egg.interp import Comparison
    from pypto_egg.l0 import L0Schedule


@dataclass(frozen=True)
class Option:
    """One way of making a value.

    Args:
        what: the tile call, or the control flow, in PyPTO's words.
        cost: cycles of this step alone, for each pipe, trip counts included.
        total: what the model says of the whole kernel if this option is taken and everything else
            is chosen anew, in cycles; None where that was not worked out or no kernel exists.
        status: "chosen", "dearer", "equal", or "illegal"; "cheaper" where the extraction was no
            exact one, or ended at its deadline, before it found this; "not priced" where a large
            function has too many options to work out each one's total.
        why: what speaks against it.
    """

    what: str
    cost: CostVector
    total: float | None
    status: str
    why: str


@dataclass(frozen=True)
class Decision:
    """A value that could be made in more than one way, and what became of each way."""

    value: str
    function: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Kernel:
    """A version of a function that was lowered as a whole, to be compared with others.

    Args:
        what: what is special about it, in words.
        cost: busy cycles for each pipe.
        cycles: what the model says of it; None for one that cannot be made.
        refused: why it cannot be made; empty otherwise.
    """

    what: str
    cost: CostVector = ZERO
    cycles: float | None = None
    refused: str = ""


@dataclass(frozen=True)
class FunctionReport:
    """What happened to one InCore function.

    Args:
        cost: busy cycles for each pipe.
        seconds: stage name -> wall time.
        peak_bytes: memory space -> bytes in use at the worst place.
        kernels: the value for which whole versions of the function were compared, and the
            versions, the chosen one first; None if there was one version.
    """

    name: str
    cost: CostVector
    classes: int
    nodes: int
    saturation: Saturation
    extraction: str
    bound: float
    seconds: dict[str, float]
    peak_bytes: dict[str, int]
    account: Account = field(repr=False)
    kernels: tuple[str, tuple[Kernel, ...]] | None = None

    @cached_property
    def cycles(self) -> float:
        """What the cost model says the function takes: its own fold of the selected operations."""
        return self.account.cycles(self.account.selection.choice)

    @property
    def busiest(self) -> tuple[str, float]:
        """The pipe that is busy for the most cycles, and these: the roofline of this selection."""
        return max(self.cost.by_pipe().items(), key=lambda part: part[1])

    @property
    def l0_schedules(self) -> tuple[L0Schedule, ...]:
        """How the function's cube products are cut into L0 tiles, in the order of the e-graph;
        nothing for products that are left to PyPTO."""
        nodes = self.account.priced.nodes
        chosen = (nodes[at].recipe for at in sorted(self.account.selection.choice.values()))
        return tuple(r.schedule for r in chosen if r is not None and r.schedule is not None)

    @cached_property
    def decisions(self) -> tuple[Decision, ...]:
        """What could have been made otherwise, worked out when it is first asked for."""
        from pypto_egg.report.decisions import decisions
        from pypto_egg.report.kernels import between_kernels

        between = () if self.kernels is None else (between_kernels(self.name, *self.kernels),)
        return (*between, *decisions(self.account))


@dataclass(frozen=True, repr=False)
class Lowering:
    """A lowered program and the account of it.

    Args:
        program: the tile program.
        source: the tensor program.
        functions: one report for each InCore function that was lowered.
        baseline: the reference lowering of the same program; None for the reference itself and
            where the reference refuses the program (`baseline_refused` says why).
        fallback: why the reference itself is what was returned; empty where the search decided.
        verified: True if both programs were executed and agreed, False if they were not executed.
        packing: what the host must pack before it calls the program, with nz="pack"; `source`
            takes the same tensors as they are.
        nz_advice: what packing each ND cube operand is worth, unless nz="keep".
    """

    program: Program
    source: Program
    target: str
    cost_model: str
    functions: tuple[FunctionReport, ...]
    baseline: Lowering | None = None
    baseline_refused: str = ""
    fallback: str = ""
    verified: bool = False
    verification: str = ""
    comparison: Comparison | None = field(default=None, repr=False)
    packing: tuple[PackedParameter, ...] = ()
    nz_advice: tuple[NzAdvice, ...] = ()

    def __repr__(self) -> str:
        checked = "verified" if self.verified else "not verified"
        name = self.program.name or "a program"
        return f"<Lowering of {name} for {self.target}: {self.cycles:,.0f} cycles, {checked}>"

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        from pypto_egg.report.pages.cells import lowering_cell

        return lowering_cell(self)

    @cached_property
    def text(self) -> str:
        """The tile program in PyPTO's Python syntax."""
        return print_program(self.program)

    @property
    def cost(self) -> CostVector:
        """Busy cycles for each pipe, summed over the lowered functions, one run of each."""
        total = ZERO
        for report in self.functions:
            total = total + report.cost
        return total

    @property
    def cycles(self) -> float:
        """What the cost model says the lowered functions take, one run of each after the other.

        This is what `optimize` makes least; for models that let no pipes overlap, `cost.total`.
        """
        return sum((report.cycles for report in self.functions), 0.0)

    def l0_schedules(self, function: str) -> tuple[L0Schedule, ...]:
        """How the cube products of a lowered function are cut into L0 tiles.

        Raises:
            OptionError: no function of that name was lowered.
        """
        return self._report(function).l0_schedules

    def extraction_problem(self, function: str) -> Problem:
        """The e-graph that a lowered function was chosen from, with prices and limits.

        Costs are cycles, trip counts included; of equal ones the one with fewer bytes of tiles is
        less by a trace. The limits are those that capacities and overwritten values led to, for
        the selections that were met on the way. Of a product in blocks it is the e-graph of the
        blocking that was chosen.

        Raises:
            OptionError: no function of that name was lowered.
        """
        return self._report(function).account.problem

    def _report(self, function: str) -> FunctionReport:
        for report in self.functions:
            if report.name == function:
                return report
        names = ", ".join(report.name for report in self.functions) or "none"
        raise OptionError(
            f"no lowered function '{function}'", hint=f"the lowered functions are: {names}"
        )

    @property
    def alternatives(self) -> tuple[Decision, ...]:
        """Every decision, with the cost of each way and why it lost or was illegal."""
        return tuple(d for report in self.functions for d in report.decisions)

    def explain(self) -> str:
        """The account of the choices as plain text."""
        from pypto_egg.report.explain import explain

        return explain(self)

    def to_json(self) -> str:
        """The result as JSON: program text, costs, decisions, statistics."""
        from pypto_egg.report.record import record

        return json.dumps(record(self), indent=2)

    def to_html(self) -> str:
        """One self-contained page: programs, decisions, pipe timeline, memory.

        The same bytes for the same input. Of functions that cannot be simulated there is no
        timeline; the page says why.
        """
        from pypto_egg.report.pages.lowering_page import lowering_page

        return lowering_page(self)

    def to_trace(self) -> str:
        """The simulated schedule as JSON in the Trace Event Format, which Perfetto and Chrome
        open: a process for each function, a thread for each pipe, 1 us for each cycle.

        Raises:
            LoweringError: a function has operations that cannot be simulated.
            OptionError: a function runs too many instructions.
        """
        from pypto_egg.report.trace_events import trace_record

        return json.dumps(trace_record(self))

    def save(self, path: str | Path) -> None:
        """Write the tile program's text to a file."""
        Path(path).write_text(self.text, encoding="utf-8")
