"""What a node file says of a node's devices, checked, and the devices that come of it.

In comes a list of descriptions, each of a number of like devices of one driver; out go devices as a
ResourceSlice holds them.  A mistake is a `ConfigError` that names the field and the cure.
Next: `device_driver.py`, which publishes them.  Source of the limits: resource.k8s.io/v1.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from muster.api.quantity import QuantityError, parse_quantity
from muster.api.versions import is_version
from muster.base.errors import ConfigError
from muster.controllers.ports import Object

DEVICES_MAX, TAINTED_DEVICES_MAX = 128, 64  # in one slice
_DNS = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PROPERTY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z_][A-Za-z0-9_]{0,31}")
_EFFECTS = ("NoSchedule", "NoExecute", "None")
_EXAMPLE = "write it like {driver: gpu.example.com, count: 8}"


class Taint(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    key: str
    effect: str
    value: str = ""


class DeviceDescription(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`count` like devices, called `name`-0, `name`-1, …

    `pool` is the node's name if it is not given.  `pairs` names an attribute that devices 0 and 1 have in
    common, 2 and 3, and so on.  Attributes are values, or objects like {version: 1.2.3}.
    """

    driver: str
    count: int
    name: str = "device"
    pool: str = ""
    attributes: dict[str, Any] = {}
    capacity: dict[str, str | int] = {}
    pairs: str = ""
    taints: list[Taint] = []


class Pool(Struct, frozen=True):
    """The devices that one node has of one driver, under the name of their pool."""

    driver: str
    name: str
    devices: list[Object]


def read_pools(value: object, node_name: str, path: str) -> list[Pool]:
    """Give the pools of a node whose description of devices is `value`; `path` names the place it stands.

    Raises   ConfigError.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfigError(f"must be a list, got {value!r}", path=path, hint=_EXAMPLE)
    devices: dict[tuple[str, str], list[Object]] = {}
    tainted: set[tuple[str, str]] = set()
    for index, entry in enumerate(value):
        here = f"{path}[{index}]"
        described = _read(entry, here)
        _check(described, here)
        key = (described.driver, described.pool or node_name)
        there = devices.setdefault(key, [])
        if described.taints:
            tainted.add(key)
        most = TAINTED_DEVICES_MAX if key in tainted else DEVICES_MAX
        if len(there) + described.count > most:
            count = len(there) + described.count
            raise ConfigError(
                f"pool {key[1]!r} of {key[0]} would have {count} devices of at most {most}",
                path=f"{here}.count",
                hint="lower it, or give some of them another pool",
            )
        names = {device["name"] for device in there}
        if any(name in names for name in _names_of(described)):
            raise ConfigError(
                f"{described.name!r} is the name of other devices of this pool",
                path=f"{here}.name",
                hint="give each entry of a pool a name of its own",
            )
        there.extend(_devices_of(described))
    return [Pool(driver, name, found) for (driver, name), found in devices.items()]


def _read(entry: object, path: str) -> DeviceDescription:
    if not isinstance(entry, dict):
        raise ConfigError(f"must be an object, got {entry!r}", path=path, hint=_EXAMPLE)
    try:
        return msgspec.convert(entry, DeviceDescription)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise ConfigError(message, path=f"{path}{place.rstrip('`')}", hint=_nearest(message)) from error


def _nearest(message: str) -> str:
    known = [field.name for type_ in (DeviceDescription, Taint) for field in msgspec.structs.fields(type_)]
    if "unknown field" not in message:
        return _EXAMPLE
    near = difflib.get_close_matches(message.partition("`")[2].rstrip("`"), known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known here: {', '.join(known)}"


def _check(described: DeviceDescription, path: str) -> None:
    _check_name(described.driver, _DNS, 63, f"{path}.driver", "a domain in lower case, like gpu.example.com")
    _check_name(described.name, _LABEL, 59, f"{path}.name", "lower case letters, digits and dashes, like gpu")
    if described.pool:
        _check_name(described.pool, _DNS, 190, f"{path}.pool", "lower case, like node-1; or leave it out")
    if not 1 <= described.count <= DEVICES_MAX:
        raise ConfigError(
            f"must be between 1 and {DEVICES_MAX}, got {described.count}",
            path=f"{path}.count",
            hint="a slice takes no more; give some of them another pool",
        )
    for key in ("attributes", "capacity"):
        for name in getattr(described, key):
            _check_name(name, _PROPERTY, 96, f"{path}.{key}.{name}", "a name like model, or domain/model")
    for name, value in described.attributes.items():
        _attribute(value, f"{path}.attributes.{name}")
    for name, amount in described.capacity.items():
        _check_quantity(amount, f"{path}.capacity.{name}")
    if described.pairs:
        _check_name(described.pairs, _PROPERTY, 96, f"{path}.pairs", "the name of an attribute, like pair")
        if described.pairs in described.attributes:
            raise ConfigError(
                f"{described.pairs!r} is among the attributes, too",
                path=f"{path}.pairs",
                hint="take it out of one of the two",
            )
    for index, taint in enumerate(described.taints):
        if taint.effect not in _EFFECTS:
            raise ConfigError(
                f"must be one of {', '.join(_EFFECTS)}, got {taint.effect!r}",
                path=f"{path}.taints[{index}].effect",
            )


def _check_name(name: str, form: re.Pattern[str], length_max: int, path: str, cure: str) -> None:
    if len(name) > length_max or not form.fullmatch(name):
        raise ConfigError(f"not a name: {name!r}", path=path, hint=cure)


def _check_quantity(amount: str | int, path: str) -> None:
    try:
        is_amount = parse_quantity(str(amount)) >= 0
    except QuantityError:
        is_amount = False
    if not is_amount:
        raise ConfigError(f"not a quantity: {amount!r}", path=path, hint="a number with a suffix, like 80Gi")


def _attribute(value: object, path: str) -> dict[str, object]:
    """The value of an attribute as a slice holds it, like {int: 3} or {version: 1.2.3}."""
    if isinstance(value, bool):
        return {"bool": value}
    if isinstance(value, int):
        return {"int": value}
    if isinstance(value, str):
        found: dict[str, object] = {"string": value}
    elif isinstance(value, dict) and set(value) == {"version"}:
        found = dict(value)
    else:
        raise ConfigError(
            f"not a value: {value!r}", path=path, hint="a word, a whole number, true, or {version: 1.2.3}"
        )
    text = str(next(iter(found.values())))
    if len(text.encode()) > 64:
        raise ConfigError("longer than 64 bytes", path=path, hint="shorten it")
    if "version" in found and not is_version(text):
        raise ConfigError(f"not a version: {text!r}", path=path, hint="three numbers, like 1.2.3")
    return found


def _names_of(described: DeviceDescription) -> Sequence[str]:
    return [f"{described.name}-{number}" for number in range(described.count)]


def _devices_of(described: DeviceDescription) -> list[Object]:
    shared: dict[str, Mapping[str, object]] = {
        name: _attribute(value, name) for name, value in described.attributes.items()
    }
    found = []
    for number, name in enumerate(_names_of(described)):
        pair = {described.pairs: {"int": number // 2}} if described.pairs else {}
        device: Object = {"name": name, "attributes": {**shared, **pair}}
        if described.capacity:
            device["capacity"] = {key: {"value": str(amount)} for key, amount in described.capacity.items()}
        if described.taints:
            device["taints"] = [msgspec.to_builtins(taint) for taint in described.taints]
        found.append(device)
    return found
