"""The queue: places, order, backoff, and what wakes whom; and a state machine against a plain model."""

import math
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from muster.api.core import Pod
from muster.framework.events import Change, ClusterEvent, Hint, HintRule, Rejected
from muster.framework.groups import ObjectKey
from muster.framework.status import Status
from muster.plugins.priority_sort import PrioritySort
from muster.scheduling.members import EntityKey
from muster.scheduling.queue import Place, Queue, QueueTimes
from muster.scheduling.sleepers import Refusal
from muster.testing.builders import make_node, make_pod

RULES = {
    "Room": (HintRule(Change.POD_FREED), HintRule(Change.NODE_ADDED)),
    "Picky": (HintRule(Change.NODE_ADDED, lambda rejected, event: Hint.SKIP),),
}


def make_queue(copies: int = 0, **times: float) -> Queue:
    return Queue(
        sort_key=PrioritySort().sort_key,
        rules_of=lambda name: RULES.get(name, ()),
        copies_on=lambda pod, node_name, below: copies,
        times=QueueTimes(**times),
    )


def entity(name: str) -> EntityKey:
    return EntityKey("podgroup", ObjectKey("default", name))


def refusal(*rejectors: str, **words: Any) -> Refusal:
    fields = {"reason": "Unschedulable", "message": "no room", **words}
    return Refusal(rejectors=frozenset(rejectors), rejected=Rejected(None, None, (make_pod(),)), **fields)


def activate(queue: Queue, name: str, *, priority: int = 0, now_s: float = 0.0) -> None:
    queue.activate(entity(name), priority=priority, queued_s=None, now_s=now_s, event="POD_ADDED")


def pop(queue: Queue) -> str:
    entry = queue.pop(0.0)
    assert entry is not None
    return entry.key.key.name


def place(queue: Queue, name: str) -> Place | None:
    entry = queue.find(entity(name))
    return None if entry is None else entry.place


FREED = ClusterEvent(Change.POD_FREED, node=make_node("n1"))


def test_the_highest_priority_is_tried_first_then_who_came_first() -> None:
    queue = make_queue()
    activate(queue, "late", now_s=1.0)
    activate(queue, "urgent", priority=5, now_s=2.0)
    queue.activate(entity("early"), priority=0, queued_s=0.5, now_s=3.0, event="POD_ADDED")
    assert [pop(queue) for _ in range(3)] == ["urgent", "early", "late"]


def test_an_entity_keeps_its_turn_over_attempts_and_absence() -> None:
    queue = make_queue()
    activate(queue, "old", now_s=1.0)
    pop(queue)
    queue.drop(entity("old"), 0.0)
    activate(queue, "young", now_s=2.0)
    activate(queue, "old", now_s=3.0)
    assert pop(queue) == "old"


def test_one_that_was_forgotten_starts_anew() -> None:
    queue = make_queue()
    activate(queue, "old", now_s=1.0)
    queue.forget(entity("old"), 0.0)
    activate(queue, "young", now_s=2.0)
    activate(queue, "old", now_s=3.0)
    assert pop(queue) == "young"


@pytest.mark.parametrize(
    ("members", "waits"),
    [
        pytest.param(1, [1, 2, 4, 8], id="lone"),
        pytest.param(3, [1, 2, 4, 8, 16], id="three-members"),
        pytest.param(16, [1, 2, 4, 8, 16, 32], id="sixteen-members"),
    ],
)
def test_backoff_doubles_up_to_its_cap_and_then_the_entity_rests(members: int, waits: list[int]) -> None:
    queue = make_queue()
    now_s = 0.0
    found = []
    activate(queue, "g")
    while True:
        pop(queue)
        queue.refuse(entity("g"), refusal(member_count=members), now_s)
        if place(queue, "g") is not Place.BACKOFF:
            break
        due_s = queue.next_due_s()
        assert due_s is not None
        found.append(due_s - now_s)
        now_s = due_s
        assert queue.tick(now_s) == [entity("g")]
    assert found == waits
    assert place(queue, "g") is Place.UNSCHEDULABLE


def test_errors_back_off_on_their_own_and_never_rest() -> None:
    queue = make_queue()
    now_s = 0.0
    waits = []
    activate(queue, "g")
    for number in range(6):
        queue.refuse(entity("g"), refusal(error=True, error_round=number + 1), now_s)
        due_s = queue.next_due_s()
        assert due_s is not None
        waits.append(due_s - now_s)
        now_s = due_s
        queue.tick(now_s)
    assert waits == [1, 2, 4, 8, 10, 10]


def test_several_errors_of_one_round_count_once() -> None:
    queue = make_queue()
    activate(queue, "g")
    for _ in range(5):
        queue.refuse(entity("g"), refusal(error=True, error_round=1), 0.0)
    assert queue.next_due_s() == 1.0


