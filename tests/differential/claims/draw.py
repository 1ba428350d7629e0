"""A random scenario of volumes, devices and claims from a seed: small enough to try every assignment.

Drawn so that about half of the pods fit: claims share devices and volumes that are short.
"""

import random
from collections.abc import Callable

from tests.differential.claims.scenario import (
    BETA_ZONE,
    CLASSES,
    DISK_DRIVER,
    DRIVERS,
    INDEX,
    MADE,
    NOW,
    PAIR,
    WAIT,
    ZONE,
    ClaimScenario,
    Short,
)

ONE, MANY, ALONE = "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"
SELECTORS = ("x", "big", "odd", "new", "a")


def draw_scenario(seed: int, about: str | None = None) -> ClaimScenario:
    """The scenario of this seed, always the same; `about`: of "devices" or "volumes" alone, or "both"."""
    draw = random.Random(f"claims {seed}")
    nodes = {f"n{number}": _node(draw, number) for number in range(draw.randint(2, 4))}
    drawn = draw.choices(("devices", "volumes", "both"), (45, 40, 15))[0]
    about = about or drawn
    slices = _slices(draw, list(nodes)) if about != "volumes" else []
    volumes = [_volume(draw, number, list(nodes)) for number in range(draw.randint(2, 6))]
    storage = _storage(draw)
    claims: list[Short] = []
    disks: list[Short] = []
    pods = []
    for number in range(draw.randint(2, 5)):
        pod: Short = {"pod": f"x{number}", "cpu": draw.randint(1, 3)}
        if draw.random() < 0.15:
            pod["zone"] = draw.choice(("z0", "z1"))
        if about != "volumes":
            pod["claims"] = _claims_for(draw, claims)
        if about != "devices":
            pod["disks"] = _disks_for(draw, disks)
            if draw.random() < 0.15:
                pod["ephemeral"] = _disk(draw, "", (60, 0, 40, 0))
        pods.append(pod)
    more = random.Random(f"more of claims {seed}")
    taints = _add_more(more, nodes, slices, pods) if about != "volumes" else []
    volumes = volumes if about != "devices" else []
    return ClaimScenario(seed, nodes, slices, volumes, storage, claims, disks, pods, taints)


def _add_more(
    draw: random.Random, nodes: dict[str, Short], slices: list[Short], pods: list[Short]
) -> list[Short]:
    """Extended resources that a class backs, and taints by rules; what is drawn elsewhere stays as it is."""
    if draw.random() < 0.4:
        for pod in pods:
            if draw.random() < 0.5:
                count = draw.choices((1, 2, 3), (60, 30, 10))[0]
                pod["asks"] = {"by": draw.choice(("name", "name", "class")), "count": count}
        for node in nodes.values():
            if draw.random() < 0.25:
                node["offers"] = draw.randint(1, 3)
    taints: list[Short] = []
    for number in range(draw.choices((0, 1, 2), (75, 18, 7))[0] if slices else 0):
        short = draw.choice(slices)
        rule: Short = {"rule": f"t{number}", "driver": short["driver"], "pool": short["pool"]}
        # not NoExecute: kube-controller-manager evicts whoever tolerates it without naming the effect
        rule["effect"] = draw.choice(("NoSchedule", "NoSchedule", "NoSchedule", "None"))
        if short["devices"] and draw.random() < 0.7:
            rule["device"] = draw.choice(short["devices"])["device"]
        taints.append(rule)
    return taints


# ── nodes, devices ───────────────────────────────────────────────────────────────────────────────


def _node(draw: random.Random, number: int) -> Short:
    node: Short = {"cpu": draw.randint(3, 7), "labels": {"zone": f"z{number % 2}"}}
    kind = draw.choices((ZONE, BETA_ZONE, None), (60, 10, 30))[0]
    if kind is not None:
        node["labels"][kind] = f"z{number % 2}"
    if draw.random() < 0.5:
        node["limit"] = draw.randint(1, 2)
    return node


def _slices(draw: random.Random, nodes: list[str]) -> list[Short]:
    found: list[Short] = []
    for node in nodes:
        for driver in DRIVERS:
            if draw.random() < (0.75 if driver == "a.test" else 0.3):
                found += _pool(draw, node, driver)
    if draw.random() < 0.3:
        devices = [_device(draw, index) for index in range(draw.randint(1, 2))]
        found.append(_slice("shared", DRIVERS[0], "shared", devices) | {"zone": draw.choice(("z0", "z1"))})
    if draw.random() < 0.2:
        devices = [_device(draw, index) | {"node": draw.choice(nodes)} for index in range(2)]
        found.append(_slice("each", DRIVERS[1], "each", devices) | {"each": True})
    return found


def _slice(
    name: str, driver: str, pool: str, devices: list[Short], generation: int = 1, of: int = 1
) -> Short:
    said = {"slice": name, "driver": driver, "pool": pool, "generation": generation, "of": of}
    return said | {"devices": devices}


