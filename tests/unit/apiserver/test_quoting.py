"""Text of clients in messages."""

import pytest

from muster.apiserver.quoting import quoted


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
