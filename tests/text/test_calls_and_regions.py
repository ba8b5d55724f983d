"""Functions, calls between them, launches and regions (PyPTO language reference, 2, 8.2 and 10)."""

from collections.abc import Callable

import pytest

from pypto_egg.errors import ParseError, UnknownOpError
from pypto_egg.ir.enums import Direction, FunctionType, Level, LoopKind, Role
from pypto_egg.ir.expr import Call, FunctionCall, Submit
from pypto_egg.ir.stmt import Assign, Eval, For, Scope
from pypto_egg.text import parse, print_function, print_program

Text = Callable[..., str]
T = "pl.Tensor[[16, 64], pl.FP32]"

KERNELS = """\
    @pl.function(type=pl.FunctionType.InCore)
    def one(
        a: pl.Tensor[[16, 64], pl.FP32], out: pl.Out[pl.Tensor[[16, 64], pl.FP32]]
    ) -> pl.Tensor[[16, 64], pl.FP32]:
        return a
    @pl.function(type=pl.FunctionType.InCore)
    def two(
        a: pl.Tensor[[16, 64], pl.FP32], rows: pl.Scalar[pl.INDEX]
    ) -> tuple[pl.Tensor[[16, 64], pl.FP32], pl.Tensor[[rows, 64], pl.FP32]]:
        return a, a
    @pl.function(type=pl.FunctionType.InCore)
    def derived(a: pl.Tensor[[16, 64], pl.FP32]):
        return a
"""


@pytest.fixture
def called(text: Text, canonical: Text) -> Text:
    """The canonical body of an orchestration function that can call the kernels above."""

    def build(body: str) -> str:
        program = parse(text(body, "Orchestration") + KERNELS)
        printed = print_program(program)
        assert print_program(parse(printed)) == printed
        lines = printed.split("\n")
        first = next(i for i, line in enumerate(lines) if line.startswith("    def k("))
        body_lines = []
        for line in lines[first + 1 :]:
            if not line.startswith("        "):
                break
            body_lines.append(line[8:])
        return "\n".join(body_lines)

    return build


CALLS = {
    "r = self.one(x, x)": f"r: {T} = self.one(x, x)",
    "r = self.one(a=x, out=x)": f"r: {T} = self.one(x, x)",
    "r = self.one(x, x, device=n)": f"r: {T} = self.one(x, x, device=n)",
    'r = self.one(x, x, attrs={"core_num": 8, '
    '"arg_directions": [pl.adir.input, pl.adir.output]})': (
        f'r: {T} = self.one(x, x, attrs={{"core_num": 8, '
        '"arg_directions": [pl.adir.input, pl.adir.output]})'
    ),
    "r = self.derived(x)": f"r: {T} = self.derived(x)",
    "p, q = self.two(x, 8)": (
        f"_tuple_tmp: pl.Tuple[{T}, pl.Tensor[[8, 64], pl.FP32]] = self.two(x, 8)\n"
        f"p: {T} = _tuple_tmp[0]\n"
        "q: pl.Tensor[[8, 64], pl.FP32] = _tuple_tmp[1]"
    ),
    "q = self.two(x, n)[1]": "q: pl.Tensor[[n, 64], pl.FP32] = self.two(x, n)[1]",
    "r, tid = pl.submit(self.one, x, x, dumps=[x], deps=[t])": (
        f"_submit_tmp: pl.Tuple[{T}, pl.Scalar[pl.TASK_ID]] = "
        "pl.submit(self.one, x, x, deps=[t], dumps=[x])\n"
        f"r: {T} = _submit_tmp[0]\n"
        "tid: pl.Scalar[pl.TASK_ID] = _submit_tmp[1]"
    ),
    "(p, q), tid = pl.spmd_submit(self.two, x, 3, core_num=8, sync_start=True)": (
        f"_submit_tmp: pl.Tuple[{T}, pl.Tensor[[3, 64], pl.FP32], pl.Scalar[pl.TASK_ID]] = "
        "pl.spmd_submit(self.two, x, 3, core_num=8, sync_start=True)\n"
        f"p: {T} = _submit_tmp[0]\n"
        "q: pl.Tensor[[3, 64], pl.FP32] = _submit_tmp[1]\n"
        "tid: pl.Scalar[pl.TASK_ID] = _submit_tmp[2]"
    ),
    "pl.submit(self.one, x, x, allow_early_resolve=True, predicate=(n, 3))": (
        "pl.submit(self.one, x, x, allow_early_resolve=True, predicate=(n, 3))"
    ),
}


@pytest.mark.parametrize("body", CALLS, ids=lambda body: body[:40])
def test_calls(called: Text, body: str) -> None:
    assert called(body) == CALLS[body]


def test_call_objects(text: Text) -> None:
    program = parse(
        text("r = self.one(x, x)\npl.submit(self.one, x, x)", "Orchestration") + KERNELS
    )
    call, launch = program.function("k").body
    assert isinstance(call, Assign)
    assert isinstance(call.value, FunctionCall)
    assert isinstance(launch, Eval)
    assert isinstance(launch.value, Submit)
    assert (launch.value.kind, launch.value.name) == ("submit", "one")


