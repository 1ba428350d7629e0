"""What befalls the cluster as a whole in a storm, as a plan drawn from the seed.

Outages of the API server, a restored backup, replicas that lag, stand still, are killed or stopped, nodes
that are lost, fall silent and come back, quotas and webhooks that refuse.  Each incident ends by itself.
"""

from collections.abc import Callable

import numpy as np

from muster.controllers.device_driver import DEVICES
from muster.controllers.kubelet import KUBELET_ANNOTATION
from muster.sim.storm.replica import Replica
from muster.sim.storm.world import StormWorld
from muster.sim.view import Object, group_of, name_of, node_of

INCIDENTS = (12, 19)
_FIRST_S = 40.0
_LEASE_AND_MORE_S = (20.0, 60.0)


class Outages:
    """Posts the incidents of one run; `storm_s` is when the last one has ended."""

    def __init__(self, world: StormWorld, generator: np.random.Generator, *, storm_s: float) -> None:
        self._world = world
        self._client = world.client
        self._generator = generator
        self._storm_s = storm_s
        self.count = 0
        self._kinds: tuple[tuple[float, Callable[[], None]], ...] = (
            (2.0, self._api_goes_away),
            (1.0, self._backup_is_restored),
            (2.0, self._replica_lags),
            (2.0, self._leader_stands_still),
            (1.5, self._leader_sleeps),
            (1.0, self._standby_stands_still),
            (2.0, self._leader_is_killed),
            (1.5, self._leader_is_stopped),
            (1.5, self._leader_goes_while_the_standby_lags),
            (2.0, self._node_is_lost),
            (2.0, self._node_falls_silent),
            (1.5, self._pods_are_forced_off),
            (1.5, self._quota_is_full),
            (2.5, self._policy_denies_a_gang),
            (3.0, self._status_is_refused),
        )
        weights = np.array([weight for weight, _ in self._kinds])
        self._chances = weights / weights.sum()

    def start(self) -> None:
        """Post the incidents."""
        self.count = int(self._generator.integers(*INCIDENTS))
        for at_s in sorted(self._generator.uniform(_FIRST_S, self._storm_s - 240, self.count)):
            kind = int(self._generator.choice(len(self._kinds), p=self._chances))
            self._world.post_when_up(self._kinds[kind][1], float(at_s))

    def calm(self) -> None:
        """End what may still go on."""
        self._world.door.quota = None
        self._world.door.bound_max.clear()
        self._world.door.refuses_status = False
        for replica in self._world.replicas.values():
            replica.lag(0.0)
        for node in list(self._world.ledger.nodes.values()):
            self._start_kubelet(name_of(node))

    # ── the API server ──

    def _api_goes_away(self) -> None:
        self._world.go_away(self._between(10, 200))

    def _backup_is_restored(self) -> None:
        backup, taken_s = self._world.store.backup(), self._world.now_s()
        self._world.post_when_up(lambda: self._world.restore(backup, taken_s), self._between(5, 90))

    def _quota_is_full(self) -> None:
        self._world.door.quota = len(self._world.ledger.pods) + int(self._generator.integers(0, 5))
        self._world.post_when_up(self._lift_quota, self._between(30, 150))

    def _lift_quota(self) -> None:
        self._world.door.quota = None

    def _policy_denies_a_gang(self) -> None:
        """A webhook refuses the bindings of some gang, from now on or once it is half bound."""
        names = sorted(
            {group_of(pod) for pod in self._world.ledger.pods.values() if group_of(pod) and not node_of(pod)}
        )
        if not names:
            return
        name = names[int(self._generator.integers(len(names)))]
        self._world.limit_bindings(name, 0, self._between(20, 400))

    def _status_is_refused(self) -> None:
        """A webhook before the status of groups does not answer for a while."""
        self._world.door.refuses_status = True
        self._world.post_when_up(self._accept_status, self._between(15, 60))

    def _accept_status(self) -> None:
        self._world.door.refuses_status = False

    # ── replicas ──

    def _replica_lags(self) -> None:
        replica = self._pick(list(self._world.replicas.values()))
        if replica is not None:
            self._world.count("API server lags")
            replica.lag(self._between(2, 20))
            self._world.post(lambda: replica.lag(0.0), self._between(20, 120))

    def _stoppable_leader(self) -> Replica | None:
        """The one that decides; not if it has to notice a backup before revisions catch up with it."""
        leader = self._world.deciding
        return None if leader is None or self._world.is_outdated(leader) else leader

    def _leader_stands_still(self) -> None:
        if (leader := self._stoppable_leader()) is not None:
            self._world.count("leader stood still")
            leader.pause(self._between(*_LEASE_AND_MORE_S))

    def _leader_sleeps(self) -> None:
        if (leader := self._stoppable_leader()) is not None:
            self._world.count("machine of the leader slept")
            leader.sleep(self._between(*_LEASE_AND_MORE_S))

    def _standby_stands_still(self) -> None:
        standbys = [each for each in self._world.replicas.values() if not each.is_deciding]
        standby = self._pick([each for each in standbys if not self._world.is_outdated(each)])
        if standby is not None:
            self._world.count("standby stood still")
            standby.pause(self._between(5, 60))

    def _leader_is_killed(self) -> None:
        if (leader := self._world.deciding) is not None:
            self._world.count("leader killed")
            leader.kill()

    def _leader_is_stopped(self) -> None:
        if (leader := self._world.deciding) is not None:
            leader.stop()

    def _leader_goes_while_the_standby_lags(self) -> None:
        """Whoever takes over has not heard of what the other did last."""
        leader = self._world.deciding
        standby = self._pick([each for each in self._world.replicas.values() if each is not leader])
        if leader is not None and standby is not None:
            self._world.count("leader went while the standby lagged")
            standby.lag(self._between(10, 40))
            self._world.post(lambda: standby.lag(0.0), self._between(60, 120))
            self._world.post_when_up(
                leader.stop if self._generator.random() < 0.5 else leader.kill, self._between(5, 40)
            )

    # ── nodes ──

    def _node_is_lost(self) -> None:
        """The Node object is deleted; a node of its name comes back after a while."""
        node = self._pick_node()
        if node is not None:
            self._world.count("node lost")
            self._client.delete("node", name_of(node))
            self._world.post_when_up(lambda: self._bring_back(node), self._between(20, 150))

    def _bring_back(self, node: Object) -> None:
        amounts = {key: str(value) for key, value in node["status"]["allocatable"].items()}
        metadata = node["metadata"]
        annotations = {
            key: text for key, text in (metadata.get("annotations") or {}).items() if key == DEVICES
        }
        manifest = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": name_of(node),
                "labels": metadata["labels"],
                "annotations": annotations,
            },
            "status": {"capacity": amounts, "allocatable": amounts},
        }
        if self._client.create("node", manifest) is not None:
            self._world.count("node came back")

    def _node_falls_silent(self) -> None:
        node = self._pick_node()
        if node is not None:
            self._world.count("node fell silent")
            self._world.door.stop_kubelet(name_of(node), self._world.now_s())
            self._world.post_when_up(lambda: self._start_kubelet(name_of(node)), self._between(20, 200))

    def _start_kubelet(self, name: str) -> None:
        if name in self._world.ledger.nodes:
            word = {"metadata": {"annotations": {KUBELET_ANNOTATION: None}}}
            self._client.patch("node", name, word)

    def _pods_are_forced_off(self) -> None:
        node = self._pick_node()
        if node is None:
            return
        for pod in list(self._world.ledger.pods.values()):
            if node_of(pod) == name_of(node):
                self._world.count("pod forced off its node")
                self._client.delete("pod", name_of(pod), gracePeriodSeconds=0)

    # ── chance ──

    def _pick_node(self) -> Object | None:
        nodes = list(self._world.ledger.nodes.values())
        return nodes[int(self._generator.integers(len(nodes)))] if nodes else None

    def _pick(self, replicas: list[Replica]) -> Replica | None:
        return replicas[int(self._generator.integers(len(replicas)))] if replicas else None

    def _between(self, low: float, high: float) -> float:
        return float(self._generator.uniform(low, high))
