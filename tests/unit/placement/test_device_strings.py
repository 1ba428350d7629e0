"""Functions for texts, and `cel.bind`, in selectors of devices."""

import pytest
from tests.unit.cluster.device_objects import DRIVER, make_device

from muster.placement.device_selectors import SelectorError, selector_of
from muster.placement.device_strings import without_bindings

DEVICE = make_device("gpu-0", model="H100-80", pair=3)
MINE = f'device.attributes["{DRIVER}"]'


def meets(expression: str) -> bool:
    return selector_of(expression).meets(DRIVER, DEVICE)


@pytest.mark.parametrize(
    "expression",
    [
        f'{MINE}.model.lowerAscii() == "h100-80"',
        '"aÄ".upperAscii() == "AÄ"',
        f'{MINE}.model.split("-") == ["H100", "80"]',
        '"a-b-c".split("-", 2) == ["a", "b-c"] && "ab".split("") == ["a", "b"] && "ab".split("", 0) == []',
        '"abc".split("", 2) == ["a", "bc"]',
        f'{MINE}.model.substring(5) == "80" && {MINE}.model.substring(0, 4) == "H100"',
        '"a-b-c".replace("-", "") == "abc" && "a-b-c".replace("-", "", 1) == "ab-c"',
        '"abcabc".indexOf("b") == 1 && "abcabc".indexOf("b", 2) == 4 && "abc".indexOf("x") == -1',
        '"abcabc".lastIndexOf("b") == 4 && "abcabc".lastIndexOf("b", 3) == 1 && "a".lastIndexOf("x") == -1',
        "[1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2 && [1].indexOf(3) == -1",
        '"abc".charAt(1) == "b" && "abc".charAt(3) == ""',
        '" a ".trim() == "a" && ["a", "b"].join("-") == "a-b" && ["a", "b"].join() == "ab"',
        f"cel.bind(mine, {MINE}, mine.pair == 3 && mine.model.startsWith('H'))",
        f'cel.bind(a, {MINE}.pair, cel.bind(b, a + 1, b == 4 && "cel.bind(x" != "," && [a, b].size() == 2))',
    ],
)
def test_texts_are_read_as_kubernetes_reads_them(expression: str) -> None:
    assert meets(expression)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ('"abc".substring(2, 1) == ""', "invalid substring range: start 2, end 1"),
        ('"abc".substring(4) == ""', "index out of range: 4"),
        ('"abc".charAt(-1) == ""', "index out of range: -1"),
        ("cel.bind(a, 1, a.b == 2", "CEL compile error"),
        ('"a"' + '.replace("", "aaaa")' * 9 + ' == ""', "longer than 10240 characters"),
        (f'"{"a" * 200}".split("").join("{"b" * 100}") == ""', "longer than 10240 characters"),
    ],
)
def test_what_cannot_be_says_so(expression: str, text: str) -> None:
    with pytest.raises(SelectorError, match=text):
        meets(expression)


@pytest.mark.parametrize(
    "expression",
    ['device.driver == "cel.bind(a, b, c)"', "bind == 1", "cel.bind(a, b)", "my.cel.bind(a, b, c)"],
)
def test_what_binds_nothing_stays_as_it_is(expression: str) -> None:
    assert without_bindings(expression) == expression
