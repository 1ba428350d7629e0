"""Field errors in Kubernetes' words."""

import pytest

from muster.apiserver.kinds import Cause
from muster.apiserver.strategies import fields


@pytest.mark.parametrize(
    ("cause", "type_", "message"),
    [
        pytest.param(fields.invalid("f", -1, "d"), "FieldValueInvalid", "Invalid value: -1: d", id="number"),
        pytest.param(fields.invalid("f", "a", "d"), "FieldValueInvalid", 'Invalid value: "a": d', id="text"),
        pytest.param(
            fields.invalid("f", None, "d"), "FieldValueInvalid", "Invalid value: null: d", id="null"
        ),
        pytest.param(
            fields.invalid("f", {"a": [1, 2]}, "d"),
            "FieldValueInvalid",
            'Invalid value: {"a":[1,2]}: d',
            id="objects are printed without spaces",
        ),
        pytest.param(fields.required("f"), "FieldValueRequired", "Required value", id="required"),
        pytest.param(fields.required("f", "d"), "FieldValueRequired", "Required value: d", id="and why"),
        pytest.param(
            fields.not_supported("f", "x", ("a", "b")),
            "FieldValueNotSupported",
            'Unsupported value: "x": supported values: "a", "b"',
            id="not supported",
        ),
        pytest.param(fields.duplicate("f", "x"), "FieldValueDuplicate", 'Duplicate value: "x"', id="twice"),
        pytest.param(
            fields.too_many("f", 2, 1),
            "FieldValueTooMany",
            "Too many: 2: must have at most 1 item",
            id="one item",
        ),
        pytest.param(
            fields.too_many("f", 9, 8),
            "FieldValueTooMany",
            "Too many: 9: must have at most 8 items",
            id="items",
        ),
        pytest.param(
            fields.too_long("f", 3), "FieldValueTooLong", "Too long: may not be more than 3 bytes", id="long"
        ),
        pytest.param(fields.not_found("f", "x"), "FieldValueNotFound", 'Not found: "x"', id="not found"),
    ],
)
def test_an_error_is_worded_as_stock_words_it(cause: Cause, type_: str, message: str) -> None:
    assert (cause.field, cause.type, cause.message) == ("f", type_, message)


def test_reading_gives_something_empty_where_a_client_sent_nothing_or_null() -> None:
    assert fields.mapping({"a": None}, "a") == {}
    assert fields.items({}, "a") == []
    assert fields.text({"a": 5}, "a") == ""


def test_keeping_a_field_removes_it_where_the_old_object_has_none() -> None:
    obj = {"a": 1, "b": 2}
    fields.keep_from(obj, {"a": 9}, "a")
    fields.keep_from(obj, {}, "b")
    assert obj == {"a": 9}
