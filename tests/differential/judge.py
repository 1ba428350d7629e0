"""Compare what the two schedulers made of one scenario: agreed, explained by a listed rule, or not explained.

In come the outcomes; each result is first held against the rules (`oracle.py`), whoever's it is.  A rule of
`EXPLANATIONS` explains only where the slow checker says that Muster is right; docs/beyond-stock.md tells
users of each, and a test keeps both lists equal.  Next: `__main__.py` prints.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct
from tests.differential import oracle
from tests.differential.oracle import TooLarge, broken_rules, cheapest_victims, counts_of, find_placement
from tests.differential.play import Outcome
from tests.differential.rules import Cluster, Placed
from tests.differential.scenario import Arrival, Scenario, priority_of

EXPLANATIONS = {
    "greedy-order": "the members fit, but not in the order in which stock tries them",
    "siblings-starve": "the groups of a tree fit, but stock lets an early one take what a later one needs",
    "minima-first": "Muster fills the minimum of every group of a tree before the surplus of one",
    "evicts-for-left-out": "stock evicts for groups of a tree that it does not place, or everybody",
    "victims-after-place": "stock chooses the place first and its victims after it",
    "evicts-in-vain": "stock evicts and then has no place for whom it did it",
    "places-differ": "earlier results or ties differ, and each answer is right for its own cluster",
    "waited-before": "what came in this step let somebody in who had waited, with one of the two only",
    "stock-waits": "stock had not yet decided within the time of the scenario",
    "surplus-by-luck": "all minimums are reached; the surplus depends on which of equal nodes came first",
    "tried-in-order": "a limit of Muster: with victims or rules about pods it tries members in order, too",
}


class Finding(Struct, frozen=True):
    """One difference: the rule that explains it, or none and what is wrong."""

    seed: int
    step: int
    rule: str | None
    text: str


class Result(Struct, frozen=True):
    """What one scheduler did in one step: the cluster before it, and what came of it."""

    before: Cluster
    bound: dict[str, str]  # pods of this step's arrivals → node
    victims: set[str]
    settled: bool
    late: tuple[Placed, ...] = ()  # pods of earlier arrivals that found room only now
    evicted: frozenset[str] = frozenset()  # pods of this step's arrivals that are gone again

    @property
    def placed_nothing(self) -> bool:
        return not self.bound and not self.late

    def counts(self, arrival: Arrival) -> dict[str, int]:
        return dict(counts_of(arrival, self.bound))

    def lacks_group(self, arrival: Arrival) -> str | None:
        """A group of a tree, of which others are placed, that could have been added without more victims."""
        if arrival.kind != "tree" or not self.bound:
            return None
        pods = {short["pod"]: short for short in arrival.pods}
        placed = [Placed(pods[name], node) for name, node in self.bound.items()]
        after = self.before.without(self.victims).with_pods([*self.late, *placed])
        return oracle.find_another_group(after, arrival, self.bound)

    def price(self, scenario: Scenario) -> oracle.Price:
        return oracle.price_of(scenario, self.before, self.victims)


def judge(scenario: Scenario, stock: Outcome, muster: Outcome) -> list[Finding]:
    """All differences between the two, and every rule that either broke."""
    findings = []
    pairs = zip(results_of(scenario, stock), results_of(scenario, muster), strict=True)
    for number, (theirs, ours) in enumerate(pairs):
        told = [("stock", theirs), ("muster", ours)]
        wrong = [f"{who}: {text}" for who, result in told for text in broken(scenario, number, result)]
        found: list[tuple[str | None, str]] = [(None, text) for text in wrong]
        if not found and scenario.kind != "rush":
            found = list(_differences(scenario, scenario.arrivals[number], theirs, ours))
        findings.extend(Finding(scenario.seed, number, rule, text) for rule, text in found)
    return findings


def judge_strangers(
    scenario: Scenario, theirs: Sequence[Outcome], ours: Sequence[Outcome]
) -> Iterator[Finding]:
    """What is wrong where pods of other scenarios were evicted for one of this one."""
    is_tree = any(arrival.kind == "tree" for arrival in scenario.arrivals)
    for who, outcomes in (("stock", theirs), ("muster", ours)):
        seeds = [outcome.seed for outcome in outcomes if scenario.seed in outcome.disturbers]
        if seeds:
            rule = "evicts-for-left-out" if who == "stock" and is_tree else None
            text = f"{who} evicted pods of {len(seeds)} other scenarios, {min(seeds)} the first"
            yield Finding(scenario.seed, 0, rule, text)


def broken(scenario: Scenario, number: int, result: Result) -> Iterator[str]:
    """What no scheduler may do, whatever the other did."""
    arrivals = scenario.steps[number]
    if scenario.kind == "rush":
        for arrival in arrivals:
            if not any(short["pod"] in result.evicted for short in arrival.pods):
                yield from oracle.broken_groups(result.before, arrival, result.bound)
        yield from oracle.broken_totals(result.before.without(result.victims), arrivals, result.bound)
        return
    (arrival,) = arrivals
    late = [placed for placed in result.late if placed.pod["pod"] not in result.bound]
    yield from broken_rules(result.before, arrival, result.bound, result.victims, late)
    standing = {entry.pod["pod"]: entry.node for entry in (*result.before.placed, *late)}
    for earlier in scenario.arrivals[:number]:
        if any(placed.pod in earlier.pods for placed in late):
            yield from oracle.broken_groups(result.before, earlier, standing)
    yield from _needless_victims(scenario, number, result)


def _needless_victims(scenario: Scenario, number: int, result: Result) -> Iterator[str]:
    """Victims that are not weaker than any who found room, and units torn."""
    late = [placed.pod for placed in result.late]
    earlier = [arrival for arrival in scenario.arrivals[:number] if any(pod in late for pod in arrival.pods)]
    below = max(arrival.takes_below for arrival in (scenario.arrivals[number], *earlier))
    gone = [entry.pod for entry in result.before.placed if entry.pod["pod"] in result.victims]
    if stronger := [pod["pod"] for pod in gone if priority_of(pod) >= below]:
        yield f"evicted {stronger}, which are not weaker"
    for _, unit in oracle.units_below(scenario, result.before, below):
        if len(unit) > 1 and 0 < len(unit & result.victims) < len(unit):
            yield f"of the group {sorted(unit)} only {sorted(unit & result.victims)} were evicted"


def _differences(
    scenario: Scenario, arrival: Arrival, theirs: Result, ours: Result
) -> Iterator[tuple[str | None, str]]:
    """How the verdicts differ, each with the rule that explains it."""
    if not ours.settled:
        yield None, f"muster did not come to rest with {arrival.name}"
    if ours.victims and ours.placed_nothing:
        yield None, f"muster evicted {sorted(ours.victims)} and placed nothing"
    elif theirs.victims and theirs.placed_nothing:
        yield "evicts-in-vain", f"stock evicted {sorted(theirs.victims)} and placed nothing"
        return
    if theirs.counts(arrival) != ours.counts(arrival):
        texts = [
            f"{who} bound {_show(arrival, result)}" for who, result in (("stock", theirs), ("muster", ours))
        ]
        rule = "waited-before" if _latecomers_differ(theirs, ours) else None
        yield rule or _explain_counts(scenario, arrival, theirs, ours), "; ".join(texts)
    elif theirs.price(scenario) != ours.price(scenario):
        text = f"stock evicted {sorted(theirs.victims)}, muster {sorted(ours.victims)}"
        rule = "waited-before" if _latecomers_differ(theirs, ours) else None
        yield rule or _explain_victims(scenario, arrival, theirs, ours), f"{arrival.name}: {text}"


def _latecomers_differ(theirs: Result, ours: Result) -> bool:
    """Whether somebody who waited since an earlier step found room in this one with one scheduler only."""
    names = [{placed.pod["pod"] for placed in result.late} for result in (theirs, ours)]
    return names[0] != names[1]


def _explain_counts(scenario: Scenario, arrival: Arrival, theirs: Result, ours: Result) -> str | None:
    if ours.bound and theirs.bound:
        return _explain_surplus(arrival, theirs, ours)
    if ours.bound:
        return _explain_more(arrival, theirs, ours)
    if not _same(theirs, ours) and _is_hopeless(scenario, arrival, ours.before):
        return "places-differ"
    return "tried-in-order" if _depends_on_order(arrival, theirs) else None


def _explain_more(arrival: Arrival, theirs: Result, ours: Result) -> str:
    """Muster placed it, stock did not."""
    if not theirs.settled:
        return "stock-waits"
    if ours.victims:
        return "victims-after-place" if _same(theirs, ours) else "places-differ"
    if _same(theirs, ours) or _fits(theirs.before, arrival):
        return "siblings-starve" if arrival.kind == "tree" else "greedy-order"
    return "places-differ"


def _explain_surplus(arrival: Arrival, theirs: Result, ours: Result) -> str | None:
    """Both placed it, but not as much of it."""
    our_groups, their_groups = (_groups_held(arrival, result) for result in (ours, theirs))
    more = len(ours.bound) > len(theirs.bound)
    if our_groups < their_groups:
        if ours.lacks_group(arrival):
            return None
        if not _same(theirs, ours):
            return "places-differ"
        return "tried-in-order" if _depends_on_order(arrival, theirs) else None
    if not theirs.settled:
        return "stock-waits"
    if our_groups > their_groups:
        return "siblings-starve" if more else "minima-first"
    return "greedy-order" if more else "surplus-by-luck"


def _groups_held(arrival: Arrival, result: Result) -> int:
    """How many groups have their minimum."""
    counts = result.counts(arrival)
    return sum(counts.get(name, 0) >= group.get("gang", 1) for name, group in arrival.leaves.items())


def _depends_on_order(arrival: Arrival, result: Result) -> bool:
    """Whether members differ, or mind other pods, and the exact search of Muster does not help."""
    shapes = {oracle.shape_of(short) for short in arrival.pods}
    minds = any("affinity" in short or "topologySpreadConstraints" in short for short in arrival.pods)
    return bool(arrival.groups) and (minds or (len(shapes) > 1 and bool(result.victims)))


def _explain_victims(scenario: Scenario, arrival: Arrival, theirs: Result, ours: Result) -> str | None:
    if not _same(theirs, ours):
        return "places-differ"
    if ours.price(scenario) < theirs.price(scenario):
        in_vain = arrival.kind == "tree" and _could_spare(scenario, arrival, theirs)
        return "evicts-for-left-out" if in_vain else "victims-after-place"
    return "tried-in-order" if _depends_on_order(arrival, theirs) else None


def _could_spare(scenario: Scenario, arrival: Arrival, result: Result) -> bool:
    """Whether some of the victims could have stayed beside what was placed."""
    return any(
        not broken_rules(result.before, arrival, result.bound, result.victims - unit)
        for _, unit in oracle.units_below(scenario, result.before, arrival.takes_below)
        if unit <= result.victims
    )


def _same(theirs: Result, ours: Result) -> bool:
    """Whether both stood before the same cluster."""
    first, second = (
        sorted((entry.pod["pod"], entry.node) for entry in one.before.placed) for one in (theirs, ours)
    )
    return first == second


def _fits(cluster: Cluster, arrival: Arrival) -> bool:
    try:
        return find_placement(cluster, arrival) is not None
    except TooLarge:
        return False


def _is_hopeless(scenario: Scenario, arrival: Arrival, cluster: Cluster) -> bool:
    """Whether there is no placement, with whatever victims."""
    try:
        if find_placement(cluster, arrival) is not None:
            return False
        return cheapest_victims(scenario, cluster, arrival) is None
    except TooLarge:
        return False


def results_of(scenario: Scenario, outcome: Outcome) -> Iterator[Result]:
    """Each step as (before, what came of it)."""
    shorts = {short["pod"]: short for short in scenario.running}
    shorts |= {short["pod"]: short for arrival in scenario.arrivals for short in arrival.pods}
    places = {short["pod"]: short["node"] for short in scenario.running}
    for number, step in enumerate(outcome.steps):
        before = Cluster(scenario.nodes, [Placed(shorts[name], node) for name, node in places.items()])
        arrived = {short["pod"] for arrival in scenario.steps[number] for short in arrival.pods}
        yield Result(
            before,
            {name: node for name, node in step.places.items() if name in arrived},
            set(places) - set(step.places),
            step.settled,
            tuple(
                Placed(shorts[name], node)
                for name, node in step.places.items()
                if name not in arrived and name not in places
            ),
            frozenset(arrived - set(step.places) - set(step.said)),
        )
        places = step.places


def _show(arrival: Arrival, result: Result) -> str:
    counts = result.counts(arrival)
    total = {name: sum(short.get("group") == name for short in arrival.pods) for name in arrival.leaves}
    shown = ", ".join(f"{name} {counts.get(name, 0)}/{count}" for name, count in total.items())
    shown = shown or ("it" if result.bound else "nothing")
    return f"{shown} ({len(result.victims)} victims)" if result.victims else shown
