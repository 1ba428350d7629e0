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

DEVICES_MAX, ADVANCED_DEVICES_MAX = 128, 64  # in one slice; where any has a taint or is cut from counters
COUNTER_SETS_MAX, COUNTERS_MAX = 8, 32
PARENT = "parent"  # the attribute of a part that names the device it is cut from
_DNS = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PROPERTY = re.compile(r"([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z_][A-Za-z0-9_]{0,31}")
_EFFECTS = ("NoSchedule", "NoExecute", "None")
_EXAMPLE = "write it like {driver: gpu.example.com, count: 8}"


class Taint(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    key: str
    effect: str
    value: str = ""


class Partition(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`count` like parts that may be cut from each device, called like it with -`name`-0, … behind.

    `counters` is what one of them takes of the device's.
    """

    name: str
    count: int
    counters: dict[str, str | int]
    attributes: dict[str, Any] = {}
    capacity: dict[str, str | int] = {}


class DeviceDescription(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """`count` like devices, called `name`-0, `name`-1, …

    `pool` is the node's name if it is not given.  `pairs` names an attribute that devices 0 and 1 have in
    common, 2 and 3, and so on.  Attributes are values, or objects like {version: 1.2.3}.  `counters` is what
    there is in each device to be cut into `partitions`; the whole device takes all of it.
    """

    driver: str
    count: int
    name: str = "device"
    pool: str = ""
    attributes: dict[str, Any] = {}
    capacity: dict[str, str | int] = {}
    pairs: str = ""
    taints: list[Taint] = []
    counters: dict[str, str | int] = {}
    partitions: list[Partition] = []


class Pool(Struct, frozen=True):
    """The devices that one node has of one driver, by the name of their pool, and what they are cut from."""

    driver: str
    name: str
    devices: list[Object]
    counter_sets: list[Object] = []


def read_pools(value: object, node_name: str, path: str) -> list[Pool]:
    """Give the pools of a node whose description of devices is `value`; `path` names the place it stands.

    Raises   ConfigError.
    """
    if value is None:
        return []
    if not isinstance(value, list):
        raise ConfigError(f"must be a list, got {value!r}", path=path, hint=_EXAMPLE)
    pools: dict[tuple[str, str], Pool] = {}
    for index, entry in enumerate(value):
        here = f"{path}[{index}]"
        described = _read(entry, here)
        _check(described, here)
        key = (described.driver, described.pool or node_name)
        known = pools.setdefault(key, Pool(*key, [], []))
        added = Pool(*key, _devices_of(described), _counter_sets_of(described))
        _check_room(known, added, here)
        pools[key] = Pool(*key, known.devices + added.devices, known.counter_sets + added.counter_sets)
    return list(pools.values())


def _check_room(known: Pool, added: Pool, path: str) -> None:
    """Whether a pool can have these devices as well."""
    together = known.devices + added.devices
    is_advanced = any(device.get("taints") or device.get("consumesCounters") for device in together)
    rooms = (
        ("devices", len(together), ADVANCED_DEVICES_MAX if is_advanced else DEVICES_MAX),
        ("divided devices", len(known.counter_sets + added.counter_sets), COUNTER_SETS_MAX),
    )
    for what, count, most in rooms:
        if count > most:
            raise ConfigError(
                f"pool {known.name!r} of {known.driver} would have {count} {what} of at most {most}",
                path=f"{path}.count",
                hint="lower it, or give some of them another pool",
            )
    names = {device["name"] for device in known.devices}
    twice = [device["name"] for device in added.devices if device["name"] in names]
    if twice:
        raise ConfigError(
            f"{twice[0]!r} is the name of another device of this pool",
            path=f"{path}.name",
            hint="give each entry of a pool a name of its own",
        )


def _read(entry: object, path: str) -> DeviceDescription:
    if not isinstance(entry, dict):
        raise ConfigError(f"must be an object, got {entry!r}", path=path, hint=_EXAMPLE)
    try:
        return msgspec.convert(entry, DeviceDescription)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise ConfigError(message, path=f"{path}{place.rstrip('`')}", hint=_nearest(message)) from error


def _nearest(message: str) -> str:
    types = (DeviceDescription, Taint, Partition)
    known = [field.name for type_ in types for field in msgspec.structs.fields(type_)]
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
    _check_properties(described, path)
    _check_partitions(described, path)
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


def _check_properties(described: DeviceDescription | Partition, path: str) -> None:
    for key in ("attributes", "capacity"):
        for name in getattr(described, key):
            _check_name(name, _PROPERTY, 96, f"{path}.{key}.{name}", "a name like model, or domain/model")
    for name, value in described.attributes.items():
        _attribute(value, f"{path}.attributes.{name}")
    for name, amount in described.capacity.items():
        _check_quantity(amount, f"{path}.capacity.{name}")
    for name, amount in described.counters.items():
        _check_name(name, _LABEL, 63, f"{path}.counters.{name}", "lower case letters, digits and dashes")
        _check_quantity(amount, f"{path}.counters.{name}")


def _check_partitions(described: DeviceDescription, path: str) -> None:
    if bool(described.counters) != bool(described.partitions):
        raise ConfigError(
            "counters and partitions go together",
            path=f"{path}.{'partitions' if described.counters else 'counters'}",
            hint="say what is in a device, like {slices: 7}, and what is cut from it",
        )
    if len(described.counters) > COUNTERS_MAX:
        raise ConfigError(f"more than {COUNTERS_MAX}", path=f"{path}.counters", hint="take some out")
    for index, part in enumerate(described.partitions):
        here = f"{path}.partitions[{index}]"
        _check_name(part.name, _LABEL, 40, f"{here}.name", "lower case letters, digits and dashes, like 1g")
        _check_properties(part, here)
        if not 1 <= part.count <= ADVANCED_DEVICES_MAX:
            most = f"must be between 1 and {ADVANCED_DEVICES_MAX}, got {part.count}"
            raise ConfigError(most, path=f"{here}.count")
        if not part.counters or not part.counters.keys() <= described.counters.keys():
            raise ConfigError(
                f"must be some of the device's counters: {', '.join(described.counters)}",
                path=f"{here}.counters",
            )
        if PARENT in part.attributes:
            raise ConfigError(
                "is the name of the device", path=f"{here}.attributes.{PARENT}", hint="leave it out"
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
            device["capacity"] = _values(described.capacity)
        if described.taints:
            device["taints"] = [msgspec.to_builtins(taint) for taint in described.taints]
        if described.counters:
            device["consumesCounters"] = [{"counterSet": name, "counters": _values(described.counters)}]
        found.append(device)
        found += [
            _part_of(device, part, index) for part in described.partitions for index in range(part.count)
        ]
    return found


def _part_of(device: Object, part: Partition, index: int) -> Object:
    """One part that may be cut from a device; it has the taints of the whole."""
    attributes = {name: _attribute(value, name) for name, value in part.attributes.items()}
    found: Object = {
        "name": f"{device['name']}-{part.name}-{index}",
        "attributes": {**attributes, PARENT: {"string": device["name"]}},
        "consumesCounters": [{"counterSet": device["name"], "counters": _values(part.counters)}],
    }
    if part.capacity:
        found["capacity"] = _values(part.capacity)
    if device.get("taints"):
        found["taints"] = device["taints"]
    return found


def _counter_sets_of(described: DeviceDescription) -> list[Object]:
    if not described.counters:
        return []
    return [{"name": name, "counters": _values(described.counters)} for name in _names_of(described)]


def _values(amounts: Mapping[str, str | int]) -> Object:
    return {name: {"value": str(amount)} for name, amount in amounts.items()}