def _pool(draw: random.Random, node: str, driver: str) -> list[Short]:
    """The devices of one driver on one node; now and then in two slices, not whole, or with an old one."""
    devices = [_device(draw, index) for index in range(draw.randint(1, 5))]
    name = f"{node}-{driver[0]}"
    odd = draw.choices(("plain", "two", "missing", "old"), (76, 10, 7, 7))[0]
    if odd == "two":
        half = len(devices) // 2
        parts = [devices[:half], devices[half:]]
        found = [_slice(f"{name}-{index}", driver, node, part, of=2) for index, part in enumerate(parts)]
    elif odd == "missing":
        found = [_slice(name, driver, node, devices, of=2)]
    elif odd == "old":
        old = [_device(draw, index) for index in range(3)]
        found = [_slice(f"{name}-old", driver, node, old), _slice(name, driver, node, devices, generation=2)]
    else:
        found = [_slice(name, driver, node, devices)]
    return [short | {"node": node} for short in found]


def _device(draw: random.Random, index: int) -> Short:
    device: Short = {"device": f"d{index}", "index": index, "memory": draw.choice((10, 20, 40))}
    device["version"] = draw.choice(("1.1.0", "1.2.0", "2.0.0"))
    if draw.random() < 0.85:
        device["model"] = draw.choice("xxy")
    if draw.random() < 0.85:
        device["pair"] = index // 2
    if draw.random() < 0.12:
        device["taint"] = draw.choice(("NoSchedule", "NoSchedule", "None"))
    return device


# ── claims for devices ───────────────────────────────────────────────────────────────────────────


def _claims_for(draw: random.Random, claims: list[Short]) -> list[str]:
    count = draw.choices((0, 1, 2), (10, 65, 25))[0]
    return _some(draw, count, claims, "claim", lambda: _claim(draw, f"k{len(claims)}"))


def _some(
    draw: random.Random, count: int, known: list[Short], key: str, make: Callable[[], Short]
) -> list[str]:
    """The names of so many, now and then of one that others have."""
    names: list[str] = []
    for _ in range(count):
        shared = [each[key] for each in known if each[key] not in names]
        if shared and draw.random() < 0.2:
            names.append(draw.choice(shared))
            continue
        known.append(make())
        names.append(known[-1][key])
    return names


def _claim(draw: random.Random, name: str) -> Short:
    requests = [_request(draw, f"r{index}") for index in range(draw.choices((1, 2), (75, 25))[0])]
    claim: Short = {"claim": name, "requests": requests}
    for word, rate in (("match", 0.3), ("distinct", 0.12)):
        if draw.random() < rate:
            claim[word] = draw.choice((PAIR, PAIR, INDEX))
    return claim


def _request(draw: random.Random, name: str) -> Short:
    if draw.random() < 0.2:
        return {"name": name, "first": [_wanted(draw) | {"name": f"s{index}"} for index in range(2)]}
    wanted = _wanted(draw)
    if draw.random() < 0.06:
        wanted["admin"] = True
    return wanted | {"name": name}


def _wanted(draw: random.Random) -> Short:
    wanted: Short = {"class": draw.choice([*CLASSES, "dev"])}
    if draw.random() < 0.02:
        wanted["class"] = "missing"
    wanted["count"] = draw.choices((1, 2, 3, "All"), (50, 28, 10, 12))[0]
    if draw.random() < 0.4:
        wanted["rules"] = [draw.choice(SELECTORS)]
    if draw.random() < 0.2:
        wanted["tolerates"] = True
    return wanted


# ── volumes ──────────────────────────────────────────────────────────────────────────────────────


def _storage(draw: random.Random) -> Short:
    storage: Short = {}
    if draw.random() < 0.3:
        storage["zones"] = [draw.choice(("z0", "z1"))]
    if draw.random() < 0.4:
        storage["room"] = {zone: draw.randint(1, 5) for zone in ("z0", "z1") if draw.random() < 0.8}
    if draw.random() < 0.2:
        storage["demands"] = True
    return storage


def _volume(draw: random.Random, number: int, nodes: list[str]) -> Short:
    volume: Short = {
        "volume": f"p{number}",
        "class": draw.choice((WAIT, WAIT, NOW)),
        "size": draw.randint(1, 5),
    }
    volume["modes"] = draw.choices(([ONE], [ONE, MANY], [ALONE]), (50, 30, 20))[0]
    where = draw.choices(("node", "zone", ZONE, BETA_ZONE, "nowhere"), (40, 20, 12, 8, 20))[0]
    if where in (ZONE, BETA_ZONE):
        volume["labels"] = {where: draw.choice(("z0", "z1", "z0__z1"))}
    elif where != "nowhere":
        volume[where] = draw.choice(nodes) if where == "node" else draw.choice(("z0", "z1"))
    if draw.random() < 0.5:
        volume["driver"] = DISK_DRIVER
    if draw.random() < 0.4:
        volume["labels"] = volume.get("labels", {}) | {"tier": "fast"}
    return volume


def _disk(draw: random.Random, name: str, weights: tuple[int, int, int, int]) -> Short:
    disk: Short = {"disk": name, "size": draw.randint(1, 4)}
    disk["mode"] = draw.choices((ONE, MANY, ALONE), (70, 15, 15))[0]
    disk["class"] = draw.choices((WAIT, NOW, MADE, "missing"), weights)[0]
    if disk["class"] != MADE and draw.random() < 0.15:
        disk["tier"] = "fast"
    return disk


def _disks_for(draw: random.Random, disks: list[Short]) -> list[str]:
    count = draw.choices((0, 1, 2), (10, 60, 30))[0]
    return _some(draw, count, disks, "disk", lambda: _disk(draw, f"v{len(disks)}", (50, 15, 32, 3)))
