"""Types, and what stands for their parameters."""

import pytest

from muster.apiserver.expressions.types import (
    DYN,
    INT,
    NULL,
    STRING,
    Solution,
    TooHard,
    Type,
    check_size,
    list_of,
    long_name,
    map_of,
    more_general,
    read_type,
    told,
)


def test_a_type_is_read_and_told_again() -> None:
    text = "map(string, list(optional_type(A)))"
    assert told(read_type(text)) == text


def test_the_long_names_are_those_of_protobuf() -> None:
    assert long_name(list_of(Type("any"))) == "list(google.protobuf.Any)"


@pytest.mark.parametrize(
    ("one", "other", "fits"),
    [
        ("int", "int", True),
        ("int", "string", False),
        ("int", "dyn", True),
        ("list(any)", "list(int)", True),
        ("list(int)", "map(int, int)", False),
        ("null", "timestamp", True),
        ("null", "kubernetes.Quantity", True),
        ("null", "int", False),
        ("type(int)", "type(string)", True),
        ("map(A, A)", "map(string, int)", False),
        ("map(A, B)", "map(string, int)", True),
    ],
)
def test_a_type_fits_where_it_may_stand(one: str, other: str, fits: bool) -> None:
    assert Solution().fits([read_type(one)], [read_type(other)]) is fits


def test_what_fits_says_what_parameters_stand_for() -> None:
    solution = Solution()
    assert solution.fits([STRING, map_of(STRING, INT)], [Type("A"), map_of(Type("A"), Type("B"))])
    assert solution.filled(list_of(Type("B"))) == list_of(INT)


def test_what_does_not_fit_leaves_no_trace() -> None:
    solution = Solution()
    assert not solution.fits([INT, STRING], [Type("A"), Type("A")])
    assert solution.filled(Type("A"), rest=DYN) == DYN


def test_a_parameter_stands_for_nothing_that_holds_it() -> None:
    assert not Solution().fits([list_of(Type("A"))], [Type("A")])


def test_of_two_types_that_fit_the_one_that_says_less_is_kept() -> None:
    assert more_general(list_of(INT), list_of(DYN)) == list_of(DYN)
    assert more_general(INT, NULL) == NULL


def test_types_that_double_are_too_hard() -> None:
    type_ = INT
    for _ in range(12):
        type_ = map_of(type_, type_)
    with pytest.raises(TooHard):
        check_size(type_)


def test_parameters_that_double_are_too_hard() -> None:
    solution = Solution()
    for index in range(40):
        assert solution.fits([map_of(Type(f"_a{index + 1}"), Type(f"_a{index + 1}"))], [Type(f"_a{index}")])
    with pytest.raises(TooHard):
        solution.filled(Type("_a0"))
