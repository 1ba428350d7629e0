"""All that the scheduler remembers between two events, in one place; changed only inside `Scheduler.handle`.

`touched` are entities about which something changed since they were last looked at (the arrivals in
flight): they are reviewed together before the next cycle, so that a thousand new members cost one look at
their group.
"""

from muster.cluster.state import ClusterState
from muster.framework.events import Change, ClusterEvent
from muster.framework.runner import Runner
from muster.scheduling.conditions import Conditions
from muster.scheduling.holders import Holders
from muster.scheduling.inflight import InFlight
from muster.scheduling.members import EntityKey, Members
from muster.scheduling.metrics import Metrics
from muster.scheduling.queue import Queue, QueueTimes
from muster.scheduling.speech import Speech


class Books:
    """The state machine's state."""

    def __init__(self, *, runner: Runner, scheduler_names: frozenset[str], times: QueueTimes) -> None:
        self.runner = runner
        self.state = ClusterState()
        self.members = Members(scheduler_names)
        self.metrics = Metrics()
        self.queue = Queue(sort_key=runner.sort_key, rules_of=runner.rules_of, times=times)
        self.inflight = InFlight()
        self.conditions = Conditions()
        self.speech = Speech()
        self.holders = Holders()
        self.touched: dict[EntityKey, Change | None] = {}
        self.synced = False

    def touch(self, entity: EntityKey, wake: Change | None = None) -> None:
        """Have the entity looked at before the next cycle; `wake`: the change that may end its refusal."""
        self.touched[entity] = wake or self.touched.get(entity)

    def tell(self, event: ClusterEvent, now_s: float) -> None:
        """Wake whom a change of the cluster can help; before everything is listed nobody waits yet."""
        if self.synced:
            self.queue.tell(event, now_s)
