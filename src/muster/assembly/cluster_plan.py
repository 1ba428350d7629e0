"""What an embedded cluster is to consist of, and the building of it: server, nodes, controllers, scheduler.

In comes a `ClusterPlan`, out comes an `EmbeddedCluster` that nobody drives yet.  Next: `runtime/embedded.py`
(real clock, sockets) and `runtime/stage.py` (a story played on it).
"""

from typing import Any

import numpy as np
from msgspec import Struct

from muster.apiserver.exchange import Request
from muster.apiserver.server import DEFAULT_GATES, ApiServer
from muster.assembly.config import Config
from muster.assembly.embedded import EmbeddedCluster, build_controllers
from muster.assembly.profiles import build
from muster.base.errors import ConfigError
from muster.framework.runner import Stopwatch, zero_stopwatch


class ClusterPlan(Struct, frozen=True):
    """Which parts the cluster has; `nodes_source` names where the nodes came from, for messages.

    `gates` are the feature gates that are on.

    Without a `scheduler` nobody places pods; without kubelets nodes exist but nothing runs on them.
    """

    nodes: list[dict[str, Any]]
    nodes_source: str = "--nodes"
    kubelets: bool = True
    scheduler: Config | None = Config()
    gates: frozenset[str] = DEFAULT_GATES


def build_cluster(
    plan: ClusterPlan, rng: np.random.Generator, now_s: float, *, stopwatch: Stopwatch = zero_stopwatch
) -> EmbeddedCluster:
    """Build the cluster with its nodes in it.

    Raises   ConfigError with the server's words for a node that it refuses.
    """
    schedulers = [] if plan.scheduler is None else [build(plan.scheduler, stopwatch=stopwatch)]
    cluster = EmbeddedCluster(
        ApiServer(rng, gates=plan.gates, now_s=now_s),
        controllers=build_controllers(kubelets=plan.kubelets),
        schedulers=schedulers,
    )
    for node in plan.nodes:
        request = Request(
            "POST",
            "/api/v1/nodes",
            query=(("fieldValidation", "Strict"),),
            headers={"content-type": "application/json"},
            body=node,
        )
        answer = cluster.request(request, now_s)
        if answer.status >= 300:
            message = str((answer.object or {}).get("message"))
            raise ConfigError(message, path=f"{plan.nodes_source}: node {node['metadata']['name']!r}")
    return cluster