@pytest.mark.parametrize(("attempt", "due_s"), [(3, 16.0), (4, 16.0), (5, 1.0)])
def test_what_went_well_in_a_later_attempt_clears_the_errors(attempt: int, due_s: float) -> None:
    queue = make_queue()
    activate(queue, "g")
    for number in range(4):
        queue.refuse(entity("g"), refusal(error=True, error_round=number + 1), 0.0)
    queue.clear_errors(entity("g"), attempt)
    queue.refuse(entity("g"), refusal(error=True, error_round=9, member_count=9), 0.0)
    assert queue.next_due_s() == due_s


def test_a_server_that_asks_for_patience_gets_it() -> None:
    queue = make_queue()
    activate(queue, "g")
    queue.refuse(entity("g"), refusal(error=True, retry_after_s=7.0), 0.0)
    assert queue.next_due_s() == 7.0


def test_the_flush_comes_every_thirty_seconds_after_five_minutes_of_rest() -> None:
    queue = make_queue(backoff_s_max=0.0)
    activate(queue, "g", now_s=1000.0)
    queue.refuse(entity("g"), refusal(), 1000.0)
    assert place(queue, "g") is Place.UNSCHEDULABLE
    assert queue.next_due_s() == 1320.0  # 1300 is no multiple of 30
    assert queue.tick(1319.0) == []
    assert queue.tick(1320.0) == [entity("g")]


def test_an_event_wakes_whom_it_can_help_at_once() -> None:
    queue = make_queue()
    for name, plugin in (("room", "Room"), ("picky", "Picky"), ("other", "Other")):
        activate(queue, name)
        queue.refuse(entity(name), refusal(plugin), 0.0)
    assert queue.tell(FREED, 0.1) == [entity("room")]
    assert queue.tell(ClusterEvent(Change.NODE_ADDED, node=make_node("n1")), 0.2) == []
    assert pop(queue) == "room"


def test_the_rule_is_asked_once_per_group_and_only_for_its_change() -> None:
    asked: list[Change] = []

    def count(rejected: Rejected, event: ClusterEvent) -> Hint:
        asked.append(event.change)
        return Hint.SKIP

    queue = Queue(
        sort_key=PrioritySort().sort_key,
        rules_of=lambda name: (HintRule(Change.POD_FREED, count),),
        copies_on=lambda pod, node_name, below: 0,
    )
    for name in ("a", "b", "c"):
        activate(queue, name)
        queue.refuse(entity(name), refusal("Any", member_count=100), 0.0)
    queue.tell(FREED, 0.1)
    queue.tell(ClusterEvent(Change.NODE_TAINTS_CHANGED, node=make_node("n1")), 0.1)
    assert asked == [Change.POD_FREED] * 3


def test_one_that_misses_several_places_waits_for_as_many() -> None:
    queue = make_queue(copies=2)
    activate(queue, "g")
    queue.refuse(entity("g"), refusal("Room", missing=5), 0.0)
    for name, woken in (("n1", []), ("n1", []), ("n2", []), ("n3", [entity("g")])):
        event = ClusterEvent(Change.POD_FREED, node=make_node(name))
        assert queue.tell(event, 0.1) == woken


def test_what_was_gained_before_an_attempt_does_not_count_after_it() -> None:
    queue = make_queue(copies=2)
    activate(queue, "g")
    queue.refuse(entity("g"), refusal("Room", missing=3), 0.0)
    queue.tell(ClusterEvent(Change.POD_FREED, node=make_node("n1")), 0.1)
    queue.tick(1.0)
    pop(queue)
    queue.refuse(entity("g"), refusal("Room", missing=3), 1.0)
    assert queue.tell(ClusterEvent(Change.POD_FREED, node=make_node("n2")), 1.1) == []


@pytest.mark.parametrize("by_time", [False, True], ids=["by-an-event", "by-time"])
def test_one_woken_from_its_search_still_decides_for_those_who_asked_the_same(*, by_time: bool) -> None:
    queue = make_queue()
    for name in ("a", "b"):
        activate(queue, name)
        pop(queue)
        queue.refuse(entity(name), refusal("Room", ask="alike"), 0.0)
    assert queue.tell(FREED, 0.1) == [entity("a")]
    pop(queue)
    queue.search(entity("a"), refusal("Room"), until_s=0.3, now_s=0.1)
    assert (queue.tick(0.3) if by_time else queue.tell(FREED, 0.2)) == [entity("a")]
    pop(queue)
    queue.drop(entity("a"), 0.3)
    assert place(queue, "b") is Place.ACTIVE


def test_room_is_reckoned_once_for_members_of_one_shape() -> None:
    asked: list[str] = []

    def count(pod: Pod, node_name: str, below: float) -> int:
        asked.append(node_name)
        return 0

    queue = Queue(
        sort_key=PrioritySort().sort_key, rules_of=lambda name: RULES.get(name, ()), copies_on=count
    )
    for name in ("a", "b", "c"):
        activate(queue, name)
        queue.refuse(entity(name), refusal("Room", missing=1, shape=b"one" if name < "c" else b"two"), 0.0)
    queue.tell(FREED, 0.1)
    assert asked == ["n1", "n1"]


