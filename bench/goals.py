"""The goals of the project beside what a pass has measured: one line each, with the worst row named.

In comes a report (`table.py`); out come `Goal`s, met, missed or open.  Next: `page.py`, which prints them.
"""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

STREAMING = {
    "5,000 nodes, 1,000 × 3, streaming": 2.2,
    "5,000 nodes, 3 × 1,000, streaming": 3.4,
    "1,000 nodes, 500 × 20, streaming": 2.0,
    "5,000 nodes, 50 racks, 750 × 4, streaming": 10.0,
    "1,000 nodes, 1 × 2,000, streaming": 5.0,
}
ALGORITHM = {
    "3-pod gang on 5,000 nodes": ("5,000 nodes, 1,000 × 3", 8),
    "1,000-pod gang on 5,000 nodes": ("5,000 nodes, 3 × 1,000", 50),
    "4-pod gang with 50 racks": ("5,000 nodes, 50 racks, 750 × 4", 50),
}
EVENTS_MOST, STORM_WAIT_MOST, NULL_LEAST, TEN_THOUSAND_MOST = 1.2, 1.2, 0.9, 1.1


class Goal(NamedTuple):
    """`found` are the rows that answer it with their values; `is_met` says it of each of these."""

    text: str
    found: tuple[tuple[str, float], ...]
    is_met: Callable[[float], bool]
    form: str = ".2f"

    @property
    def verdict(self) -> str:
        """met, missed, or open where nothing has been measured."""
        if not self.found:
            return "open"
        return "met" if all(self.is_met(value) for _, value in self.found) else "missed"


class _Figures:
    """Medians by part, name of the row, subject and figure."""

    def __init__(self, report: dict[str, Any]) -> None:
        self._rows = {
            (row["part"], row["name"], row["subject"]): row["figures"]
            for row in report["rows"]
            if not row["wrong"]
        }
        self.exponents: dict[str, float] = report["exponents"]

    def names(self, part: str, end: str = "") -> list[str]:
        """Rows of a part whose name ends so, in the order of the table."""
        return list(dict.fromkeys(name for of, name, _ in self._rows if of == part and name.endswith(end)))

    def of(self, part: str, name: str, subject: str, figure: str) -> float | None:
        found = self._rows.get((part, name, subject), {}).get(figure)
        return None if found is None else float(found["median"])

    def ratios(
        self, part: str, names: Iterable[str], figure: str, of: str, to: str
    ) -> tuple[tuple[str, float], ...]:
        """The figure of one by that of the other, where both have it."""
        pairs = ((name, self.of(part, name, of, figure), self.of(part, name, to, figure)) for name in names)
        return tuple((name, one / other) for name, one, other in pairs if one is not None and other)

    def values(
        self, part: str, names: Iterable[str], figure: str, subject: str = "muster"
    ) -> tuple[tuple[str, float], ...]:
        pairs = ((name, self.of(part, name, subject, figure)) for name in names)
        return tuple((name, value) for name, value in pairs if value is not None)


def judge(report: dict[str, Any]) -> list[Goal]:
    """Every goal beside what was measured."""
    figures = _Figures(report)
    return [*_end_to_end(figures), *_large_gang(figures), *_in_process(figures), *_quality(figures)]


def _end_to_end(figures: _Figures) -> list[Goal]:
    part, every = "end to end", figures.names("end to end")
    goals = [
        Goal(
            f"algorithm, {text}: at most 1/{share} of stock's (1 / …)",
            tuple(
                (name, 1.0 / value)
                for name, value in figures.ratios(
                    part, (f"{load}, backlog", f"{load}, streaming"), "algorithm_ms", "muster", "stock"
                )
            ),
            lambda value, share=share: value >= share,  # type: ignore[misc]
            ".1f",
        )
        for text, (load, share) in ALGORITHM.items()
    ]
    backlog = figures.ratios(part, figures.names(part, "backlog"), "pods_per_s", "muster", "null")
    goals.append(Goal("backlog: at least 90 % of the null gang binder", backlog, lambda v: v >= NULL_LEAST))
    for name, least in STREAMING.items():
        found = figures.ratios(part, (name,), "pods_per_s", "muster", "stock")
        goals.append(
            Goal(f"{name}: at least {least} × stock", found, lambda v, least=least: v >= least)  # type: ignore[misc]
        )
    p99 = figures.ratios(part, every, "gang_wait_p99_s", "muster", "stock")
    cpu = figures.ratios(part, every, "cpu_s_per_1000_pods", "muster", "stock")
    events = figures.values(part, every, "events_to_binds")
    return [
        *goals,
        Goal("p99 wait: no worse than stock's", p99, lambda v: v <= 1.0),
        Goal("processor time for 1,000 pods: at most stock's", cpu, lambda v: v <= 1.0),
        Goal("last Scheduled event: at most 1.2 × the last bind", events, lambda v: v <= EVENTS_MOST),
    ]


