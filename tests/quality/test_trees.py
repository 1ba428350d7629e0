"""The exact search of trees against another solver (CP-SAT), where trying everything takes too long.

A zone for the tree, a rack for each of its pod groups, members of three shapes.  Groups grow step by step
until they cannot be placed any more: at every step both must say the same.
"""

import numpy as np
import pytest
from ortools.sat.python import cp_model

from muster.base.arrays import Int64
from muster.placement.exact import Limits, solve
from muster.placement.packing import Packing, Problem, Verdict, is_placement
from muster.placement.parts import Part

NODES, RACKS, ZONES = 36, 9, 3
SHAPES = [[4, 8, 1], [0, 12, 1], [1, 2, 1]]  # gpu, cpu, pods
NODES_OF_RACK = [np.arange(rack, NODES, RACKS) for rack in range(RACKS)]
NODES_OF_ZONE = [np.flatnonzero(np.arange(NODES) % RACKS % ZONES == zone) for zone in range(ZONES)]


def tree(step: int, seed: int, *, spare_groups: int) -> Problem:
    """Six groups: four in a rack each, two wherever the tree is; every second one has surplus members."""
    generator = np.random.default_rng(seed)
    room = np.stack(
        [generator.integers(0, 9, NODES), generator.integers(0, 97, NODES), generator.integers(2, 20, NODES)],
        axis=1,
    )
    conflict = np.zeros((3, 3), dtype=np.bool_)
    conflict[0, 2] = conflict[2, 0] = seed % 2 == 1
    zones = tuple(NODES_OF_ZONE)
    racks = [(zone, rack) for zone in range(ZONES) for rack in range(RACKS) if rack % ZONES == zone]
    parts, shape_of_lot, available = [], [], []
    for group in range(6):
        sizes = [step // 3 + group % 2, step // 2, 1 + group // 2]
        lots = tuple(range(len(available), len(available) + 3))
        shape_of_lot += [0, 1, 2]
        available += sizes
        where = ([NODES_OF_RACK[rack] for _, rack in racks], [zone for zone, _ in racks])
        if group >= 4:
            where = (list(zones), list(range(ZONES)))
        parts.append(Part(sum(sizes) - group % 2, tuple(where[0]), tuple(where[1]), lots=lots))
    root = Part(6 - spare_groups, zones, (0,) * ZONES, parts=tuple(parts))
    packing = Packing(room, np.array(SHAPES), conflict, np.ones((3, NODES), dtype=np.bool_))
    return Problem(packing, np.array(shape_of_lot), np.array(available), root, is_exact=True)


def second_opinion(problem: Problem) -> bool:
    return any(_fits(problem, zone) for zone in range(ZONES))


def _fits(problem: Problem, zone: int) -> bool:
    model = cp_model.CpModel()
    nodes: list[int] = problem.root.domains[zone].tolist()
    counts = {
        (lot, node): model.new_int_var(0, int(problem.available[lot]), "")
        for lot in range(len(problem.available))
        for node in nodes
    }
    placed = []
    for part in problem.root.parts:
        places = [part.domains[index] for index in part.domains_in(zone)]
        chosen = [model.new_bool_var("") for _ in places]
        is_placed = model.new_bool_var("")
        placed.append(is_placed)
        model.add(sum(chosen) == is_placed)
        for lot in part.lots:
            model.add(sum(counts[lot, node] for node in nodes) <= int(problem.available[lot]))
            for node in nodes:
                here = [flag for flag, place in zip(chosen, places, strict=True) if _has(place, node)]
                model.add(counts[lot, node] <= int(problem.available[lot]) * sum(here))
        members = sum(counts[lot, node] for lot in part.lots for node in nodes)
        model.add(members >= part.needed * is_placed)
    _add_nodes(model, problem, counts, nodes)
    model.add(sum(placed) >= problem.root.needed)
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    status = solver.solve(model)
    assert status in (cp_model.OPTIMAL, cp_model.FEASIBLE, cp_model.INFEASIBLE)
    return status != cp_model.INFEASIBLE


def _has(place: Int64, node: int) -> bool:
    return bool((place == node).any())


def _add_nodes(
    model: cp_model.CpModel,
    problem: Problem,
    counts: dict[tuple[int, int], cp_model.IntVar],
    nodes: list[int],
) -> None:
    packing = problem.packing
    lots_of = [np.flatnonzero(problem.shape_of_lot == shape).tolist() for shape in range(len(SHAPES))]
    for node in nodes:
        for column in range(packing.room.shape[1]):
            needs = [
                int(packing.need[shape, column]) * counts[lot, node]
                for shape, lots in enumerate(lots_of)
                for lot in lots
            ]
            model.add(sum(needs) <= int(packing.room[node, column]))
        for one, other in np.argwhere(np.triu(packing.conflict)).tolist():
            there = [model.new_bool_var("") for _ in range(2)]
            for flag, shape in zip(there, (one, other), strict=True):
                for lot in lots_of[shape]:
                    model.add(counts[lot, node] <= int(problem.available[lot]) * flag)
            model.add_bool_or(there[0].negated(), there[1].negated())


@pytest.mark.parametrize(("seed", "spare_groups"), [(0, 0), (1, 0), (2, 0), (3, 0), (1, 2), (3, 2)])
def test_another_solver_agrees_on_trees_up_to_the_last_placement(seed: int, spare_groups: int) -> None:
    said = []
    for step in range(1, 60, 1 + 2 * spare_groups):  # CP-SAT takes seconds where groups may be left out
        problem = tree(step, seed, spare_groups=spare_groups)
        answer = solve(problem, Limits(branches=100_000))
        assert (answer.verdict is Verdict.FOUND) is second_opinion(problem), f"step {step}"
        assert answer.verdict is not Verdict.GAVE_UP
        if answer.counts is not None:
            assert is_placement(problem, answer.counts)
        said.append(answer.verdict)
        if said[-2:] == [Verdict.IMPOSSIBLE] * 2:
            break
    assert {Verdict.FOUND, Verdict.IMPOSSIBLE} <= set(said)
