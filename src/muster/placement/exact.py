"""Find a placement for members of unlike shapes, or prove that there is none, with an integer program.

The program chooses how often each class of nodes takes each of its patterns (`patterns.py`): its coefficients
are small whole numbers, and neither equal nodes nor equal members can trade places.  Where the patterns are
too many it chooses numbers of members per node instead.  What the solver finds is checked in integers;
only its word "infeasible" is believed.  In comes a `Problem`, out goes an `Answer`.
Axes: S shapes, N nodes, D domains, V variables of the program, C its constraints.
"""

from typing import Any

import numpy as np
from msgspec import Struct

from muster.base.arrays import Float64, Int64
from muster.placement.packing import (
    Answer,
    Problem,
    Verdict,
    copies_alone,
    count_at_most,
    is_placement,
)
from muster.placement.patterns import NodeClass, find_classes

PATTERN_STEPS_MAX = 60_000  # about 0.1 s in one domain
COEFFICIENT_MAX = 2**20  # beyond this the solver's tolerance of 1e-6 could hide a whole unit


class Limits(Struct, frozen=True):
    """How much a search may cost: time where a clock decides, branches where a run must repeat exactly."""

    time_ms: int | None = None
    branches: int | None = None

    @property
    def words(self) -> str:
        """As people are told."""
        return f"{self.time_ms} ms" if self.time_ms is not None else f"{self.branches} branches"


class Program(Struct, frozen=True):
    """An integer program without an objective: whole numbers x with lower <= A x <= upper.

    Shapes   variable_max [V]; lower, upper [C]; entries in order of their rows: row, column, value [E].
    `is_whole` [V]: the variable must be a whole number (the others follow from those that must).
    """

    variable_max: Float64
    is_whole: list[bool]
    lower: Float64
    upper: Float64
    row: Int64
    column: Int64
    value: Float64


def solve(problem: Problem, limits: Limits) -> Answer:
    """Search the domains in their order; the first that holds enough members is the answer.

    Impossible only if that is proved of every domain.
    """
    spent_ms = 0.0
    gave_up = False
    for domain in problem.domains:
        if count_at_most(problem, domain) < problem.needed:
            continue
        left = limits
        if limits.time_ms is not None:
            left = Limits(time_ms=int(limits.time_ms - spent_ms))
            if left.time_ms is not None and left.time_ms <= 0:
                return Answer(Verdict.GAVE_UP, effort=limits.words)
        answer, used_ms = _solve_domain(problem, domain, left)
        spent_ms += used_ms
        if answer.verdict is Verdict.FOUND:
            return answer
        gave_up = gave_up or answer.verdict is Verdict.GAVE_UP
    return Answer(Verdict.GAVE_UP, effort=limits.words) if gave_up else Answer(Verdict.IMPOSSIBLE)


def _solve_domain(problem: Problem, domain: Int64, limits: Limits) -> tuple[Answer, float]:
    """What there is in one domain, and the milliseconds the solver took."""
    classes = find_classes(problem.packing, problem.available, domain, steps_max=PATTERN_STEPS_MAX)
    if classes is not None:
        program = _program_of_patterns(problem, classes)
        is_trusted = True
    else:
        program, is_trusted = _program_of_nodes(problem, domain)
    verdict, solution, used_ms = run_solver(program, limits)
    if verdict is not Verdict.FOUND:
        if verdict is Verdict.IMPOSSIBLE and not is_trusted:
            verdict = Verdict.GAVE_UP
        return Answer(verdict, effort=limits.words), used_ms
    whole = np.rint(solution).astype(np.int64)
    counts = (
        _counts_of_patterns(problem, classes, whole)
        if classes is not None
        else _counts_of_nodes(problem, domain, whole)
    )
    counts = _trim(counts, problem.available)
    if not is_placement(problem, counts):
        return Answer(Verdict.GAVE_UP, effort=limits.words), used_ms
    return Answer(Verdict.FOUND, counts), used_ms


# ── patterns ─────────────────────────────────────────────────────────────────────────────────────