def test_callees_print_before_callers_and_cycles_keep_the_order(text: Text) -> None:
    printed = print_program(parse(text("r = self.one(x, x)", "Orchestration") + KERNELS))
    names = [line.split("(")[0][8:] for line in printed.split("\n") if line.startswith("    def ")]
    assert names == ["one", "k", "two", "derived"]
    cyclic = (
        "@pl.program\nclass P:\n"
        "    @pl.function\n    def f(self):\n        self.g()\n"
        "    @pl.function\n    def g(self):\n        self.f()\n"
    )
    assert print_program(parse(cyclic)).index("def f") < print_program(parse(cyclic)).index("def g")


UNKNOWN = [
    'q: pl.UnknownType = pl.tensor.foo(x, "s", pl.FP32, [1, n], k=[1, (2, 3)], m=pl.Mem.Vec)',
    f"q: {T} = pl.tensor.foo(x)",
    "pl.foo(x)",
    "pld.tensor.foo(x, peer=1)",
    "pld.system.notify(x, peer=1, value=n)",
    "ctx: pl.PrefetchAsyncContext = pl.prefetch.make_context(x)",
    "buf: pl.Ptr = pl.tensor.alloc(pl.Mem.DDR, 128)",
    "v: pl.Scalar[pl.INDEX] = pl.system.available_aiv_count()",
    "pl.system.sync_src(set_pipe=pl.PipeType.MTE2, wait_pipe=pl.PipeType.V, event_id=0)",
]


@pytest.mark.parametrize("body", UNKNOWN, ids=lambda body: body[:40])
@pytest.mark.parametrize("kind", ["Orchestration", "Opaque", "Group"])
def test_unknown_operators_pass_through_outside_of_kernels(
    canonical: Text, body: str, kind: str
) -> None:
    assert canonical(body, kind) == body


def test_an_unknown_operator_keeps_its_name_and_takes_the_annotated_type(text: Text) -> None:
    (stmt,) = parse(text(f"q: {T} = pl.tensor.foo(x)", "Orchestration")).functions[0].body
    assert isinstance(stmt, Assign)
    assert isinstance(stmt.value, Call)
    assert stmt.value.op == "pl.tensor.foo"
    assert stmt.value.type == stmt.var.type


@pytest.mark.parametrize("kind", ["InCore", "AIC", "AIV"])
def test_unknown_operators_are_refused_in_kernels(text: Text, kind: str) -> None:
    with pytest.raises(UnknownOpError) as caught:
        parse(text("a = pl.tensor.row_maks(x)", kind))
    assert caught.value.message == f"unknown operator 'pl.tensor.row_maks' in {kind} function 'k'"
    assert "pl.tensor.row_max" in str(caught.value.hint)
    assert (caught.value.span.line, caught.value.span.column) == (7, 13)


def test_a_dimension_read_is_the_symbol_in_orchestration_only() -> None:
    text = (
        "@pl.program\nclass P:\n"
        "    @pl.function(type=pl.FunctionType.{kind})\n"
        "    def f(self, a: pl.Tensor[[M, 4], pl.FP32]) -> pl.Scalar[pl.INDEX]:\n"
        "        m = pl.tensor.dim(a, 0)\n"
        "        return m\n"
    )
    folded = print_program(parse(text.format(kind="Orchestration")))
    assert "dim" not in folded
    assert "        return M" in folded
    kept = print_program(parse(text.format(kind="InCore")))
    assert "m: pl.Scalar[pl.INDEX] = pl.tensor.dim(a, 0)" in kept
    assert print_program(parse(folded)) == folded


REGIONS = [
    "with pl.at(level=pl.Level.CORE_GROUP, optimizations=[pl.split(pl.SplitMode.UP_DOWN), "
    'pl.cross_core_slot(slot_num=2)], name_hint="k", deps=[t], no_dep_args=[x], dumps=[x], '
    f"allow_early_resolve=True) as tid:\n    y: {T} = pl.tensor.exp(x)\nw: {T} = y",
    f"with pl.at(level=pl.Level.HOST, role=pl.Role.Orchestrator):\n    y: {T} = pl.tensor.exp(x)",
    'with pl.cluster(name_hint="k"):\n    pass',
    'with pl.spmd(n, sync_start=True, name_hint="k") as tid:\n'
    "    i: pl.Scalar[pl.INDEX] = pl.tile.get_block_idx()",
    'for i in pl.spmd(8, name_hint="k"):\n    pass',
    "with pl.scope(mode=pl.ScopeMode.MANUAL):\n    pass",
]


@pytest.mark.parametrize("body", REGIONS, ids=lambda body: body[:30])
def test_regions_print_as_read(canonical: Text, body: str) -> None:
    assert canonical(body, "Orchestration") == body


