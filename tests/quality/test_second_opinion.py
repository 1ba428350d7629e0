"""The exact search against another solver (CP-SAT), where trying everything takes too long.

Demand grows step by step until it cannot be met any more: at every step both must say the same, so that the
last placement that exists is found and the first that does not is proved not to.
"""

import numpy as np
import pytest
from ortools.sat.python import cp_model

from muster.placement.exact import Limits, solve
from muster.placement.packing import Packing, Problem, Verdict, group_problem, is_placement

GIBI = 2**30
#          gpu cpu(milli) memory      pods
SHAPES = [[4, 8_000, 64 * GIBI, 1], [0, 12_000, 16 * GIBI, 1], [1, 2_000, 96 * GIBI, 1]]
NODES = 40


def partly_full_cluster(seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return np.stack(
        [
            generator.integers(0, 9, NODES),
            generator.integers(0, 97, NODES) * 1_000,
            generator.integers(0, 512, NODES) * GIBI,
            generator.integers(2, 20, NODES),
        ],
        axis=1,
    )


def demand(step: int, seed: int, *, surplus: int = 0, racks: int = 1) -> Problem:
    """Step by step more members; the third shape not beside the first where the seed is odd."""
    conflict = np.zeros((3, 3), dtype=np.bool_)
    conflict[0, 2] = conflict[2, 0] = seed % 2 == 1
    available = np.array([(2 * step) // 3, step, step + 1])
    everywhere = np.arange(NODES)
    return group_problem(
        Packing(
            room=partly_full_cluster(seed),
            need=np.array(SHAPES),
            conflict=conflict,
            feasible=np.random.default_rng(seed + 1000).random((3, NODES)) < 0.9,
        ),
        available=available,
        needed=int(available.sum()) - surplus,
        domains=tuple(everywhere[rack::racks] for rack in range(racks)),
        is_exact=True,
    )


def second_opinion(problem: Problem) -> bool:
    """Members of each shape on each node as integers, conflicts as booleans, in any of the domains."""
    packing = problem.packing
    return any(_fits(problem, packing, domain.tolist()) for domain in problem.root.domains)


def _fits(problem: Problem, packing: Packing, nodes: list[int]) -> bool:
    model = cp_model.CpModel()
    shapes = range(len(problem.available))
    counts, there = {}, {}
    for shape in shapes:
        most = int(problem.available[shape])
        for node in nodes:
            limit = most if packing.feasible[shape, node] else 0
            counts[shape, node] = model.new_int_var(0, limit, "")
            there[shape, node] = model.new_bool_var("")
            model.add(counts[shape, node] <= most * there[shape, node])
        model.add(sum(counts[shape, node] for node in nodes) <= most)
    for node in nodes:
        for column in range(packing.room.shape[1]):
            needs = [int(packing.need[shape, column]) * counts[shape, node] for shape in shapes]
            model.add(sum(needs) <= max(0, int(packing.room[node, column])))
        for one, other in np.argwhere(np.triu(packing.conflict)).tolist():
            if one == other:
                model.add(counts[one, node] <= 1)
            else:
                model.add_bool_or(there[one, node].negated(), there[other, node].negated())
    model.add(sum(counts.values()) >= problem.root.needed)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.INFEASIBLE)
    return status != cp_model.INFEASIBLE


@pytest.mark.parametrize(("surplus", "racks"), [(0, 1), (5, 1), (0, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_another_solver_agrees_up_to_the_last_placement_there_is(seed: int, surplus: int, racks: int) -> None:
    said = []
    for step in range(2, 4 * NODES):
        problem = demand(step, seed, surplus=surplus, racks=racks)
        answer = solve(problem, Limits(branches=100_000))
        assert (answer.verdict is Verdict.FOUND) is second_opinion(problem), f"step {step}"
        assert answer.verdict is not Verdict.GAVE_UP
        if answer.counts is not None:
            assert is_placement(problem, answer.counts)
        said.append(answer.verdict)
        if said[-2:] == [Verdict.IMPOSSIBLE] * 2:
            break
    assert {Verdict.FOUND, Verdict.IMPOSSIBLE} <= set(said)
