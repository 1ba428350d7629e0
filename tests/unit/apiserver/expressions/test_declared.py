"""The functions that expressions may call."""

from muster.apiserver.expressions.declared import functions
from muster.apiserver.expressions.types import BOOL, INT, STRING, Type, list_of


def test_what_stands_before_the_dot_is_the_first_argument_of_a_method() -> None:
    found_all = functions()["charAt"]
    assert [(found.is_method, found.arguments, found.result) for found in found_all] == [
        (True, (STRING, INT), STRING)
    ]


def test_a_namespace_is_part_of_the_name() -> None:
    (found,) = functions()["sets.contains"]
    assert not found.is_method
    assert found.arguments == (list_of(Type("A")), list_of(Type("A")))


def test_a_function_may_be_a_method_of_several_types() -> None:
    assert {found.arguments[0].name for found in functions()["isLessThan"]} == {
        "kubernetes.Quantity",
        "kubernetes.Semver",
    }


def test_numbers_compare_with_numbers_of_other_kinds() -> None:
    pairs = {found.arguments for found in functions()["_<_"]}
    assert (INT, Type("double")) in pairs
    assert (STRING, INT) not in pairs
    assert all(found.result == BOOL for found in functions()["_<_"])
