"""How long `optimize` takes: small kernels, a long function, and how that grows.

    python -m pypto_egg.bench.speed

Prints Markdown tables. All figures are of a warm process (everything imported, the rules of our
rulesets known to the engine), with verify=False; what verification adds is a column of its own.
CPU seconds are those of this process, so that a busy machine spoils them less than wall seconds.
"""

from __future__ import annotations

import argparse
import math
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from pypto_egg import Lowering, optimize
from pypto_egg.bench.programs import layer_chain
from pypto_egg.extract import extract
from pypto_egg.extract.cost.model import cost_model
from pypto_egg.interp import compare, random_inputs
from pypto_egg.interp.run import entry_function
from pypto_egg.ir.dtype import BF16, FP32
from pypto_egg.l0 import CubeProduct, schedules
from pypto_egg.scheduling import prices_of
from pypto_egg.target import load_target

KERNELS = Path(__file__).resolve().parent / "kernels"
PROMISED = {"one matmul": 0.150, "attention block": 0.600, "100 layers": 3.0}
"""Wall seconds that the product promises."""
PROMISED_EXPONENT = 1.2
LARGE = 4096
REPEATS = 3
DEPTHS = (25, 50, 100, 200)
STAGES = {
    "load": ("load", "register"),
    "saturation": ("saturate",),
    "snapshot": ("snapshot", "type"),
    "schedules": ("schedule",),
    "price": ("price",),
    "extraction": ("extract",),
    "emission": ("emit",),
}


@dataclass(frozen=True)
class Run:
    """One call: its result, the CPU and the wall seconds."""

    result: Lowering
    cpu: float
    wall: float


def one_matmul() -> str:
    """The decode projection of the kernels, a single product."""
    return (KERNELS / "qwen3_decode_proj.py").read_text(encoding="utf-8")


def attention_block() -> str:
    """Two products with a softmax between them."""
    return (KERNELS / "attention_block.py").read_text(encoding="utf-8")


def timed(work: Callable[[], Lowering]) -> Run:
    """What `work` returns and how long it took."""
    cpu, wall = time.process_time(), time.perf_counter()
    result = work()
    return Run(result, time.process_time() - cpu, time.perf_counter() - wall)


def best(text: str, repeats: int) -> Run:
    """The fastest of some runs by CPU time, which a busy machine spoils less."""
    runs = [timed(lambda: optimize(text, verify=False)) for _ in range(repeats)]
    return min(runs, key=lambda run: run.cpu)


def stage_seconds(result: Lowering) -> dict[str, float]:
    """Wall seconds of each stage, over all functions, without those of the reference."""
    found = dict.fromkeys(STAGES, 0.0)
    for report in result.functions:
        for stage, parts in STAGES.items():
            found[stage] += sum(report.seconds.get(part, 0.0) for part in parts)
    return found


def reference_seconds(result: Lowering) -> float:
    """Wall seconds of the reference lowering, which `optimize` makes to compare with."""
    if result.baseline is None:
        return 0.0
    return sum(sum(report.seconds.values()) for report in result.baseline.functions)


def verification_seconds(result: Lowering) -> float:
    """Wall seconds for random inputs, both executions and the comparison."""
    started = time.perf_counter()
    entry = entry_function(result.source)
    inputs = random_inputs(entry, program=result.source)
    compare(result.source, result.program, inputs, function=entry.name)
    return time.perf_counter() - started


def growth_exponent(seconds: dict[int, float]) -> float:
    """The slope of a straight line through (log depth, log seconds), by least squares."""
    slope, _ = statistics.linear_regression(
        [math.log(depth) for depth in seconds], [math.log(taken) for taken in seconds.values()]
    )
    return slope


def fastest(work: Callable[[], object]) -> tuple[float, float]:
    """(wall, CPU) seconds of the fastest of some runs by CPU time."""
    runs = []
    for _ in range(REPEATS):
        cpu, wall = time.process_time(), time.perf_counter()
        work()
        runs.append((time.process_time() - cpu, time.perf_counter() - wall))
    cpu, wall = min(runs)
    return wall, cpu


