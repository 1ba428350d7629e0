"""Text that a terminal shows as it is."""

import pytest

from muster.base.printing import printable


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("node-1: 4 × cpu", "node-1: 4 × cpu", id="what-is-printable-stays"),
        pytest.param("a\x1b[31mb", "a\\x1b[31mb", id="escape-sequence"),
        pytest.param("a\nb\tc\r", "a\\nb\\tc\\r", id="line-breaks"),
        pytest.param("a\u202eb", "a\\u202eb", id="mark-that-turns-the-direction"),
        pytest.param("a\x9b2Jb", "a\\x9b2Jb", id="control-of-eight-bits"),
        pytest.param("a\ud800b", "a\\ud800b", id="lone-surrogate"),
    ],
)
def test_what_is_not_printable_is_escaped(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_a_text_is_cut_to_the_length_asked_for() -> None:
    assert printable("abcdef", longest=4) == "abc…"
    assert printable("abcd", longest=4) == "abcd"
