"""What is measured: every row of the quick and of the full pass, as plain values.

A row is one function call in a process of its own, with a name by which it is resumed, printed and compared.
Adding one is one line here.  Next: `passes.py`, which runs them, and `table.py`, which prints them.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bench import (
    cold_start,
    devices,
    devices_on_stock,
    embedded,
    end_to_end,
    exact_search,
    hard_groups,
    impossible_gangs,
    in_process,
    quality,
)
from bench.contenders import NAMES
from bench.loads import Load


class Row(NamedTuple):
    """`subject` is who is measured (a contender, a policy); rows of one `name` are compared.

    `once`: not repeated, for it takes long.
    """

    part: str
    name: str
    subject: str
    function: Callable[..., dict[str, Any]]
    arguments: dict[str, Any]
    once: bool = False

    @property
    def key(self) -> str:
        return f"{self.part} | {self.name} | {self.subject}"


QUICK_LOADS = (("500 nodes, 100 × 3", Load(500, 100, 3)),)
FULL_LOADS = (
    ("5,000 nodes, 1,000 × 3", Load(5000, 1000, 3)),
    ("5,000 nodes, 3 × 1,000", Load(5000, 3, 1000)),
    ("5,000 nodes, 50 racks, 750 × 4", Load(5000, 750, 4, racks=50)),
    ("1,000 nodes, 500 × 20", Load(1000, 500, 20)),
    ("1,000 nodes, 1 × 1,000", Load(1000, 1, 1000)),
    ("1,000 nodes, 1 × 2,000", Load(1000, 1, 2000)),
    ("1,000 nodes, 1 × 5,000", Load(1000, 1, 5000)),
    ("1,000 nodes, 1 × 10,000", Load(1000, 1, 10_000)),
    ("1,000 nodes, 10,000 lone pods", Load(1000, 10_000, 0)),
)
SLOW_FOR_STOCK = frozenset(
    {"5,000 nodes, 50 racks, 750 × 4", "1,000 nodes, 1 × 5,000", "1,000 nodes, 1 × 10,000"}
)
PATIENCE_S = 200.0

# What a pass measures first, by the beginning of a row's key: the goals that nothing else answers.  What
# takes stock minutes comes after all else but quality, which takes longest and needs no quiet machine.
SOONER = (
    "end to end | 5,000 nodes, 1,000 × 3",
    "end to end | 1,000 nodes, 500 × 20",
    "end to end | 1,000 nodes, 1 × 10,000, streaming",
    "cold start",
    "end to end | 5,000 nodes, 3 × 1,000",
    "end to end | 5,000 nodes, 50 racks",
    "end to end | 1,000 nodes, 1 × 2,000",
    "in process",
    "scale",
    "storm",
    "end to end",
    "muster up",
)
MINUTES_FOR_STOCK = ("1 × 5,000", "1 × 10,000")


def by_worth(rows: Sequence[Row]) -> list[Row]:
    """The order in which rows are measured; that of the table otherwise."""

    def rank(row: Row) -> tuple[int, int]:
        is_slow = row.subject == "stock" and any(size in row.name for size in MINUTES_FOR_STOCK)
        is_last = 2 if row.part == "placement quality" else int(is_slow)
        sooner = (number for number, begin in enumerate(SOONER) if row.key.startswith(begin))
        return is_last, next(sooner, len(SOONER))

    return sorted(rows, key=rank)


def quick_rows() -> list[Row]:
    """What fits into three minutes on two cores: every part, small."""
    return [
        *_end_to_end(QUICK_LOADS),
        _embedded("500 nodes, 100 × 3", Load(500, 100, 3)),
        _gangs("500 nodes, 100 × 3", 500, 100, 3),
        _gangs("500 nodes, 3 × 500", 500, 3, 500),
        _gangs("500 nodes, 5 racks, 100 × 4", 500, 100, 4, 5),
        _preempt(100),
        _preempt_with_gang(500, 50),
        _trees("500 nodes, 50 composites × 2 × 3", 500, 50, 2, 3),
        *_devices(200, 16, 5)[:1],
        _scale(1000, 10),
        _scale(2000, 10),
        _storm(500, 400, 20),
        *(_exact(nodes, feasible=feasible) for nodes in (40, 500) for feasible in (True, False)),
        *_openb("default", seed_count=1),
    ]


def full_rows() -> list[Row]:
    """The whole table."""
    return [
        *_end_to_end(FULL_LOADS),
        _embedded("1,000 nodes, 1,000 × 3", Load(1000, 1000, 3)),
        _embedded("1,000 nodes, 500 × 20", Load(1000, 500, 20)),
        _cold_start("stock"),
        _cold_start("muster"),
        _gangs("5,000 nodes, 1,000 × 3", 5000, 1000, 3),
        _gangs("5,000 nodes, 2,000 × 3", 5000, 2000, 3),
        _gangs("5,000 nodes, 3,000 × 3", 5000, 3000, 3),
        _gangs("5,000 nodes, 3 × 1,000", 5000, 3, 1000),
        _gangs("5,000 nodes, 9 × 1,000", 5000, 9, 1000),
        _gangs("5,000 nodes, 10 × 5,000", 5000, 10, 5000),
        _gangs("5,000 nodes, 50 racks, 750 × 4", 5000, 750, 4, 50),
        _gangs("5,000 nodes, 50 racks, 3 × 1,000", 5000, 3, 1000, 50),
        _gangs("1,000 nodes, 500 × 20", 1000, 500, 20),
        *(_exact(nodes, feasible=feasible) for nodes in (40, 500) for feasible in (True, False)),
        *(_preempt(nodes) for nodes in (100, 500, 1000)),
        *(_preempt_with_gang(nodes, 100) for nodes in (1000, 5000)),
        _trees("5,000 nodes, 500 composites × 2 × 3", 5000, 500, 2, 3),
        _trees("5,000 nodes, 3 composites × 2 × 500", 5000, 3, 2, 500),
        *_devices(1000, 64, 20),
        *(_scale(nodes, 20) for nodes in (1000, 2000, 5000, 10_000, 20_000, 50_000)),
        _storm(10_000, 10_000, 500),
        *(row for variant in quality.PUBLISHED for row in _openb(variant, seed_count=len(quality.SEEDS))),
        *_openb_gangs("default", seed_count=len(quality.SEEDS)),
    ]


def _end_to_end(loads: tuple[tuple[str, Load], ...]) -> list[Row]:
    rows = []
    for name, load in loads:
        for mode in ("streaming", "backlog") if load.size else ("streaming",):
            for contender in NAMES:
                once = contender == "stock" and name in SLOW_FOR_STOCK
                arguments = {"load": load, "mode": mode, "contender": contender, "patience_s": PATIENCE_S}
                rows.append(
                    Row("end to end", f"{name}, {mode}", contender, end_to_end.run, arguments, once=once)
                )
    return rows


def _embedded(name: str, load: Load) -> Row:
    arguments = {"load": load, "patience_s": PATIENCE_S}
    return Row("muster up", f"{name}, streaming", "muster", embedded.run, arguments)


def _gangs(name: str, nodes: int, gangs: int, size: int, racks: int = 0) -> Row:
    arguments = {"nodes": nodes, "gangs": gangs, "size": size, "racks": racks}
    return Row("in process", name, "muster", in_process.make_gangs, arguments)


def _preempt(nodes: int) -> Row:
    name = f"{nodes:,} nodes full of gangs of 4"
    return Row("preemption", name, "muster", hard_groups.preempt, {"nodes": nodes})


def _preempt_with_gang(nodes: int, members: int) -> Row:
    name = f"{nodes:,} nodes full of lone pods, gang of {members}"
    arguments = {"nodes": nodes, "members": members}
    return Row("preemption", name, "muster", hard_groups.preempt_with_gang, arguments)


def _trees(name: str, nodes: int, trees: int, groups: int, size: int) -> Row:
    arguments = {"nodes": nodes, "trees": trees, "groups": groups, "size": size}
    return Row("in process", name, "muster", hard_groups.make_trees, arguments)


def _scale(nodes: int, decisions: int) -> Row:
    arguments = {"nodes": nodes, "decisions": decisions}
    return Row("scale", f"{nodes:,} nodes, 90 % full", "muster", in_process.scale, arguments)


def _devices(nodes: int, members: int, decisions: int) -> list[Row]:
    """The gang by Muster, and as many pods one by one by stock."""
    arguments = {"nodes": nodes, "members": members, "decisions": decisions}
    name = f"{nodes:,} nodes × 8, 40 % taken, {members} × a linked pair"
    theirs = {"nodes": nodes, "pods": members}
    return [
        Row("devices", name, "muster", devices.place_gangs, arguments),
        Row("devices", name, "stock", devices_on_stock.place_pods, theirs, once=True),
    ]


def _exact(nodes: int, *, feasible: bool) -> Row:
    arguments = {"nodes": nodes, "feasible": feasible}
    name = f"{nodes:,} nodes, {'feasible' if feasible else 'infeasible'}"
    return Row("exact search", name, "muster", exact_search.run, arguments)


def _storm(nodes: int, impossible: int, possible: int) -> Row:
    arguments = {"nodes": nodes, "impossible": impossible, "possible": possible}
    name = f"{nodes:,} nodes, {impossible:,} impossible gangs, {possible:,} possible"
    return Row("storm", name, "muster", impossible_gangs.storm, arguments)


def _cold_start(contender: str) -> Row:
    arguments = {"nodes": 5000, "pods": 50_000, "contender": contender}
    return Row("cold start", "5,000 nodes, 50,000 pods", contender, cold_start.run, arguments)


def _openb_gangs(variant: str, *, seed_count: int) -> list[Row]:
    return [
        Row(
            "placement quality",
            f"openb {variant}, gangs",
            policy,
            quality.run_gangs,
            {"variant": variant, "policy": policy, "seed_count": seed_count},
            once=True,
        )
        for policy in quality.GANG_POLICIES
    ]


def _openb(variant: str, *, seed_count: int) -> list[Row]:
    return [
        Row(
            "placement quality",
            f"openb {variant}",
            policy,
            quality.run,
            {"variant": variant, "policy": policy, "seed_count": seed_count},
            once=True,
        )
        for policy in quality.POLICIES
    ]