def test_synonyms_and_defaults_of_regions(canonical: Text) -> None:
    body = (
        "with pl.manual_scope():\n    pass\n"
        'with pl.at(pl.Level.PROCESSOR, name_hint="", deps=[]):\n    pass'
    )
    assert canonical(body, "Orchestration") == (
        "with pl.scope(mode=pl.ScopeMode.MANUAL):\n    pass\n"
        "with pl.at(level=pl.Level.CHIP):\n    pass"
    )
    auto = "with pl.scope():\n    pass"
    assert canonical(auto, "Orchestration", ", auto_scope=False") == auto


def test_region_objects(text: Text) -> None:
    body = (
        "for lane in pl.split_aiv(2, mode=pl.SplitMode.UP_DOWN):\n    pass\n"
        "for i in pl.spmd(8, sync_start=True):\n    pass"
    )
    split, blocks = parse(text(body, "Orchestration")).functions[0].body
    assert isinstance(split, Scope)
    assert (split.kind, split.args, split.var.name) == ("split_aiv", (2,), "lane")
    assert isinstance(blocks, For)
    assert (blocks.kind, blocks.attrs) == (LoopKind.spmd, (("sync_start", True),))


DECORATORS = {
    "@pl.function": "@pl.function",
    "@pl.function()": "@pl.function",
    "@pl.function(type=pl.FunctionType.Group)": (
        "@pl.function(type=pl.FunctionType.Group, level=pl.Level.CORE_GROUP, "
        "role=pl.Role.SubWorker)"
    ),
    "@pl.function(type=pl.FunctionType.Spmd, auto_scope=False)": (
        "@pl.function(type=pl.FunctionType.Spmd, auto_scope=False)"
    ),
    "@pl.function(level=pl.Level.POD, role=pl.Role.Orchestrator)": (
        "@pl.function(level=pl.Level.CLUSTER_0, role=pl.Role.Orchestrator)"
    ),
    "@pl.jit.incore": (
        "@pl.function(type=pl.FunctionType.InCore, level=pl.Level.CHIP_DIE, role=pl.Role.SubWorker)"
    ),
}


@pytest.mark.parametrize("decorator", DECORATORS)
def test_decorators(decorator: str) -> None:
    program = parse(f"{decorator}\ndef f(a: pl.Scalar[pl.INT32]):\n    pass\n")
    assert print_program(program).split("\n")[0] == DECORATORS[decorator]


@pytest.mark.parametrize("kind", list(FunctionType))
def test_self_is_printed_for_all_but_sub_workers(kind: FunctionType) -> None:
    program = parse(
        f"@pl.program\nclass P:\n    @pl.function(type=pl.FunctionType.{kind.name})\n"
        "    def f(self, a: pl.Scalar[pl.INT32]):\n        pass\n"
    )
    (function,) = program.functions
    has_self = "def f(self, a:" in print_program(program)
    assert has_self == (function.role is not Role.SubWorker)
    assert "def f(a:" in print_function(function)


def test_function_attributes() -> None:
    text = (
        "@pl.function(type=pl.FunctionType.AIV, level=pl.Level.AIV, role=pl.Role.SubWorker)\n"
        "def f(n: pl.Scalar[pl.INDEX]):\n"
        '    pl.func_attr({"split": pl.SplitMode.UP_DOWN, "k": 1, "on": True, "s": "a\\"b", '
        '"e": n + 1, "cores": pl.system.available_aiv_count(), "cache_policy": [(1, 1)]})\n'
        "    return n\n"
    )
    program = parse(text)
    assert print_program(program) == text
    assert program.functions[0].attr("cache_policy") == ((1, 1),)
    without = parse(text.replace("UP_DOWN", "NONE"))
    assert without.functions[0].attr("split") is None


def test_bodies_that_live_elsewhere() -> None:
    text = (
        "@pl.function(level=pl.Level.HOST, role=pl.Role.SubWorker)\n"
        "def f(n: pl.Scalar[pl.INDEX]):\n    ...\n\n"
        '@pl.function(external_source="k.cpp")\n'
        "def g(n: pl.Scalar[pl.INDEX]):\n    ...\n"
    )
    program = parse(text)
    assert print_program(program) == text
    assert program.functions[0].level is Level.HOST
    assert program.functions[1].external_source == "k.cpp"


def test_directions_of_parameters() -> None:
    text = (
        "@pl.function\n"
        "def f(a: pl.Out[pl.Scalar[pl.INT32]], b: pl.InOut[pl.Tensor[[4], pl.FP32]], "
        "c: pl.AsyncEvent = None) -> tuple[pl.Scalar[pl.INT32], pl.Array[4, pl.INT32]]:\n"
        "    pass\n"
    )
    program = parse(text)
    assert [p.direction for p in program.functions[0].params] == [
        Direction.Out, Direction.InOut, Direction.In,
    ]  # fmt: skip
    assert print_program(program) == text.replace(" = None", "")


def test_strict_ssa_refuses_reassignment(text: Text) -> None:
    with pytest.raises(ParseError, match="'a' is assigned twice under strict_ssa=True"):
        parse(text("a = pl.exp(x)\na = pl.neg(x)", "InCore", ", strict_ssa=True"))
