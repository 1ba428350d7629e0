"""The integer program of a packing problem in one domain of its root: what nodes take, and who takes it up.

Supply is what nodes offer to each shape in each region: how often a class of nodes takes each of its
patterns (`patterns.py`), or, where the patterns are too many, members per node.  Demand is the tree: how many
groups of each kind (`kinds.py`) are in each of their domains, and how many members of each lot in each
region.  In comes a problem; next: `exact.py`, which solves the program and has it read back here.
Axes: S shapes, N nodes, V variables of the program, C its constraints, E its coefficients.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from msgspec import Struct

from muster.base.arrays import Bool, Float64, Int64
from muster.placement.kinds import Kind, Placed, kind_of, share_out
from muster.placement.neighbours import Apart, Even, Near, Rule
from muster.placement.packing import Packing, Problem, copies_alone
from muster.placement.parts import regions
from muster.placement.patterns import NodeClass, find_classes

COEFFICIENT_MAX = 2**20  # beyond this the solver's tolerance of 1e-6 could hide a whole unit

Thing = TypeVar("Thing")
Term = tuple[int, float]  # variable, coefficient
Spot = tuple[int, int]  # shape, region
_Taken = Mapping[Spot, Sequence[Term]]  # members that are placed


class Program(Struct, frozen=True):
    """An integer program without an objective: whole numbers x with lower <= A x <= upper.

    Shapes   variable_max [V]; lower, upper [C]; entries in order of their rows: row, column, value [E].
    """

    variable_max: Float64
    lower: Float64
    upper: Float64
    row: Int64
    column: Int64
    value: Float64


class _Rows:
    """Variables and constraints gathered one by one."""

    def __init__(self) -> None:
        self._most: list[float] = []
        self._row: list[int] = []
        self._column: list[int] = []
        self._value: list[float] = []
        self._lower: list[float] = []
        self._upper: list[float] = []

    def variable(self, most: float) -> int:
        """A new whole number from 0 to `most`."""
        self._most.append(float(most))
        return len(self._most) - 1

    def add(self, terms: Sequence[Term], *, lower: float = -np.inf, upper: float = np.inf) -> None:
        """lower <= Σ value · variable <= upper."""
        for column, value in terms:
            self._row.append(len(self._lower))
            self._column.append(column)
            self._value.append(value)
        self._lower.append(lower)
        self._upper.append(upper)

    def program(self) -> Program:
        """All of them."""
        return Program(
            variable_max=np.array(self._most),
            lower=np.array(self._lower),
            upper=np.array(self._upper),
            row=np.array(self._row, dtype=np.int64),
            column=np.array(self._column, dtype=np.int64),
            value=np.array(self._value),
        )


class Question:
    """The program of one domain of the root.

    `is_trusted`: its numbers are small enough that "infeasible" can be believed.
    """

    def __init__(self, problem: Problem, domain: int, *, steps_max: int) -> None:
        rows = _Rows()
        rules = problem.packing.rules
        parts = regions(problem.root, domain, [rule.domain for rule in rules])
        available = problem.available_of_shape
        classes = find_classes(problem.packing, available, parts, steps_max=steps_max)
        self._supply: _Patterns | _Nodes
        if classes is not None:
            self._supply = _Patterns(rows, classes)
        else:
            self._supply = _Nodes(rows, problem.packing, available, parts)
        self.is_trusted = self._supply.is_trusted
        self._demand = _Demand(rows, kind_of(problem, problem.root), domain, parts, self._supply.terms)
        for rule in rules:
            if isinstance(rule, Even):
                _keep_even(rows, rule, parts, self._demand.taken, available)
            else:
                _add_rule(rows, rule, parts, self._demand.taken, available)
        self.program = rows.program()

    def read(self, solution: Int64) -> Placed | None:
        """The root as the solution [V] places it; None if it does not."""
        groups = self._demand.read(solution, self._supply.read(solution))
        return groups[0] if groups else None


# ── supply ───────────────────────────────────────────────────────────────────────────────────────


class _Patterns:
    """Variables: nodes of class c with pattern p.  Constraints: a class has so many nodes."""

    def __init__(self, rows: _Rows, classes: Sequence[NodeClass]) -> None:
        self.terms: dict[Spot, list[Term]] = defaultdict(list)
        self.is_trusted = True
        self._classes = [(each, [rows.variable(len(each.nodes)) for _ in each.patterns]) for each in classes]
        for each, columns in self._classes:
            rows.add([(column, 1.0) for column in columns], upper=float(len(each.nodes)))
            for pattern, column in zip(each.patterns, columns, strict=True):
                for shape, count in enumerate(pattern):
                    if count:
                        self.terms[shape, each.region].append((column, float(count)))

    def read(self, solution: Int64) -> dict[Spot, list[int]]:
        """Nodes by what they take, once for each member."""
        found: dict[Spot, list[int]] = defaultdict(list)
        for each, columns in self._classes:
            nodes = iter(each.nodes)
            for pattern, column in zip(each.patterns, columns, strict=True):
                for node in (next(nodes) for _ in range(int(solution[column]))):
                    for shape, count in enumerate(pattern):
                        found[shape, each.region] += [node] * count
        return found


class _Nodes:
    """Variables: members of shape s on node n; where shapes exclude each other, whether s is on n at all."""

    def __init__(self, rows: _Rows, packing: Packing, available: Int64, parts: Sequence[Int64]) -> None:
        self.terms: dict[Spot, list[Term]] = defaultdict(list)
        self._columns: list[tuple[Spot, int, int]] = []
        most = copies_alone(packing, available)
        unit = np.array([max(1, int(np.gcd.reduce(column))) for column in packing.need.T], dtype=np.int64)
        need, room = packing.need // unit, np.maximum(packing.room, 0) // unit
        for region, nodes in enumerate(parts):
            for node in nodes.tolist():
                columns = {
                    shape: rows.variable(most[shape, node])
                    for shape in np.flatnonzero(most[:, node]).tolist()
                }
                for shape, column in columns.items():
                    self._columns.append(((shape, region), column, node))
                    self.terms[shape, region].append((column, 1.0))
                self._limit(rows, need, room[node], columns)
                self._exclude(rows, packing.conflict, most[:, node], columns)
        largest = max(int(need.max(initial=0)), int(room.max(initial=0)))
        self.is_trusted = largest <= COEFFICIENT_MAX

    @staticmethod
    def _limit(rows: _Rows, need: Int64, room: Int64, columns: Mapping[int, int]) -> None:
        for amount in np.flatnonzero((need > 0).any(axis=0)).tolist():
            terms = [(column, float(need[shape, amount])) for shape, column in columns.items()]
            rows.add([term for term in terms if term[1]], upper=float(room[amount]))

    @staticmethod
    def _exclude(rows: _Rows, conflict: Bool, most: Int64, columns: Mapping[int, int]) -> None:
        pairs = [(a, b) for a in columns for b in columns if a < b and conflict[a, b]]
        is_there = {shape: rows.variable(1) for shape in sorted({shape for pair in pairs for shape in pair})}
        for shape, there in is_there.items():
            rows.add([(columns[shape], 1.0), (there, -float(most[shape]))], upper=0.0)
        for one, other in pairs:
            rows.add([(is_there[one], 1.0), (is_there[other], 1.0)], upper=1.0)

    def read(self, solution: Int64) -> dict[Spot, list[int]]:
        """Nodes by what they take, once for each member."""
        found: dict[Spot, list[int]] = defaultdict(list)
        for spot, column, node in self._columns:
            found[spot] += [node] * int(solution[column])
        return found


# ── rules about domains ──────────────────────────────────────────────────────────────────────────


def _add_rule(
    rows: _Rows, rule: Apart | Near, parts: Sequence[Int64], taken: _Taken, available: Int64
) -> None:
    """Variables: whether a shape is in a domain at all; whether those who need somebody begin there."""
    begun: list[Term] = []
    for regions_here in _regions_of(rule, parts).values():
        terms = {shape: _terms(taken, (shape,), regions_here) for shape in range(len(available))}
        there = {
            shape: _presence(rows, found, int(available[shape])) for shape, found in terms.items() if found
        }
        if isinstance(rule, Apart):
            _keep_apart(rows, rule, terms, there)
        elif not rule.is_helped[parts[regions_here[0]][0]]:
            begins = rows.variable(float(rule.may_begin))
            begun.append((begins, 1.0))
            beginners = [(column, -1.0) for s, column in there.items() if rule.helps[s] and rule.needs[s]]
            rows.add([(begins, 1.0), *beginners], upper=0.0)
            helpers = [(column, -1.0) for s, column in there.items() if rule.helps[s] and not rule.needs[s]]
            for column in (column for s, column in there.items() if rule.needs[s]):
                rows.add([(column, 1.0), (begins, -1.0), *helpers], upper=0.0)
    rows.add(begun, upper=1.0)


def _keep_even(rows: _Rows, rule: Even, parts: Sequence[Int64], taken: _Taken, available: Int64) -> None:
    """Variables: how many the emptiest domain has; whether a domain that is too full already gets any."""
    carriers, counted = (np.flatnonzero(which).tolist() for which in (rule.carries, rule.counts))
    regions_of = _regions_of(rule, parts)
    most = int(available[rule.counts].sum()) + int(rule.before.min(initial=0))
    fewest = rows.variable(0.0 if rule.is_short else float(most))
    for domain, before in enumerate(rule.before.tolist()):
        regions_here = regions_of.get(domain, ())
        here = _terms(taken, counted, regions_here)
        rows.add([(fewest, 1.0), *((column, -value) for column, value in here)], upper=float(before))
        keepers = _terms(taken, carriers, regions_here)
        if keepers:
            room = rule.max_skew - before
            if room < 0:
                there = _presence(rows, keepers, int(available[rule.carries].sum()))
                keepers = [*keepers, (there, -float(room))]
            rows.add([*keepers, (fewest, -1.0)], upper=float(max(0, room)))


def _regions_of(rule: Rule, parts: Sequence[Int64]) -> dict[int, list[int]]:
    """The regions of each domain of a rule, of those that have any."""
    found: dict[int, list[int]] = defaultdict(list)
    for region, nodes in enumerate(parts):
        if rule.domain[nodes[0]] >= 0:
            found[int(rule.domain[nodes[0]])].append(region)
    return found


def _terms(taken: _Taken, shapes: Iterable[int], regions_here: Iterable[int]) -> list[Term]:
    """All members of these shapes in these regions."""
    spots = [(shape, region) for shape in shapes for region in regions_here]
    return [term for spot in spots for term in taken.get(spot, ())]


def _presence(rows: _Rows, terms: Sequence[Term], most: int) -> int:
    """A variable that is 1 where these members are any, else 0."""
    there = rows.variable(1)
    rows.add([*terms, (there, -float(most))], upper=0.0)
    rows.add([*((column, -value) for column, value in terms), (there, 1.0)], upper=0.0)
    return there


def _keep_apart(
    rows: _Rows, rule: Apart, terms: Mapping[int, Sequence[Term]], there: Mapping[int, int]
) -> None:
    for one, other in np.argwhere(np.triu(rule.conflict)).tolist():
        if one == other:
            rows.add(terms[one], upper=1.0)
        elif one in there and other in there:
            rows.add([(there[one], 1.0), (there[other], 1.0)], upper=1.0)


# ── demand ───────────────────────────────────────────────────────────────────────────────────────


class _Site(Struct, frozen=True):
    """A kind in one of its domains: how many groups of it, and of each lot the members by region."""

    groups: int
    members: tuple[tuple[tuple[int, int], ...], ...]


class _Level:
    """A kind with its sites by domain, and the kinds below it."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.sites: dict[int, _Site] = {}
        self.below: list[_Level] = []


