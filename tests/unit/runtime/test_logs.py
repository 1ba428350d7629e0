"""Log lines that cannot be broken by what others wrote."""

import logging
import sys

import msgspec
import pytest

from muster.api.devices import Device
from muster.placement.device_selectors import Selector, SelectorError
from muster.runtime.logs import LegibleFormatter, set_up_logging


def line_of(message: str, *arguments: object, error: bool = False) -> str:
    trouble = sys.exc_info() if error else None
    record = logging.LogRecord("muster", logging.INFO, "file", 1, message, arguments, trouble)
    return LegibleFormatter("%(levelname)s %(name)s: %(message)s").format(record)


def test_a_name_cannot_forge_a_line_or_steer_the_terminal() -> None:
    assert line_of("pod %s", "a\nERROR muster: \x1b[2J") == "INFO muster: pod a\\nERROR muster: \\x1b[2J"


def test_a_traceback_keeps_its_lines_and_shows_no_control_character() -> None:
    try:
        raise ValueError("one\x1b[2J")
    except ValueError:
        text = line_of("failed", error=True)
    assert text.startswith("INFO muster: failed\nTraceback")
    assert text.endswith("ValueError: one\\x1b[2J")


def test_an_expression_that_fails_on_devices_fills_no_log(caplog: pytest.LogCaptureFixture) -> None:
    set_up_logging(logging.DEBUG)
    selector = Selector("semver('x').isLessThan(semver('1.0.0'))")
    with pytest.raises(SelectorError, match="no semantic version"):
        selector.meets("drv.example.com", msgspec.convert({"name": "d"}, Device))
    assert caplog.text == ""
