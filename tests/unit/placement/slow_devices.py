"""Whether several claims can get their devices between them, found by trying everything.

Shares nothing with the allocator: devices and requests are plain words here.  The oracle of
`test_device_allocation.py`.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations, product
from typing import NamedTuple

MEMORY = 4  # of every device
Use = tuple[int, int]  # a device, and how much of its memory (0: as an admin)


class Thing(NamedTuple):
    """A device.

    `counter_set`: what it is cut from, -1 for nothing; `cores`: how much it takes of that; `is_shared`:
    several claims may have it; `homes`: which of two nodes reach it; `is_taken`: another claim has it, or 1
    of its memory where it is shared.
    """

    model: str
    pair: int
    counter_set: int = -1
    cores: int = 1
    is_shared: bool = False
    is_tainted: bool = False
    homes: tuple[int, ...] = (0, 1)
    is_taken: bool = False


class Want(NamedTuple):
    """What one request, or one alternative, asks for: `count` of 0 is all, `memory` of 0 says nothing."""

    model: str = ""
    count: int = 1
    memory: int = 0
    tolerates: bool = False
    is_admin: bool = False


class Ask(NamedTuple):
    """A claim: requests with their alternatives, a rule over pairs of the first `about` requests, nodes."""

    requests: tuple[tuple[Want, ...], ...]
    rule: str = ""
    about: int = 2
    homes: tuple[int, ...] = (0,)


def way_exists(things: Sequence[Thing], cores: int, asks: Sequence[Ask]) -> bool:
    """Whether all of these claims can get what they ask for; `cores`: what there is in each counter set."""
    per_claim = [sorted(set(options(ask, things))) for ask in asks]
    return any(fits([use for chosen in way for use in chosen], things, cores) for way in product(*per_claim))


def options(ask: Ask, things: Sequence[Thing]) -> Iterator[tuple[Use, ...]]:
    """Everything that would do for one claim if it were alone."""
    reached = [index for index, thing in enumerate(things) if set(ask.homes) <= set(thing.homes)]
    per_request = [
        [(want, group) for want in alternatives for group in _groups(want, things, reached)]
        for alternatives in ask.requests
    ]
    for chosen in product(*per_request):
        devices = [index for _, group in chosen for index in group]
        once = [index for index in devices if not things[index].is_shared]
        concerned = [things[index].pair for _, group in chosen[: ask.about] for index in group]
        if len(set(once)) < len(once) or not keeps(ask.rule, concerned):
            continue
        yield tuple(
            (index, 0 if want.is_admin else _amount(want, things[index]))
            for want, group in chosen
            for index in group
        )


def _groups(want: Want, things: Sequence[Thing], reached: Sequence[int]) -> list[tuple[int, ...]]:
    matching = [index for index in reached if want.model in ("", things[index].model)]
    if want.memory > MEMORY:
        matching = []
    borne = [index for index in matching if want.tolerates or not things[index].is_tainted]
    if want.count:
        return list(combinations(borne, want.count))
    return [tuple(matching)] if matching and matching == borne else []


def _amount(want: Want, thing: Thing) -> int:
    return want.memory if thing.is_shared and want.memory else MEMORY


def fits(uses: Sequence[Use], things: Sequence[Thing], cores: int) -> bool:
    """Whether what is used is there, beside what others have."""
    memory: Counter[int] = Counter()
    for index, amount in uses:
        if not amount:
            continue
        if not things[index].is_shared and (memory[index] or things[index].is_taken):
            return False
        memory[index] += amount
        if memory[index] + things[index].is_taken > MEMORY:
            return False
    left = {-1: 0, 0: cores, 1: cores}
    for thing in things:
        if thing.is_taken and thing.counter_set >= 0:
            left[thing.counter_set] -= thing.cores
    for index in memory:
        if things[index].counter_set >= 0 and not things[index].is_taken:
            left[things[index].counter_set] -= things[index].cores
            if left[things[index].counter_set] < 0:
                return False
    return True


def keeps(rule: str, pairs: Sequence[int]) -> bool:
    """Whether devices of these pairs are all of one ("match"), or of one each ("distinct")."""
    if rule == "match":
        return len(set(pairs)) <= 1
    return rule != "distinct" or len(set(pairs)) == len(pairs)
