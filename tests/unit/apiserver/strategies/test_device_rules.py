"""Names, taints and tolerations of devices."""

import pytest

from muster.apiserver.kinds import Cause
from muster.apiserver.strategies.device_rules import (
    declared_last,
    each,
    named,
    validate_binding_conditions,
    validate_fully_qualified,
    validate_opaque,
    validate_pool_name,
    validate_qualified,
    validate_selectors,
    validate_taint,
    validate_toleration,
)


def fields(found: list[Cause]) -> list[tuple[str, str]]:
    return [(cause.field, cause.type.removeprefix("FieldValue")) for cause in found]


@pytest.mark.parametrize("name", ["model", "gpu.example.com/model", "_x9"])
def test_an_attribute_is_an_identifier_with_or_without_a_domain(name: str) -> None:
    assert validate_qualified("a", name) == []


@pytest.mark.parametrize("name", ["", "9x", "/model", "a.b/", "Bad_Domain/x", "x" * 33])
def test_other_names_are_refused(name: str) -> None:
    assert validate_qualified("a", name)


def test_constraints_name_the_domain() -> None:
    assert fields(validate_fully_qualified("a", "pair")) == [("a", "Invalid")]
    assert validate_fully_qualified("a", "gpu.example.com/pair") == []


def test_a_pool_may_have_parts() -> None:
    assert validate_pool_name("p", "rack-1/n1") == []
    assert fields(validate_pool_name("p", "rack-1//n1")) == [("p", "Invalid")]


def test_a_selector_is_an_expression() -> None:
    assert fields(validate_selectors("s", [{}, {"cel": {}}])) == [
        ("s[0].cel", "Required"),
        ("s[1].cel.expression", "Invalid"),
    ]


def test_a_taint_says_what_it_does() -> None:
    assert fields(validate_taint("t", {"key": "a"})) == [("t.effect", "Required")]


def test_who_tolerates_all_values_names_none() -> None:
    assert fields(validate_toleration("t", {"operator": "Exists", "value": "x"})) == [("t.value", "Invalid")]


def test_conditions_that_end_well_need_those_that_end_badly() -> None:
    assert fields(validate_binding_conditions("d", {"bindingConditions": ["ready"]})) == [
        ("d.bindingFailureConditions", "Invalid")
    ]


def test_a_name_comes_once_and_lists_have_an_end() -> None:
    found = each("x", [{"name": "a"}, {"name": "a"}], lambda here, value: [], most=1, key=named)
    assert fields(found) == [("x", "TooMany"), ("x[1]", "Duplicate")]


def test_declared_rules_come_last() -> None:
    first, last = Cause("a", "FieldValueInvalid", "x"), Cause("b", "FieldValueDuplicate", "y")
    assert declared_last([last, first]) == [first, last]


def test_parameters_that_are_null_are_none() -> None:
    given = {"opaque": {"driver": "d.example.com", "parameters": None}}
    assert fields(validate_opaque("c", given)) == [("c.opaque.parameters", "Required")]
    assert validate_opaque("c", {"opaque": {"driver": "d.example.com", "parameters": {}}}) == []
