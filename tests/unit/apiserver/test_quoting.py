"""Text of clients in messages."""

import pytest

from muster.apiserver.quoting import quoted, warning_headers


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("plain ä 😀", '"plain ä 😀"', id="as it is"),
        pytest.param('a"b\\c', r'"a\"b\\c"', id="quotes"),
        pytest.param("a\tb\nc", r'"a\tb\nc"', id="short escapes"),
        pytest.param("\x1b[31m\x7f", r'"\x1b[31m\x7f"', id="terminal escapes"),
        pytest.param("\x9b31m\u202e\u00a0", r'"\u009b31m\u202e\u00a0"', id="those beyond ASCII"),
        pytest.param("\U000e0001", r'"\U000e0001"', id="those beyond 16 bits"),
    ],
)
def test_text_is_quoted_as_go_quotes_it(text: str, shown: str) -> None:
    assert quoted(text) == shown


def test_warnings_are_headers() -> None:
    assert warning_headers(['a "b"', "c"]) == (("Warning", r'299 - "a \"b\""'), ("Warning", '299 - "c"'))


def test_long_warnings_are_cut_and_then_left_out() -> None:
    cut = warning_headers(["x" * 5000, "y" * 10])
    assert [len(value) for _, value in cut] == [256 + 8, 10 + 8]
    assert len(warning_headers([f"{number:300}" for number in range(100)])) == 16
    assert len(warning_headers(["x" * 300, "y" * 300])[0][1]) == 300 + 8
