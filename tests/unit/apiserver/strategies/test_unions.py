"""Exactly one member."""

from muster.apiserver.strategies.unions import validate_kept, validate_union

MEMBERS = ("basic", "gang")


def messages(value: dict[str, object]) -> list[str]:
    return [cause.message for cause in validate_union("p", value, MEMBERS)]


def test_one_member_is_right_even_an_empty_one() -> None:
    assert messages({"basic": {}}) == []


def test_none_is_told_the_choice() -> None:
    assert messages({}) == ['Invalid value: "": must specify one of: `basic`, `gang`']


def test_an_empty_list_is_no_member() -> None:
    assert messages({"basic": []}) == messages({})


def test_two_are_told_which() -> None:
    assert messages({"basic": {}, "gang": {}}) == [
        'Invalid value: "{basic, gang}": must specify exactly one of: `basic`, `gang`'
    ]


def test_a_kept_field_neither_comes_nor_goes_but_may_change() -> None:
    assert validate_kept("p", {}, None)[0].message == "Invalid value: null: field cannot be set once created"
    assert validate_kept("p", None, {})[0].message == "Invalid value: null: field cannot be cleared once set"
    assert validate_kept("p", {"a": 1}, {"a": 2}) == []