class _Demand:
    """Variables: groups of a kind in a domain; members of a lot, in a region, of the groups in a domain.

    Constraints: a domain of a composite's kind has no more groups of a kind in it than such composites have,
    and as many as they need; groups have just the members they need, and no more of a lot than there are;
    members of a shape in a region are no more than its nodes take.
    """

    def __init__(
        self,
        rows: _Rows,
        root: Kind,
        domain: int,
        parts: Sequence[Int64],
        supply: Mapping[Spot, Sequence[Term]],
    ) -> None:
        self._rows = rows
        self._parts = parts
        self._supply = supply
        self.taken: dict[Spot, list[Term]] = defaultdict(list)
        self._root = _Level(root)
        site = self._settle(self._root, domain, most=1)
        rows.add([(site.groups, 1.0)], lower=1.0)
        self._descend(self._root, most=1)
        for spot, terms in self.taken.items():
            rows.add([*terms, *((column, -value) for column, value in supply[spot])], upper=0.0)

    def _descend(self, level: _Level, most: int) -> None:
        """Add what is below; `most`: how many groups of this kind the tree has."""
        placed: dict[int, list[Term]] = {index: [] for index in level.sites}
        for kind in level.kind.kinds:
            below = _Level(kind)
            level.below.append(below)
            for above, site in level.sites.items():
                inside = [
                    self._settle(below, index, most * kind.count) for index in kind.part.domains_in(above)
                ]
                terms = [(inner.groups, 1.0) for inner in inside]
                self._rows.add([*terms, (site.groups, -float(kind.count))], upper=0.0)
                placed[above] += terms
            self._descend(below, most * kind.count)
        if level.kind.part.parts:
            for index, site in level.sites.items():
                needs = (site.groups, -float(level.kind.part.needed))
                self._rows.add([*placed[index], needs], lower=0.0)

    def _settle(self, level: _Level, domain: int, most: int) -> _Site:
        """Add groups of this kind in this domain, and their members."""
        kind = level.kind
        groups = self._rows.variable(most)
        inside = [
            index
            for index, nodes in enumerate(self._parts)
            if not kind.part.parts and np.isin(nodes[0], kind.part.domains[domain])
        ]
        members = []
        for shape, available in zip(kind.shapes, kind.available, strict=True):
            columns = {
                region: self._rows.variable(available * most)
                for region in inside
                if (shape, region) in self._supply
            }
            for region, column in columns.items():
                self.taken[shape, region].append((column, 1.0))
            terms = [(column, 1.0) for column in columns.values()]
            self._rows.add([*terms, (groups, -float(available))], upper=0.0)
            members.append(tuple(columns.items()))
        if not kind.part.parts:
            every = [(column, 1.0) for columns in members for _, column in columns]
            self._rows.add([*every, (groups, -float(kind.part.needed))], lower=0.0, upper=0.0)
        level.sites[domain] = _Site(groups, tuple(members))
        return level.sites[domain]

    def read(self, solution: Int64, nodes: Mapping[Spot, list[int]]) -> list[Placed]:
        """The root as often as the solution places it."""
        (found,) = self._read(
            self._root, solution, {spot: list(each) for spot, each in nodes.items()}
        ).values()
        return found

    def _read(
        self, level: _Level, solution: Int64, nodes: Mapping[Spot, list[int]]
    ) -> dict[int, list[Placed]]:
        """The groups of a kind by domain; their nodes are taken from `nodes`."""
        kind = level.kind
        below = [self._read(inner, solution, nodes) for inner in level.below]
        found: dict[int, list[Placed]] = {}
        for index, site in level.sites.items():
            count = int(solution[site.groups])
            if not kind.part.parts:
                lots = [
                    _take(shape, columns, solution, nodes)
                    for shape, columns in zip(kind.shapes, site.members, strict=True)
                ]
                shares = _deal(lots, kind.available, kind.part.needed, count)
                found[index] = [Placed(nodes=share) for share in shares]
                continue
            groups = [
                [group for inner in each.kind.part.domains_in(index) for group in placed[inner]]
                for each, placed in zip(level.below, below, strict=True)
            ]
            most = [each.kind.count for each in level.below]
            found[index] = [Placed(groups=share) for share in _deal(groups, most, kind.part.needed, count)]
        return found


def _take(
    shape: int, columns: Sequence[tuple[int, int]], solution: Int64, nodes: Mapping[Spot, list[int]]
) -> list[int]:
    """As many nodes of each region as the solution says; they are gone from `nodes` then."""
    taken: list[int] = []
    for region, column in columns:
        here = nodes.get((shape, region), [])
        count = int(solution[column])
        taken += here[:count]
        del here[:count]
    return taken


def _deal(
    things: Sequence[Sequence[Thing]], most: Sequence[int], total: int, groups: int
) -> list[list[Sequence[Thing]]]:
    """Things by kind, dealt out to so many groups."""
    shares = share_out([len(each) for each in things], most, total, groups)
    given = [0] * len(things)
    dealt = []
    for share in shares:
        dealt.append([each[at : at + n] for each, at, n in zip(things, given, share, strict=True)])
        given = [at + n for at, n in zip(given, share, strict=True)]
    return dealt