def _program_of_patterns(problem: Problem, classes: tuple[NodeClass, ...]) -> Program:
    """Variables: nodes of class c with pattern p, then members of each shape that count.

    Constraints: a class has so many nodes; a shape counts at most what its patterns take; enough count.
    """
    shape_count = len(problem.available)
    rows, columns, values = [], [], []
    variable_max: list[float] = []
    upper: list[float] = []
    for index, node_class in enumerate(classes):
        upper.append(float(len(node_class.nodes)))
        for pattern in node_class.patterns:
            column = len(variable_max)
            variable_max.append(float(len(node_class.nodes)))
            rows.append(index)
            columns.append(column)
            values.append(1.0)
            for shape, count in enumerate(pattern):
                if count:
                    rows.append(len(classes) + shape)
                    columns.append(column)
                    values.append(-float(count))
    counted = len(variable_max)
    for shape in range(shape_count):
        rows += [len(classes) + shape, len(classes) + shape_count]
        columns += [counted + shape, counted + shape]
        values += [1.0, 1.0]
    variable_max += problem.available.astype(np.float64).tolist()
    return Program(
        variable_max=np.array(variable_max),
        is_whole=[True] * counted + [False] * shape_count,
        lower=np.array([-np.inf] * (len(classes) + shape_count) + [float(problem.needed)]),
        upper=np.array([*upper, *([0.0] * shape_count), np.inf]),
        row=np.array(rows, dtype=np.int64),
        column=np.array(columns, dtype=np.int64),
        value=np.array(values),
    )


def _counts_of_patterns(problem: Problem, classes: tuple[NodeClass, ...], solution: Int64) -> Int64:
    counts = np.zeros(problem.packing.feasible.shape, dtype=np.int64)
    variable = 0
    for node_class in classes:
        nodes = iter(node_class.nodes)
        for pattern in node_class.patterns:
            for _ in range(int(solution[variable])):
                counts[:, next(nodes)] = pattern
            variable += 1
    return counts


# ── members per node ─────────────────────────────────────────────────────────────────────────────


def _program_of_nodes(problem: Problem, domain: Int64) -> tuple[Program, bool]:
    """Variables: members of shape s on node n; where shapes exclude each other, whether s is on n at all.

    Returns  the program, and whether its numbers are small enough that "infeasible" can be believed.
    """
    packing = problem.packing
    shape_count, node_count = len(problem.available), len(domain)
    most = copies_alone(packing, problem.available)[:, domain]
    unit = np.array([max(1, int(np.gcd.reduce(column))) for column in packing.need.T], dtype=np.int64)
    need, room = packing.need // unit, np.maximum(packing.room[domain], 0) // unit
    built = _Rows()
    for node in range(node_count):
        for column in np.flatnonzero((need > 0).any(axis=0)).tolist():
            terms = [(shape * node_count + node, float(need[shape, column])) for shape in range(shape_count)]
            built.add([term for term in terms if term[1]], upper=float(room[node, column]))
    for shape in range(shape_count):
        built.add(
            [(shape * node_count + node, 1.0) for node in range(node_count)],
            upper=float(problem.available[shape]),
        )
    built.add([(column, 1.0) for column in range(shape_count * node_count)], lower=float(problem.needed))
    variable_max = [most.astype(np.float64).reshape(-1)]
    excluding = np.argwhere(np.triu(packing.conflict, k=1)).tolist()
    if excluding:
        is_there = shape_count * node_count
        variable_max.append((most > 0).astype(np.float64).reshape(-1))
        for column, limit in enumerate(most.reshape(-1).tolist()):
            built.add([(column, 1.0), (is_there + column, -float(limit))], upper=0.0)
        for one, other in excluding:
            for node in range(node_count):
                pair = (is_there + one * node_count + node, is_there + other * node_count + node)
                built.add([(pair[0], 1.0), (pair[1], 1.0)], upper=1.0)
    is_trusted = bool(need.max(initial=0) <= COEFFICIENT_MAX and room.max(initial=0) <= COEFFICIENT_MAX)
    return built.program(np.concatenate(variable_max)), is_trusted