def _large_gang(figures: _Figures) -> list[Goal]:
    names = [name for name in figures.names("end to end") if "1 × 10,000" in name]
    times = figures.ratios("end to end", names, "last_bind_s", "muster", "null")
    peaks = figures.values("end to end", names, "scheduler_peak_mb")
    cold = figures.ratios("cold start", figures.names("cold start"), "first_bind_s", "muster", "stock")
    return [
        Goal("one gang of 10,000: at most 1.1 × the null gang binder's time", times, _at_most_a_tenth_more),
        Goal("one gang of 10,000: peak below 500 MB", peaks, lambda v: v < 500, ".0f"),
        Goal("cold start, to the first bind: at most stock's", cold, lambda v: v <= 1.0),
    ]


def _at_most_a_tenth_more(value: float) -> bool:
    return value <= TEN_THOUSAND_MOST


def _in_process(figures: _Figures) -> list[Goal]:
    storm = figures.names("storm")
    waits = tuple(
        (f"{name}, {how}", value / alone)
        for name in storm
        for how, figure in (("one after the other", "possible"), ("all there at the start", "backlog"))
        if (value := figures.of("storm", name, "muster", f"{figure}_wait_ms")) is not None
        and (alone := figures.of("storm", name, "muster", f"{figure}_wait_alone_ms"))
    )
    small, large = (f"{nodes} nodes, 90 % full" for nodes in ("5,000", "50,000"))
    times = dict(figures.values("scale", (small, large), "algorithm_ms"))
    grown = (("50,000 by 5,000 nodes", times[large] / times[small]),) if len(times) == 2 else ()
    return [
        Goal(
            "storm: a rejection, at most 300 µs",
            figures.values("storm", storm, "rejection_us"),
            lambda v: v <= 300,
            ".0f",
        ),
        Goal(
            "storm: one status write a group",
            figures.values("storm", storm, "group_patches_per_gang"),
            lambda v: v <= 1.0,
        ),
        Goal(
            "storm: attempts after a change that helps nobody: none",
            figures.values("storm", storm, "needless_attempts"),
            lambda v: v == 0,
            ".0f",
        ),
        Goal("storm: possible gangs wait at most 1.2 × as long", waits, lambda v: v <= STORM_WAIT_MOST),
        Goal(
            "gang of 8 on 5,000 nodes, 90 % full: at most 1 ms",
            figures.values("scale", (small,), "algorithm_ms"),
            lambda v: v <= 1.0,
        ),
        Goal("50,000 nodes: at most 10 × the 5,000-node time", grown, lambda v: v <= 10.0),
    ]


def _quality(figures: _Figures) -> list[Goal]:
    part = "placement quality"
    gains = {}
    for name in figures.names(part):
        fgd = figures.of(part, name, "fgd", "unallocated")
        ours = figures.of(part, name, "muster", "unallocated")
        if fgd is not None and ours is not None and "gangs" not in name:
            gains[name] = fgd - ours
    default = tuple(pair for pair in gains.items() if pair[0] == "openb default")
    return [
        Goal("openb default: at least 0.3 points below our FGD (aim 0.6)", default, lambda v: v >= 0.3),
        Goal("openb: nowhere more than 0.3 points above it", tuple(gains.items()), lambda v: v >= -0.3),
    ]
