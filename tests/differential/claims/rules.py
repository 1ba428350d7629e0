"""Which nodes can take a pod with claims, found by trying everything: the slow checker of `--claims`.

Shares nothing with Muster.  In comes a scenario and what is given away already; out comes a plain yes or no
for a node, and what the requests of its claims would get first.  Next: `judge.py`.
"""

from collections.abc import Iterator
from itertools import combinations

from msgspec import Struct
from tests.differential.claims.parts import Device, Given, Parts, share_of
from tests.differential.claims.scenario import (
    BACKING,
    BETA_ZONE,
    CLASSES,
    DISK_DRIVER,
    MADE,
    NOW,
    RULES,
    WAIT,
    ZONE,
    ClaimScenario,
    Short,
)

TRIES_MAX = 200_000


class TooLarge(Exception):
    """There are too many ways to try."""


class State(Struct, frozen=True):
    """What is given away: pods to nodes, devices to claims, volumes to disks.

    `volumes`: disk → the volume it has, or "" for one that was made for the node in `made_on`.
    """

    places: dict[str, str] = {}
    allocated: dict[str, list[Given]] = {}
    volumes: dict[str, str] = {}
    made_on: dict[str, str] = {}

    @property
    def taken(self) -> set[Device]:
        """The devices that somebody has whole."""
        return {given.device for given in self.given if given.share is None and not given.admin}

    @property
    def given(self) -> list[Given]:
        """All devices and shares that claims have."""
        return [given for found in self.allocated.values() for given in found]


def takes(
    scenario: ClaimScenario,
    state: State,
    pod: Short,
    node: str,
    *,
    zones: bool = True,
    admins_keep: bool = False,
) -> bool:
    """Whether the node can take the pod; without `zones`, labels of volumes that nobody has say nothing.

    `admins_keep`: what a request with admin access has, no later claim of the pod gets.  Raises   TooLarge.
    """
    short = scenario.nodes[node]
    there = [each for each in scenario.pods if state.places.get(each["pod"]) == node]
    if sum(each["cpu"] for each in there) + pod["cpu"] > short["cpu"]:
        return False
    if "zone" in pod and short["labels"]["zone"] != pod["zone"]:
        return False
    if is_offered(scenario, pod, node):
        of_node = [each["asks"]["count"] for each in (*there, pod) if is_offered(scenario, each, node)]
        if sum(of_node) > short["offers"]:
            return False
    return (
        _disks_fit(scenario, state, pod, node, zones=zones)
        and first_way(scenario, state, pod, node, admins_keep=admins_keep) is not None
    )


def is_offered(scenario: ClaimScenario, pod: Short, node: str) -> bool:
    """Whether the node itself offers the extended resource that the pod asks for."""
    return pod.get("asks", {}).get("by") == "name" and "offers" in scenario.nodes[node]


def claim_instead(scenario: ClaimScenario, pod: Short, node: str) -> Short | None:
    """The claim that is to be made there in place of the pod's extended resource."""
    if "asks" not in pod or is_offered(scenario, pod, node):
        return None
    place = int(pod["asks"]["by"] == "class")  # of the resource's name among those asked for, beside cpu
    request = {"name": f"container-0-request-{place}", "class": BACKING, "count": pod["asks"]["count"]}
    return {"claim": f"{pod['pod']}-instead", "requests": [request]}


# ── volumes ──────────────────────────────────────────────────────────────────────────────────────


def disks_of(scenario: ClaimScenario, pod: Short) -> list[Short]:
    """The claims for volumes of a pod, that of its ephemeral volume with its name."""
    known = {short["disk"]: short for short in scenario.disks}
    found = [known[name] for name in pod.get("disks", ())]
    if "ephemeral" in pod:
        found.append({**pod["ephemeral"], "disk": f"{pod['pod']}-e"})
    return found


def reaches(scenario: ClaimScenario, volume: Short, node: str, *, zones: bool = True) -> bool:
    """Whether a node reaches a volume, by its affinity and (`zones`) by the zones on its labels."""
    labels = scenario.nodes[node]["labels"]
    if "node" in volume and volume["node"] != node:
        return False
    if "zone" in volume and volume["zone"] != labels["zone"]:
        return False
    if not zones or not labels.keys() & {ZONE, BETA_ZONE}:
        return True
    said = {key: volume.get("labels", {}).get(key) for key in (ZONE, BETA_ZONE)}
    there = {ZONE: labels.get(ZONE), BETA_ZONE: labels.get(BETA_ZONE, labels.get(ZONE))}
    return all(value is None or there[key] in value.split("__") for key, value in said.items())


def suits(volume: Short, disk: Short) -> bool:
    """Whether a volume is what a claim asks for."""
    return (
        volume["class"] == disk["class"]
        and volume["size"] >= disk["size"]
        and disk["mode"] in volume["modes"]
        and disk.get("tier") in (None, volume.get("labels", {}).get("tier"))
    )