def test_gated_and_incomplete_entities_are_woken_by_no_event_and_no_time() -> None:
    queue = make_queue()
    queue.gate(entity("gated"), Status.unresolvable("waits"), 0.0)
    queue.set_incomplete(entity("incomplete"), 0.0)
    assert queue.tell(FREED, 1.0) == []
    assert queue.tick(10_000.0) == []
    assert queue.next_due_s() is None
    assert not queue.has_active


def test_a_gate_takes_an_entity_out_of_the_active_queue() -> None:
    queue = make_queue()
    activate(queue, "g")
    queue.gate(entity("g"), Status.unresolvable("waits"), 1.0)
    assert not queue.has_active
    assert queue.pop(0.0) is None


def test_what_came_into_a_place_is_counted_by_cause() -> None:
    queue = make_queue()
    activate(queue, "g")
    queue.refuse(entity("g"), refusal("Room"), 0.0)
    queue.tell(FREED, 0.1)
    assert queue.incoming == {
        ("active", "POD_ADDED", "podgroup"): 1,
        ("backoff", "ScheduleAttemptFailure", "podgroup"): 1,
        ("active", "POD_FREED", "podgroup"): 1,
    }


class QueueMachine(RuleBasedStateMachine):
    """Random operations against a dict of places; whoever is in the model is in exactly that place."""

    names = st.sampled_from("abcd")

    def __init__(self) -> None:
        super().__init__()
        self.queue = make_queue()
        self.places: dict[str, Place] = {}
        self.rests: dict[str, frozenset[str]] = {}
        self.now_s = 0.0

    @rule(name=names, priority=st.integers(0, 2))
    def activate(self, name: str, priority: int) -> None:
        activate(self.queue, name, priority=priority, now_s=self.now_s)
        self.places[name] = Place.ACTIVE

    @rule(name=names)
    def gate(self, name: str) -> None:
        self.queue.gate(entity(name), Status.unresolvable("waits"), self.now_s)
        self.places[name] = Place.GATED

    @rule(name=names)
    def set_incomplete(self, name: str) -> None:
        self.queue.set_incomplete(entity(name), self.now_s)
        self.places[name] = Place.INCOMPLETE

    @rule(name=names, forget=st.booleans())
    def drop(self, name: str, *, forget: bool) -> None:
        (self.queue.forget if forget else self.queue.drop)(entity(name), self.now_s)
        self.places.pop(name, None)

    @precondition(lambda self: self.queue.has_active)
    @rule(plugins=st.sets(st.sampled_from(["Room", "Picky", "Other"])), error=st.booleans())
    def attempt_and_refuse(self, plugins: set[str], *, error: bool) -> None:
        entry = self.queue.pop(self.now_s)
        assert entry is not None
        name = entry.key.key.name
        assert self.places[name] is Place.ACTIVE
        best = max(
            self.queue.find(entity(other)).priority  # type: ignore[union-attr]
            for other, at in self.places.items()
            if at is Place.ACTIVE
        )
        assert entry.priority == best
        self.queue.refuse(entry.key, refusal(*sorted(plugins), error=error), self.now_s)
        self.places[name] = entry.place
        self.rests[name] = frozenset(plugins)
        assert entry.place in (Place.BACKOFF, Place.UNSCHEDULABLE)
        assert entry.due_s is not None
        assert entry.due_s >= self.now_s

    @rule()
    def free(self) -> None:
        self.queue.tell(FREED, self.now_s)
        for name, at in self.places.items():
            if at in (Place.BACKOFF, Place.UNSCHEDULABLE) and "Room" in self.rests[name]:
                self.places[name] = Place.ACTIVE

    @rule(seconds=st.integers(1, 400))
    def wait(self, seconds: int) -> None:
        self.now_s += seconds
        due = {e.key.key.name for e in self.queue if e.due_s is not None and e.due_s <= self.now_s}
        assert {key.key.name for key in self.queue.tick(self.now_s)} == due
        self.places.update(dict.fromkeys(due, Place.ACTIVE))

    @invariant()
    def everybody_is_in_one_place(self) -> None:
        assert {entry.key.key.name: entry.place for entry in self.queue} == self.places
        assert self.queue.has_active == (Place.ACTIVE in self.places.values())
        dues = [entry.due_s for entry in self.queue if entry.due_s is not None]
        assert self.queue.next_due_s() == min(dues, default=None)
        assert all(math.isfinite(due_s) for due_s in dues)
        for entry in self.queue:
            assert (entry.due_s is not None) == (entry.place in (Place.BACKOFF, Place.UNSCHEDULABLE))


TestQueueMachine = QueueMachine.TestCase
TestQueueMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
