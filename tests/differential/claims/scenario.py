"""What one seed of `--claims` means: nodes with devices and volumes, and pods that come one after the other.

Everything is in a short notation with plain names (`n0`, `k1`); `objects.py` makes API objects of it.  Comes
from `draw.py`; next: `rules.py`, which knows the selectors by name.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from msgspec import Struct

Short = dict[str, Any]
ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
PAIR, INDEX = "common.test/pair", "common.test/index"
MEMORY, LANES = CAPACITIES = ("memory", "lanes")  # of devices; memory in Gi
DRIVERS = ("a.test", "b.test")
DISK_DRIVER = "disk.test"
WAIT, NOW, MADE = (
    "wait",
    "now",
    "made",
)  # storage classes: WaitForFirstConsumer, Immediate, with a provisioner
SELECTED = "volume.kubernetes.io/selected-node"


class ClaimScenario(Struct, frozen=True):
    """One seed; the pods arrive one by one, all else is there before the first."""

    seed: int
    nodes: dict[str, Short]
    slices: list[Short]
    volumes: list[Short]
    storage: (
        Short  # what the class that provisions allows: zones, and room by zone where its driver counts it
    )
    claims: list[Short]
    disks: list[Short]
    pods: list[Short]
    taints: list[Short] = []  # by rules: pool, driver, and device where it is not all of them
    take: int = 0


class Rule(NamedTuple):
    """A selector by name: as CEL, and as a question about (driver, device) in the short notation."""

    expression: str
    holds: Callable[[str, Short], bool]


RULES: dict[str, Rule] = {
    "any": Rule("true", lambda driver, device: True),
    "a": Rule('device.driver == "a.test"', lambda driver, device: driver == "a.test"),
    "x": Rule(
        '"model" in device.attributes[device.driver] && device.attributes[device.driver].model == "x"',
        lambda driver, device: device.get("model") == "x",
    ),
    "big": Rule(
        'device.capacity[device.driver].memory.compareTo(quantity("20Gi")) >= 0',
        lambda driver, device: device["memory"] >= 20,
    ),
    "odd": Rule(
        'device.attributes["common.test"].index % 2 == 1', lambda driver, device: device["index"] % 2 == 1
    ),
    "new": Rule(
        'device.attributes[device.driver].version.isGreaterThan(semver("1.1.0"))',
        lambda driver, device: device["version"] != "1.1.0",
    ),
}
OTHER_WORDS = {"x": "x in other words", "new": "new in other words"}  # rules that say the same
RULES |= {
    "x in other words": RULES["x"]._replace(
        expression="cel.bind(mine, device.attributes[device.driver],"
        ' "model" in mine && mine.model.upperAscii().split("")[0] == "X")'
    ),
    "new in other words": RULES["new"]._replace(
        expression='device.attributes[device.driver].version.compareTo(semver("v1.01", true)) > 0'
    ),
}
CLASSES = {"dev": ("any",), "dev-a": ("a",), "dev-x": ("x",)}  # device classes: names of their rules
BACKING = "dev-x"  # the class that backs an extended resource; pods ask for that, or for the class by name
