"""Types of nodes; what stock says of many expressions is in test_compiling.py."""

import pytest

from muster.apiserver.expressions.checker import Checker
from muster.apiserver.expressions.syntax import read_expression
from muster.apiserver.expressions.types import told


def checked(expression: str) -> tuple[str, list[str]]:
    checker = Checker()
    found = checker.check(read_expression(expression)[0])
    return told(found), [fault.text for fault in (*checker.faults, *checker.literal_faults)]


@pytest.mark.parametrize(
    ("expression", "type_"),
    [
        ("device.attributes['a'].x", "any"),
        ("device.attributes['a'].x + 1", "int"),
        ("device.capacity['a'].x", "kubernetes.Quantity"),
        ("device.?driver", "optional_type(string)"),
        ("[1].map(x, string(x))", "list(string)"),
        ("[1].filter(x, x > 0)", "list(int)"),
        ("['a'].transformMap(i, x, x)", "map(int, string)"),
        ("{'a': 1}.transformMapEntry(k, v, {v: k})", "map(int, string)"),
        ("['a'].sortBy(x, x)", "list(string)"),
        ("cel.bind(x, 1, [x])", "list(int)"),
        ("optional.of(1).optMap(x, 'a')", "optional_type(string)"),
        ("optional.of(1).optFlatMap(x, optional.of(1.5))", "optional_type(double)"),
        ("[]", "list(dyn)"),
        ("[].min() + 1", "int"),
        ("int", "type(int)"),
        ("google.protobuf.Duration{}", "duration"),
    ],
)
def test_a_node_has_the_type_that_its_parts_give(expression: str, type_: str) -> None:
    assert checked(expression) == (type_, [])


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        ("[1].exists_one(x, x)", "found no matching overload for '_?_:_' applied to '(int, int, int)'"),
        ("[1].all(x, x)", "expected type 'bool' but found 'int'"),
        ("cel.bind(x, 1, true) && x", "undeclared reference to 'x' (in container '')"),
        ("[?1]", "expected type 'optional_type(int)' but found 'int'"),
        ("quantity('1').x", "unexpected failed resolution of 'kubernetes.Quantity'"),
        ("[[1], ['a']]", "expected type 'list(int)' but found 'list(string)'"),
    ],
)
def test_what_does_not_fit_is_told(expression: str, fault: str) -> None:
    assert checked(expression)[1] == [fault]


def test_lists_for_format_may_hold_different_things() -> None:
    assert checked("'%s %d'.format(['a', 1])") == ("string", [])