def enumeration_seconds() -> tuple[float, float]:
    """(wall, CPU) seconds to list and price all L0 schedules of a 4096 x 4096 x 4096 product."""
    target, model = load_target("a2a3"), cost_model("pypto_l0")
    extents = (LARGE, LARGE, LARGE)
    product = CubeProduct(extents, extents, BF16, BF16, FP32, leaves=True)

    def work() -> None:
        schedules.cache_clear()
        prices_of(product, schedules(product, target), model, target)

    return fastest(work)


def slowest_extraction_seconds() -> tuple[float, float]:
    """(wall, CPU) seconds of extraction for the kernel of bench/kernels where it takes longest."""
    results = (
        optimize(path.read_text(encoding="utf-8"), verify=False)
        for path in sorted(KERNELS.glob("*.py"))
    )
    problems = [result.extraction_problem(r.name) for result in results for r in result.functions]
    return max(
        (fastest(partial(extract, problem)) for problem in problems), key=lambda taken: taken[1]
    )


def simulated_seconds() -> tuple[float, float]:
    """(wall, CPU) seconds of the attention block where kernels are compared by simulation."""
    text = attention_block()
    return fastest(lambda: optimize(text, cost_model="schedule", verify=False))


def print_parts() -> None:
    """Prints what was promised of single parts beside what was measured."""
    measured = {
        f"L0 schedules of {LARGE}^3, listed and priced": (0.05, enumeration_seconds()),
        "exact extraction, the slowest of bench/kernels": (1.0, slowest_extraction_seconds()),
        "attention block, kernels simulated": (2.0, simulated_seconds()),
    }
    print("| part | promised, s | wall, s | CPU, s |")
    print("|---|---|---|---|")
    for name, (promised, (wall, cpu)) in measured.items():
        print(f"| {name} | {promised:.2f} | {wall:.3f} | {cpu:.3f} |")


def print_claims(runs: dict[str, Run]) -> None:
    """Prints what was promised beside what was measured."""
    print("| program | promised, s | wall, s | CPU, s |")
    print("|---|---|---|---|")
    for name, promised in PROMISED.items():
        print(f"| {name} | {promised:.2f} | {runs[name].wall:.3f} | {runs[name].cpu:.3f} |")


def print_stages(runs: dict[str, Run]) -> None:
    """Prints where the wall time goes; the rest is reading the text and the verifiers."""
    heads = [*STAGES, "reference", "rest", "verification"]
    print("| program | e-nodes | " + " | ".join(heads) + " |")
    print("|---" * (len(heads) + 2) + "|")
    for name, run in runs.items():
        stages = stage_seconds(run.result)
        reference = reference_seconds(run.result)
        rest = run.wall - sum(stages.values()) - reference
        row = [*stages.values(), reference, rest, verification_seconds(run.result)]
        nodes = sum(report.saturation.nodes for report in run.result.functions)
        print(f"| {name} | {nodes} | " + " | ".join(f"{value:.3f}" for value in row) + " |")


def print_growth(runs: dict[int, Run]) -> None:
    """Prints the seconds for each depth and the exponents of their growth."""
    print("| layers | wall, s | CPU, s |")
    print("|---|---|---|")
    for depth, run in runs.items():
        print(f"| {depth} | {run.wall:.3f} | {run.cpu:.3f} |")
    wall = growth_exponent({depth: run.wall for depth, run in runs.items()})
    cpu = growth_exponent({depth: run.cpu for depth, run in runs.items()})
    print(f"\nGrowth: layers^{wall:.2f} by wall time, layers^{cpu:.2f} by CPU time; ", end="")
    print(f"promised is at most {PROMISED_EXPONENT}.")


def main() -> None:
    """Prints the claims, the stages and the growth as Markdown."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3, help="runs of which the best counts")
    repeats = parser.parse_args().repeats
    optimize(layer_chain(5), verify=False)  # warm: imports, rules, extraction
    chains = {depth: best(layer_chain(depth), repeats) for depth in DEPTHS}
    runs = {
        "one matmul": best(one_matmul(), repeats),
        "attention block": best(attention_block(), repeats),
        "100 layers": chains[100],
    }
    print_claims(runs)
    print()
    print_parts()
    print()
    print_stages(runs)
    print()
    print_growth(chains)


if __name__ == "__main__":
    main()