def can_make(scenario: ClaimScenario, disk: Short, node: str) -> bool:
    """Whether the provisioner may make it there and says that it has room."""
    zone = scenario.nodes[node]["labels"]["zone"]
    if zone not in scenario.storage.get("zones", (zone,)):
        return False
    room = scenario.storage.get("room")
    return room is None or room.get(zone, 0) >= disk["size"]


def _disks_fit(scenario: ClaimScenario, state: State, pod: Short, node: str, *, zones: bool) -> bool:
    known = {short["volume"]: short for short in scenario.volumes}
    still_open = []
    disks = disks_of(scenario, pod)
    for disk in disks:
        name = disk["disk"]
        users = [
            each for each in scenario.pods if name in each.get("disks", ()) and each["pod"] in state.places
        ]
        if disk["mode"] == "ReadWriteOncePod" and users:
            return False
        if state.volumes.get(name):
            if not reaches(scenario, known[state.volumes[name]], node):
                return False
        elif name in state.volumes:
            if state.made_on[name] != node:
                return False
        elif disk["class"] == MADE:
            if not can_make(scenario, disk, node):
                return False
        elif disk["class"] == WAIT:
            still_open.append(disk)
        else:
            return False
    free = [short for short in scenario.volumes if short["volume"] not in state.volumes.values()]
    usable = [
        short for short in free if short["class"] != NOW and reaches(scenario, short, node, zones=zones)
    ]
    return _attaches(scenario, state, disks, node) and _can_match(still_open, usable)


def _can_match(disks: list[Short], volumes: list[Short]) -> bool:
    if not disks:
        return True
    first, *rest = disks
    return any(
        suits(volume, first) and _can_match(rest, [each for each in volumes if each is not volume])
        for volume in volumes
    )


def _attaches(scenario: ClaimScenario, state: State, disks: list[Short], node: str) -> bool:
    """Whether the node may attach what is new to it; of a driver that demands it, only where it runs."""
    limit = scenario.nodes[node].get("limit")
    there = [each for each in scenario.pods if state.places.get(each["pod"]) == node]
    attached = {entry for each in there for entry in _attached(scenario, state, disks_of(scenario, each))}
    new = set(_attached(scenario, state, disks))
    if "demands" in scenario.storage and limit is None and any(driver == MADE for driver, _ in new):
        return False
    if limit is None:
        return True
    for driver in {driver for driver, _ in new - attached}:
        if sum(each == driver for each, _ in new | attached) > limit:
            return False
    return True


def _attached(scenario: ClaimScenario, state: State, disks: list[Short]) -> Iterator[tuple[str, str]]:
    """Driver and volume; what is still to be chosen among volumes that exist counts for nothing."""
    known = {short["volume"]: short for short in scenario.volumes}
    for disk in disks:
        volume = known.get(state.volumes.get(disk["disk"], ""))
        if volume is not None and "driver" in volume:
            yield DISK_DRIVER, volume["volume"]
        elif volume is None and disk["class"] == MADE:
            yield MADE, disk["disk"]


# ── devices ──────────────────────────────────────────────────────────────────────────────────────


def offers_on(scenario: ClaimScenario, node: str) -> tuple[list[tuple[Device, Short]], bool]:
    """The devices that a node reaches, of whole pools alone, and whether all its pools are whole."""
    pools: dict[tuple[str, str], list[Short]] = {}
    for short in scenario.slices:
        pools.setdefault((short["driver"], short["pool"]), []).append(short)
    found: list[tuple[Device, Short]] = []
    whole, parts = True, Parts(scenario)
    for (driver, pool), slices in sorted(pools.items()):
        newest = max(short["generation"] for short in slices)
        current = [short for short in slices if short["generation"] == newest]
        reached = [
            ((driver, pool, device["device"]), _tainted(scenario, driver, pool, device))
            for short in current
            for device in short["devices"]
            if _is_reached(scenario, short, device, node)
        ]
        if len(current) == current[0]["of"] and parts.is_sound(driver, pool):
            found += reached
        elif reached:
            whole = False
    return found, whole


def _tainted(scenario: ClaimScenario, driver: str, pool: str, device: Short) -> Short:
    """The device with what rules put on it."""
    effects = [
        rule["effect"]
        for rule in scenario.taints
        if (rule["driver"], rule["pool"]) == (driver, pool) and rule.get("device") in (None, device["device"])
    ]
    return device | {"taint": "NoSchedule"} if {"NoSchedule", "NoExecute"} & {*effects} else device


def _is_reached(scenario: ClaimScenario, short: Short, device: Short, node: str) -> bool:
    if "zone" in short:
        return bool(short["zone"] == scenario.nodes[node]["labels"]["zone"])
    return bool((device if "each" in short else short)["node"] == node)


