"""Long programs: no recursion over statements, no work that grows faster than the text."""

from pypto_egg.ir.stmt import Assign
from pypto_egg.text import parse, print_program

KIND = "pl.Tensor[[16, 64], pl.FP32]"


def chain(length: int) -> str:
    """A kernel whose statements each use the one before."""
    lines = [f"        x{i + 1}: {KIND} = pl.tensor.adds(x{i}, {i}.5)" for i in range(length)]
    return (
        "# pypto.program: Chain\nimport pypto.language as pl\n\n@pl.program\nclass Chain:\n"
        "    @pl.function(type=pl.FunctionType.InCore, level=pl.Level.CHIP_DIE, "
        "role=pl.Role.SubWorker)\n"
        f"    def k(x0: {KIND}) -> {KIND}:\n" + "\n".join(lines) + f"\n        return x{length}\n"
    )


def test_ten_thousand_statements_round_trip() -> None:
    text = chain(10_000)
    program = parse(text)
    assert len(program.functions[0].body) == 10_001
    assert print_program(program) == text


def test_names_that_collide_a_thousand_times() -> None:
    loops = "\n".join("    for i in pl.range(4):\n        pass" for _ in range(1000))
    printed = print_program(parse(f"@pl.function\ndef f():\n{loops}\n"))
    assert "for i_999 in pl.range(4):" in printed
    assert print_program(parse(printed)) == printed


def test_a_name_reassigned_a_thousand_times_is_one_variable() -> None:
    body = "\n".join("    a = pl.exp(a)" for _ in range(1000))
    (function,) = parse(f"@pl.function\ndef f(a: {KIND}):\n{body}\n").functions
    variables = {stmt.var for stmt in function.body if isinstance(stmt, Assign)}
    assert variables == {function.params[0].var}
