"""Random devices in parts: cut out of counters, given in shares (`--claims parts`).

Comes from `draw.py`, which draws nodes, pods and slices.  Next: `parts.py`, which adds up what is left.
"""

import random
from collections.abc import Iterator

from tests.differential.claims.draw import draw_scenario
from tests.differential.claims.scenario import LANES, MEMORY, OTHER_WORDS, ClaimScenario, Short


def draw_parts(seed: int) -> ClaimScenario:
    """The scenario of this seed, always the same: of devices alone, without admin access.

    Stock charges a request with admin access for the part that it looks at (docs/beyond-stock.md).
    """
    scenario = draw_scenario(seed, about="devices")
    draw = random.Random(f"parts of claims {seed}")
    pools: dict[tuple[str, str, int], list[Short]] = {}
    for short in scenario.slices:
        pools.setdefault((short["driver"], short["pool"], short["generation"]), []).append(short)
    for slices in pools.values():
        if draw.random() < 0.55:
            scenario.slices.extend(_cut(draw, slices))
        for device in (each for short in slices for each in short["devices"]):
            if draw.random() < 0.25:
                device[LANES] = draw.randint(1, 4)
            if draw.random() < 0.4:
                _share(draw, device)
    for wanted in _wanted_of(scenario):
        wanted.pop("admin", None)
        wanted["count"] = draw.choices((wanted["count"], 1), (40, 60))[0]
        if draw.random() < 0.45:
            wanted["needs"] = _needs(draw)
    words = random.Random(f"words of parts {seed}")
    for wanted in _wanted_of(scenario):
        said = [
            OTHER_WORDS.get(rule, rule) if words.random() < 0.5 else rule for rule in wanted.get("rules", ())
        ]
        wanted |= {"rules": said} if said else {}
    return scenario


def _wanted_of(scenario: ClaimScenario) -> Iterator[Short]:
    for claim in scenario.claims:
        for request in claim["requests"]:
            yield from request.get("first", [request])


def _cut(draw: random.Random, slices: list[Short]) -> Iterator[Short]:
    """Cut devices of a pool out of counters; the slice that has the counters is now and then missing."""
    names = [f"g{number}" for number in range(draw.randint(1, 2))]
    counters = {name: {MEMORY: draw.choice((20, 40)), "cores": draw.randint(2, 6)} for name in names}
    for short in slices:
        short["of"] += 1
        for device in short["devices"]:
            for name in draw.choices(([], names[:1], names[-1:], names), (15, 40, 30, 15))[0]:
                cut = {MEMORY: draw.choice((0, 10, 10, 20, 30)), "cores": draw.randint(0, 3)}
                kept = {counter: amount for counter, amount in cut.items() if draw.random() < 0.8}
                device.setdefault("cut", {})[name] = kept or cut
    if draw.random() < 0.03:
        del counters[names[-1]]["cores"]  # the pool contradicts itself where a device is cut from it
    if draw.random() > 0.04:
        first = slices[0]
        yield {**first, "slice": f"{first['slice']}-counters", "devices": [], "counters": counters}


def _share(draw: random.Random, device: Short) -> None:
    """Let several claims have it, with or without rules on how much each takes."""
    device["shared"] = True
    policy: Short = {}
    kind = draw.choices(("none", "values", "range"), (35, 30, 35))[0]
    if kind == "values":
        values = sorted(draw.sample(range(1, device[MEMORY] + 1), 3))
        policy[MEMORY] = {"values": values, "default": draw.choice(values)}
    elif kind == "range":
        least, step = draw.randint(1, 4), draw.randint(1, 4)
        allowed: Short = {"min": least, "default": least + step * draw.randint(0, 1)}
        if draw.random() < 0.7:
            allowed["step"] = step
        if draw.random() < 0.5:
            allowed["max"] = least + step * ((device[MEMORY] - least) // step // 2 or 1)
        policy[MEMORY] = allowed
    if LANES in device and draw.random() < 0.6:
        policy[LANES] = {"values": list(range(1, device[LANES] + 1)), "default": 1}
    device["policy"] = policy


def _needs(draw: random.Random) -> Short:
    needs: Short = {}
    if draw.random() < 0.9:
        needs[MEMORY] = draw.choice((1, 3, 5, 8, 10, 15, 20))
    if draw.random() < 0.25:
        needs[LANES] = draw.randint(1, 2)
    return needs