def may_have(request: Short, driver: str, device: Short) -> bool:
    """Whether a device is of the class, meets the selectors and has what is needed of it, taints apart."""
    rules = (*CLASSES[request["class"]], *request.get("rules", ()))
    if share_of(device, request.get("needs", {})) is None:
        return False
    return all(RULES[rule].holds(driver, device) for rule in rules)


def bears(request: Short, device: Short) -> bool:
    return device.get("taint") != "NoSchedule" or "tolerates" in request


def keeps(claim: Short, devices: list[Short]) -> bool:
    """Whether the devices of a claim match, or differ, as it wants."""
    for word in ("match", "distinct"):
        if word in claim:
            values = [device.get(claim[word].removeprefix("common.test/")) for device in devices]
            wanted = 1 if word == "match" else len(values)
            if None in values or (values and len(set(values)) != wanted):
                return False
    return True


def first_way(
    scenario: ClaimScenario, state: State, pod: Short, node: str, *, admins_keep: bool = False
) -> dict[str, list[Given]] | None:
    """What the open claims would get there first, or None where there is no way.  Raises   TooLarge."""
    offers, whole = offers_on(scenario, node)
    reached = {device for device, _ in offers}
    known = {short["claim"]: short for short in scenario.claims}
    still_open = []
    for name in pod.get("claims", ()):
        if name in state.allocated:
            if not {given.device for given in state.allocated[name]} <= reached:
                return None
        else:
            still_open.append(known[name])
    instead = claim_instead(scenario, pod, node)
    if instead is not None:
        still_open.append(instead)
    if any(each["class"] == "missing" for claim in still_open for each in requests_of(claim).values()):
        return None
    tries = _Tries(offers, state, Parts(scenario), whole=whole, admins_keep=admins_keep)
    return tries.run(still_open)


def requests_of(claim: Short) -> dict[str, Short]:
    """Every request and alternative by the name that results have."""
    found = {}
    for request in claim["requests"]:
        if "first" in request:
            found |= {f"{request['name']}/{each['name']}": each for each in request["first"]}
        else:
            found[request["name"]] = request
    return found


class _Tries:
    """Every way in turn: claims, their requests, alternatives, devices."""

    def __init__(
        self,
        offers: list[tuple[Device, Short]],
        state: State,
        parts: Parts,
        *,
        whole: bool,
        admins_keep: bool,
    ) -> None:
        self._admins_keep = admins_keep
        self._offers = offers
        self._whole = whole
        self._taken = state.taken
        self._given = state.given
        self._parts = parts
        self._left = TRIES_MAX

    def run(self, claims: list[Short]) -> dict[str, list[Given]] | None:
        """Depth first over the claims."""
        if not claims:
            return {}
        first, *rest = claims
        for found in self._ways(first, first["requests"], []):
            chosen = [given for given, _ in found]
            kept = {given.device for given in chosen if self._admins_keep or not given.admin}
            mine = kept - self._taken - {given.device for given in chosen if given.share is not None}
            self._taken |= mine
            self._given += chosen
            others = self.run(rest)
            self._taken -= mine
            self._given = self._given[: len(self._given) - len(chosen)]
            if others is not None:
                return {first["claim"]: [given for given, _ in found], **others}
        return None

    def _ways(
        self, claim: Short, requests: list[Short], given: list[tuple[Given, Short]]
    ) -> Iterator[list[tuple[Given, Short]]]:
        self._left -= 1
        if self._left < 0:
            raise TooLarge
        if not requests:
            yield given
            return
        first, *rest = requests
        for name, wanted in requests_of({"requests": [first]}).items():
            mine = {each.device for each, _ in given if each.share is None}
            for chosen in self._sets(name, wanted, mine):
                together = [*given, *chosen]
                so_far = [*self._given, *(each for each, _ in together)]
                if keeps(claim, [device for _, device in together]) and self._parts.are_enough(so_far):
                    yield from self._ways(claim, rest, together)

    def _sets(self, name: str, wanted: Short, mine: set[Device]) -> Iterator[list[tuple[Given, Short]]]:
        admin = "admin" in wanted
        fitting = [(key, device) for key, device in self._offers if may_have(wanted, key[0], device)]
        free = [
            (_give(name, key, wanted, device), device)
            for key, device in fitting
            if bears(wanted, device) and key not in mine and (admin or key not in self._taken)
        ]
        if wanted["count"] != "All":
            yield from map(list, combinations(free, wanted["count"]))
        elif fitting and self._whole and len(free) == len(fitting):
            yield free


def _give(name: str, key: Device, wanted: Short, device: Short) -> Given:
    share = share_of(device, wanted.get("needs", {})) if "shared" in device else None
    return Given(name, key, "admin" in wanted, share)