class _Rows:
    """Constraints gathered one by one."""

    def __init__(self) -> None:
        self._row: list[int] = []
        self._column: list[int] = []
        self._value: list[float] = []
        self._lower: list[float] = []
        self._upper: list[float] = []

    def add(self, terms: list[tuple[int, float]], *, lower: float = -np.inf, upper: float = np.inf) -> None:
        """lower <= Σ value · variable <= upper."""
        for column, value in terms:
            self._row.append(len(self._lower))
            self._column.append(column)
            self._value.append(value)
        self._lower.append(lower)
        self._upper.append(upper)

    def program(self, variable_max: Float64) -> Program:
        """All of them, over variables that are whole numbers up to these."""
        return Program(
            variable_max=variable_max,
            is_whole=[True] * len(variable_max),
            lower=np.array(self._lower),
            upper=np.array(self._upper),
            row=np.array(self._row, dtype=np.int64),
            column=np.array(self._column, dtype=np.int64),
            value=np.array(self._value),
        )


def _counts_of_nodes(problem: Problem, domain: Int64, solution: Int64) -> Int64:
    counts = np.zeros(problem.packing.feasible.shape, dtype=np.int64)
    shape_count = len(problem.available)
    counts[:, domain] = solution[: shape_count * len(domain)].reshape(shape_count, len(domain))
    return counts


# ── both ─────────────────────────────────────────────────────────────────────────────────────────


def _trim(counts: Int64, available: Int64) -> Int64:
    """Take away what is more than there are members, from the last nodes first."""
    before = np.cumsum(counts, axis=1) - counts
    trimmed: Int64 = np.clip(available[:, np.newaxis] - before, 0, counts)
    return trimmed


def run_solver(program: Program, limits: Limits) -> tuple[Verdict, Float64, float]:
    """Ask HiGHS: verdict, solution [V], and the milliseconds it took by its own clock."""
    import highspy  # 0.2 s and 37 MB, only for those who search

    solver = _silent_solver(highspy)
    for option, value in _options(limits).items():
        solver.setOptionValue(option, value)
    solver.passModel(_model(highspy, program))
    solver.run()
    status = solver.getModelStatus()
    used_ms = 1000.0 * solver.getRunTime()
    if status == highspy.HighsModelStatus.kOptimal:
        return Verdict.FOUND, np.array(solver.getSolution().col_value, dtype=np.float64), used_ms
    if status == highspy.HighsModelStatus.kInfeasible:
        return Verdict.IMPOSSIBLE, np.empty(0), used_ms
    return Verdict.GAVE_UP, np.empty(0), used_ms


def _silent_solver(highspy: Any) -> Any:
    """A solver as the extension module makes it: the class that is wrapped around it prints a banner."""
    return highspy._Highs()


def _options(limits: Limits) -> dict[str, Any]:
    """One thread and one seed: equal input, equal output."""
    options: dict[str, Any] = {"output_flag": False, "threads": 1, "random_seed": 0}
    if limits.time_ms is not None:
        options["time_limit"] = limits.time_ms / 1000.0
    if limits.branches is not None:
        options["mip_max_nodes"] = limits.branches
    return options


def _model(highspy: Any, program: Program) -> Any:
    """The program as HiGHS takes it, by columns."""
    variable_count = len(program.variable_max)
    order = np.lexsort((program.row, program.column))
    starts = np.searchsorted(program.column[order], np.arange(variable_count + 1))
    model = highspy.HighsLp()
    model.num_col_ = variable_count
    model.num_row_ = len(program.lower)
    model.col_cost_ = np.zeros(variable_count)
    model.col_lower_ = np.zeros(variable_count)
    model.col_upper_ = program.variable_max
    model.row_lower_ = np.where(np.isneginf(program.lower), -highspy.kHighsInf, program.lower)
    model.row_upper_ = np.where(np.isposinf(program.upper), highspy.kHighsInf, program.upper)
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.num_col_ = variable_count
    model.a_matrix_.num_row_ = len(program.lower)
    model.a_matrix_.start_ = starts.astype(np.int32)
    model.a_matrix_.index_ = program.row[order].astype(np.int32)
    model.a_matrix_.value_ = program.value[order]
    whole = (highspy.HighsVarType.kContinuous, highspy.HighsVarType.kInteger)
    model.integrality_ = [whole[is_whole] for is_whole in program.is_whole]
    return model
