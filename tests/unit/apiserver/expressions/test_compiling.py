"""Expressions compile here where they compile on kube-apiserver 1.37.2, and are refused in its words.

`stock.json`: what that server said of DeviceClasses with these selectors: nothing, or its errors by line and
column, or what it says of the type of the whole.
"""

import json
from pathlib import Path

import pytest

from muster.apiserver.expressions.compiling import compile_fault

STOCK = [
    (expression, says) for expression, *says in json.loads(Path(__file__).with_name("stock.json").read_text())
]
# Told in other words: the library's parser expects other tokens after a text that is cut in the middle.
OTHER_WORDS = ('"\\400" == "A"',)
# Not refused: which messages of protobuf there are is not looked at.
TAKEN_ALL_THE_SAME = ("google.protobuf.Nope{} == 1",)


@pytest.mark.parametrize(("expression", "says"), STOCK)
def test_stock_says_the_same(expression: str, says: list[str]) -> None:
    fault = compile_fault(expression)
    if expression in TAKEN_ALL_THE_SAME:
        assert fault is None
    elif not says:
        assert fault is None, "never refuse what stock takes"
    elif expression in OTHER_WORDS:
        assert fault is not None
        assert f"ERROR: <input>:{says[0]}\n" in fault
    elif fault is not None and fault.startswith("must"):
        assert [fault] == says
    else:
        assert fault is not None
        lines = [line for line in fault.removeprefix("compilation failed: ").split("\n") if "<input>" in line]
        assert [line.removeprefix("ERROR: <input>:") for line in lines] == says


def test_an_error_shows_its_line_and_marks_the_place() -> None:
    assert compile_fault("true\n\t&& 'ä' == foo") == (
        "compilation failed: ERROR: <input>:2:12: undeclared reference to 'foo' (in container '')\n"
        " |  && 'ä' == foo\n"
        " | .....．.....^"
    )


def test_errors_come_in_the_order_of_their_places() -> None:
    fault = compile_fault("b(a)")
    assert fault is not None
    assert fault.index("reference to 'b'") < fault.index("reference to 'a'")


def test_no_more_than_a_hundred_errors_are_told() -> None:
    fault = compile_fault(" || ".join(["a"] * 103))
    assert fault is not None
    assert fault.count("ERROR") == 100
    assert fault.endswith("\n3 more errors were truncated")


def test_the_library_is_not_asked_about_a_long_text_that_cannot_be_read() -> None:
    fault = compile_fault("@" * 10_000)
    assert fault is not None
    assert fault.startswith(
        "compilation failed: ERROR: <input>:1:1: Syntax error: token recognition error at: '@'\n"
    )


@pytest.mark.parametrize(
    ("expression", "found"),
    [
        pytest.param('device.attributes["a"].x', None, id="what only the device tells"),
        pytest.param('semver("1.0.0")', None, id="a version"),
        pytest.param("1.5", "double", id="a fraction"),
        pytest.param("[1]", "list(int)", id="a list"),
    ],
)
def test_a_derived_attribute_is_a_plain_value(expression: str, found: str | None) -> None:
    fault = compile_fault(expression, is_derived=True)
    why = "must evaluate to a primitive scalar (string, integer, boolean, semver), not"
    assert fault == (found and f"{why} {found}")


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param("(" * 3000 + "true" + ")" * 3000, id="brackets"),
        pytest.param("+".join(["1"] * 5000) + "==1", id="a long sum"),
        pytest.param(
            "cel.bind(a,1," + "cel.bind(a,{a:a}," * 300 + "true" + ")" * 301, id="types that double"
        ),
        pytest.param('"a"' + ".map(a,{a:a})" * 500, id="types that grow"),
    ],
)
def test_what_is_too_hard_to_look_at_is_taken(expression: str) -> None:
    assert compile_fault(expression) is None


def test_nothing_at_all_does_not_compile() -> None:
    fault = compile_fault("")
    assert fault is not None
    assert fault.startswith("compilation failed: ERROR: <input>:1:0: Syntax error: mismatched input '<EOF>'")
    assert fault.endswith("IDENTIFIER}")
