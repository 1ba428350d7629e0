"""Find a placement for members of unlike shapes, or prove that there is none, with an integer program.

The program (`program.py`) has small whole numbers for coefficients, and neither equal nodes, nor equal
members nor equal groups can trade places.  What the solver finds is checked in integers; only its word
"infeasible" is believed.  In comes a `Problem`, out goes an `Answer`.
"""

from typing import Any

import numpy as np
from msgspec import Struct

from muster.base.arrays import Float64
from muster.placement.kinds import seat_counts
from muster.placement.packing import Answer, Problem, Verdict, is_placement, may_hold
from muster.placement.program import Program, Question

PATTERN_STEPS_MAX = 60_000  # about 0.1 s in one domain


class Limits(Struct, frozen=True):
    """How much a search may cost: time where a clock decides, branches where a run must repeat exactly."""

    time_ms: int | None = None
    branches: int | None = None

    @property
    def words(self) -> str:
        """As people are told."""
        return f"{self.time_ms} ms" if self.time_ms is not None else f"{self.branches} branches"


def solve(problem: Problem, limits: Limits) -> Answer:
    """Search the domains of the root in their order; the first that holds what is needed is the answer.

    Impossible only if that is proved of every domain.
    """
    spent_ms = 0.0
    gave_up = False
    for domain in range(len(problem.root.domains)):
        if not may_hold(problem, domain):
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


def _solve_domain(problem: Problem, domain: int, limits: Limits) -> tuple[Answer, float]:
    """What there is in one domain, and the milliseconds the solver took."""
    question = Question(problem, domain, steps_max=PATTERN_STEPS_MAX)
    verdict, solution, used_ms = run_solver(question.program, limits)
    if verdict is Verdict.IMPOSSIBLE and question.is_trusted:
        return Answer(verdict), used_ms
    if verdict is Verdict.FOUND:
        placed = question.read(np.rint(solution).astype(np.int64))
        counts = seat_counts(problem, placed) if placed is not None else None
        if counts is not None and is_placement(problem, counts):
            return Answer(Verdict.FOUND, counts), used_ms
    return Answer(Verdict.GAVE_UP, effort=limits.words), used_ms


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
    model.integrality_ = [highspy.HighsVarType.kInteger] * variable_count
    return model
