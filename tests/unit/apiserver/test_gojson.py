"""Bodies of JSON, and Go's words for what is not."""

import pytest

from muster.apiserver.gojson import JsonError, duplicates_of, parse


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        pytest.param(b"", "unexpected end of JSON input", id="nothing"),
        pytest.param(b'{"a": ', "unexpected end of JSON input", id="cut off"),
        pytest.param(b'{"a":1} x', "invalid character 'x' after top-level value", id="more after it"),
        pytest.param(b"{nope", "invalid character 'n' looking for beginning of object key string", id="key"),
        pytest.param(b'{"a" 1}', "invalid character '1' after object key", id="no colon"),
        pytest.param(b'{"a":1 2}', "invalid character '2' after object key:value pair", id="no comma"),
        pytest.param(b"[1 2]", "invalid character '2' after array element", id="array"),
        pytest.param(b"[1,]", "invalid character ']' looking for beginning of value", id="trailing comma"),
        pytest.param(b"trux", "invalid character 'x' in literal true (expecting 'e')", id="literal"),
        pytest.param(b'"\\q"', "invalid character 'q' in string escape code", id="escape"),
        pytest.param(b"NaN", "invalid character 'N' looking for beginning of value", id="not JSON's word"),
        pytest.param(b'"\x01"', "invalid character '\\x01' in string literal", id="control character"),
    ],
)
def test_what_is_not_json_is_refused_in_gos_words(raw: bytes, why: str) -> None:
    with pytest.raises(JsonError) as caught:
        parse(raw)
    assert str(caught.value) == why


def test_names_given_twice_are_remembered_by_object() -> None:
    document = parse(b'{"a": 1, "b": {"c": 1, "c": 2, "c": 3}, "a": 2}')
    assert document.value == {"a": 2, "b": {"c": 3}}
    assert document.twice == {id(document.value): ["a"], id(document.value["b"]): ["c", "c"]}


def test_an_untyped_reader_tells_them_with_their_paths() -> None:
    document = parse(b'{"a": [{"b": 1, "b": 2}], "c": {"d": {"e": 1, "e": 2}}, "c": {"d": {"e": 1, "e": 2}}}')
    assert duplicates_of(document) == [
        'duplicate field "c"',
        'duplicate field "a[0].b"',
        'duplicate field "c.d.e"',
    ]


def test_a_number_keeps_the_text_it_was_written_in() -> None:
    (number,) = parse(b"[1e3]").value
    assert (number, number.text) == (1000, "1e3")


def test_text_that_no_utf8_can_hold_becomes_the_replacement_character() -> None:
    assert parse(b'["\\ud800", "\xff"]').value == ["�", "�"]


def test_nesting_without_end_is_refused() -> None:
    with pytest.raises(JsonError, match="exceeded max depth"):
        parse(b"[" * 100_000)
