"""CEL selectors of devices."""

import pytest
from tests.unit.cluster.device_objects import DRIVER, make_device

from muster.api.devices import Device, DeviceAttribute
from muster.placement.device_selectors import (
    Selector,
    SelectorError,
    find_attribute,
    selector_of,
    value_of,
)

GPU = Device(
    "gpu-0",
    {
        **(make_device("x", model="h100", index=3, ok=True).attributes or {}),
        "v": DeviceAttribute(version="1.10.0"),
        "other.com/x": DeviceAttribute(string="y"),
    },
    make_device("x").capacity,
)
OURS = f'device.attributes["{DRIVER}"]'
ROOM = f'device.capacity["{DRIVER}"].memory'
DOUBLED = '"aa"'
for _depth in range(14):
    DOUBLED = f"cel.bind(x{_depth}, {DOUBLED}, x{_depth} + x{_depth})"


@pytest.mark.parametrize(
    ("expression", "answer"),
    [
        (f'device.driver == "{DRIVER}"', True),
        (f'{OURS}.model == "h100" && {OURS}.index < 4 && {OURS}.ok', True),
        (f'{OURS}.model.startsWith("a")', False),
        ('device.attributes["other.com"].x == "y"', True),
        ('has(device.attributes["nowhere.com"].x)', False),
        (f'"model" in {OURS}', True),
        (f'{ROOM}.compareTo(quantity("40Gi")) >= 0', True),
        (f'{ROOM} == quantity("80Gi")', True),
        (f'{ROOM}.isLessThan(quantity("40Gi"))', False),
        (f'{ROOM}.sub(quantity("79Gi")).asInteger() == 1073741824', True),
        (f'{ROOM}.sign() == 1 && {ROOM}.isInteger() && isQuantity("1Gi") && !isQuantity("x")', True),
        (f'{OURS}.v.isGreaterThan(semver("1.9.0"))', True),
        ('semver("v1.02", true) == semver("1.2.0") && isSemver("v01", true)', True),
        ('isSemver("v1.2") || isSemver("1.2-x", true) || isSemver("x", true)', False),
        (f'{OURS}.v.major() == 1 && {OURS}.v.minor() == 10 && isSemver("1.2.3")', True),
        (f'["h100", "a100"].exists(model, model == {OURS}.model)', True),
        ("device.allowMultipleAllocations", False),
    ],
)
def test_expressions_read_devices_as_kubernetes_shows_them(expression: str, answer: bool) -> None:
    assert selector_of(expression).meets(DRIVER, GPU) is answer


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (f'{OURS}.nope == "x"', "CEL runtime error: no such key: nope"),
        ('device.attributes["nowhere.com"].nope == "x"', "CEL runtime error: no such key: nope"),
        ("1 + 1", "CEL expression gives int, not a bool"),
        (f'{ROOM}.compareTo(semver("1.0.0")) == 0', "CEL runtime error: Function 'compareTo' error"),
        ('quantity("many").isInteger()', "CEL runtime error: "),
        ("unknown(1)", "CEL runtime error: "),
    ],
)
def test_what_fails_on_a_device_says_so(expression: str, text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        selector_of(expression).meets(DRIVER, GPU)
    assert str(caught.value).startswith(text)


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        ("1 +", "CEL compile error: "),
        ("true || " * 2000 + "true", "longer than 10240 bytes"),
        ("[1].all(a, [1].all(b, [1].all(c, true)))", "more than 2 macros"),
        (DOUBLED, "more than 10000 times what it reads"),
        (f"[{'1,' * 200}1].all(a, [1].all(b, a == b))", "more than 10000 times what it reads"),
    ],
)
def test_what_cannot_be_read_or_could_take_long_is_refused(expression: str, text: str) -> None:
    with pytest.raises(SelectorError) as caught:
        Selector(expression)
    assert text in str(caught.value)


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        (f"{OURS}.model", ("string", "h100")),
        ("1 + 1", ("int", 2)),
        ("true", ("bool", True)),
        (f"{OURS}.v", value_of(DeviceAttribute(version="1.10.0"))),
    ],
)
def test_what_an_expression_says_compares_with_attributes(expression: str, value: object) -> None:
    assert selector_of(expression).value(DRIVER, GPU) == value


def test_lists_are_nothing_to_compare() -> None:
    with pytest.raises(SelectorError, match="gives list, not a bool, int, string or version"):
        selector_of("[1]").value(DRIVER, GPU)


def test_devices_that_differ_in_what_is_not_read_are_answered_once() -> None:
    selector = Selector(f'{OURS}.model == "h100"')
    assert all(selector.meets(DRIVER, make_device(f"g{i}", model="h100", index=i)) for i in range(5))
    assert len(selector._known) == 1
    assert not selector.meets(DRIVER, make_device("g9", model="a100", index=0))


@pytest.mark.parametrize(
    "expression",
    [
        f'{OURS}.exists(name, name.startsWith("nv"))',
        f"size({OURS}) > 1",
        f'("nv" + "link") in {OURS}',
        f'"nv" + "link" in {OURS}',
        f'cel.bind(every, {OURS}, ("nv" + "link") in every)',
        "has(device.attributes) && device.attributes.exists(domain, size(device.attributes[domain]) > 1)",
    ],
)
def test_an_expression_that_goes_through_all_attributes_is_answered_for_each_device(expression: str) -> None:
    selector = Selector(expression)
    assert selector.meets(DRIVER, make_device("a", model="h100", nvlink=2))
    assert not selector.meets(DRIVER, make_device("b", model="h100"))


def test_an_attribute_of_the_driver_s_own_may_lack_its_domain() -> None:
    found = find_attribute(DRIVER, GPU, f"{DRIVER}/model")
    assert found is not None
    assert value_of(found) == ("string", "h100")
    assert find_attribute(DRIVER, GPU, "other.com/model") is None
    assert find_attribute(DRIVER, GPU, "other.com/x") is not None
