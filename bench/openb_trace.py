"""The openb trace as columns, and the sequence of arrivals that FGD's authors make of it.

In come the CSV files of `data/openb`; out go nodes and pods, and per seed an order of arrivals and one of
nodes: the published simulator puts a random number before every node's name, and of equal scores the first
name wins.  Next: `openb_policies.py`.
"""

import csv
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

FOLDER = Path(__file__).parent / "data" / "openb"
VARIANTS = ("default", "multigpu50", "gpushare40", "gpuspec33", "cpu100")
DEVICE_MILLI = 1000
DEVICES_MAX = 8
DEMAND = 1.3  # GPUs asked for by all arrivals, as a share of what the cluster has


class PodShape(NamedTuple):
    """What a pod asks for; equal pods are one shape.  `gpu_milli` is of each of its `gpus`."""

    cpu_milli: int
    memory_mib: int
    gpus: int
    gpu_milli: int
    models: tuple[str, ...]

    @property
    def total_gpu_milli(self) -> int:
        """Thousandths of GPUs it takes in all."""
        return self.gpus * self.gpu_milli

    @property
    def is_shared(self) -> bool:
        """Whether it takes only a part of one device."""
        return self.gpus == 1 and self.gpu_milli < DEVICE_MILLI


class Nodes(NamedTuple):
    """The cluster, by row in order of name.  Shapes: cpu_milli, memory_mib, gpus [N]."""

    names: tuple[str, ...]
    cpu_milli: np.ndarray
    memory_mib: np.ndarray
    gpus: np.ndarray
    models: tuple[str, ...]

    @property
    def gpu_milli(self) -> int:
        """Thousandths of GPUs of the whole cluster."""
        return int(self.gpus.sum()) * DEVICE_MILLI


@cache
def read_nodes() -> Nodes:
    """The 1,213 nodes with GPUs."""
    with (FOLDER / "openb_node_list_gpu_node.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["sn"])

    def column(name: str) -> np.ndarray:
        return np.array([int(row[name]) for row in rows], dtype=np.int64)

    return Nodes(
        tuple(row["sn"] for row in rows),
        column("cpu_milli"),
        column("memory_mib"),
        column("gpu"),
        tuple(row["model"] for row in rows),
    )


@cache
def read_pods(variant: str) -> tuple[PodShape, ...]:
    """The pods of one published list, in order of name."""
    with (FOLDER / f"openb_pod_list_{variant}.csv").open() as file:
        rows = sorted(csv.DictReader(file), key=lambda row: row["name"])
    return tuple(_shape_of(row) for row in rows)


def _shape_of(row: dict[str, str]) -> PodShape:
    gpus = int(row["num_gpu"])
    models = tuple(part for part in (row.get("gpu_spec") or "").split("|") if part)
    return PodShape(
        cpu_milli=int(row["cpu_milli"]),
        memory_mib=int(row["memory_mib"]),
        gpus=gpus,
        gpu_milli=int(row["gpu_milli"]) if gpus else 0,
        models=models if gpus else (),
    )


def shuffle_nodes(nodes: Nodes, rng: np.random.Generator) -> Nodes:
    """The same nodes in another order."""
    order = rng.permutation(len(nodes.names))
    return Nodes(
        tuple(nodes.names[row] for row in order),
        nodes.cpu_milli[order],
        nodes.memory_mib[order],
        nodes.gpus[order],
        tuple(nodes.models[row] for row in order),
    )


def make_arrivals(
    pods: tuple[PodShape, ...], capacity_milli: int, rng: np.random.Generator
) -> list[PodShape]:
    """Tune the list to 130 % of the cluster's GPUs, and shuffle it.

    Too short a list grows by copies drawn uniformly until the next one would exceed the demand; from too
    long a one pods are taken away at random.
    """
    wanted = DEMAND * capacity_milli
    arrivals = list(pods)
    asked = sum(pod.total_gpu_milli for pod in arrivals)
    while asked > wanted:
        asked -= arrivals.pop(int(rng.integers(len(arrivals)))).total_gpu_milli
    while True:
        copy = pods[int(rng.integers(len(pods)))]
        if asked + copy.total_gpu_milli > wanted:
            break
        arrivals.append(copy)
        asked += copy.total_gpu_milli
    return [arrivals[index] for index in rng.permutation(len(arrivals))]
