"""Bindings on the wire: whom, where to, since when, and what to do while nobody knows what became of one.

An assumed member takes its room from the decision on.  Its binding ends by an answer (`BindDone`,
`BindFailed`), by what the watch shows, or after `UNCONFIRMED_S_MAX` without either.  An unknown outcome
(code 0) leaves the room taken and the watch its time; then the very same binding is asked for again, which
the API refuses if the first one landed elsewhere and answers as done if it landed here.
"""

from collections.abc import Iterator

from muster.base.heap import KeyedHeap
from muster.framework.groups import GroupKey, PodKey

UNCONFIRMED_S_MAX = 300.0
ASK_AGAIN_S_INITIAL = 1.0
ASK_AGAIN_S_MAX = 30.0


class Binding:
    """One binding on the wire.

    `devices` are the GPUs it says; `version` is the pod's as it was when the binding was last asked for;
    `attempt` is the attempt of its entity that decided it; `asked` counts how often it was asked for;
    `unknown`: the last time no answer came that says anything; `is_stale`: for the API knows a later version,
    which has not been seen yet; `asks_anew`: the pod asks for something else than when it was decided on.
    """

    __slots__ = (
        "asked",
        "asks_anew",
        "attempt",
        "devices",
        "group",
        "is_stale",
        "key",
        "node_name",
        "scheduler_name",
        "since_s",
        "uid",
        "unknown",
        "version",
    )

    def __init__(
        self,
        *,
        key: PodKey,
        uid: str,
        node_name: str,
        scheduler_name: str,
        group: GroupKey | None,
        attempt: int,
        since_s: float,
        version: str = "",
        devices: tuple[int, ...] = (),
    ) -> None:
        self.key = key
        self.uid = uid
        self.node_name = node_name
        self.scheduler_name = scheduler_name
        self.group = group
        self.devices = devices
        self.attempt = attempt
        self.since_s = since_s
        self.asked = 1
        self.unknown = False
        self.version = version
        self.is_stale = False
        self.asks_anew = False


class InFlight:
    """All bindings on the wire, by the uid of the pod."""

    def __init__(self) -> None:
        self._bindings: dict[str, Binding] = {}
        self._due: KeyedHeap[str] = KeyedHeap()

    def __len__(self) -> int:
        return len(self._bindings)

    def __iter__(self) -> Iterator[Binding]:
        return iter(self._bindings.values())

    def add(self, binding: Binding) -> None:
        """A binding has been asked for."""
        self._bindings[binding.uid] = binding
        self._due.put(binding.uid, (binding.since_s + UNCONFIRMED_S_MAX,))

    def find(self, uid: str) -> Binding | None:
        """The binding of the pod with this uid."""
        return self._bindings.get(uid)

    def end(self, uid: str) -> Binding | None:
        """The binding is over, one way or the other; None when it was over before."""
        self._due.remove(uid)
        return self._bindings.pop(uid, None)

    def lose_answer(self, binding: Binding, now_s: float) -> None:
        """Nobody knows what became of it: ask again after a while, longer every time."""
        binding.unknown = True
        wait_s = min(ASK_AGAIN_S_INITIAL * 2.0 ** (binding.asked - 1), ASK_AGAIN_S_MAX)
        self._due.put(binding.uid, (min(now_s + wait_s, binding.since_s + UNCONFIRMED_S_MAX),))

    def ask_anew(self, binding: Binding, now_s: float) -> None:
        """What it waited to see has been seen: ask again at once."""
        self._due.put(binding.uid, (now_s,))

    def next_due_s(self) -> float | None:
        """When the next one must be asked for again or given up."""
        return self._due.next_due_s()

    def tick(self, now_s: float) -> tuple[list[Binding], list[Binding]]:
        """Bindings to ask for again (their clocks run on), and bindings given up (they are over)."""
        again: list[Binding] = []
        given_up: list[Binding] = []
        while (first := self._due.peek()) is not None and first[1][0] <= now_s:
            binding = self._bindings[first[0]]
            if now_s >= binding.since_s + UNCONFIRMED_S_MAX:
                self.end(binding.uid)
                given_up.append(binding)
                continue
            binding.asked += 1
            binding.unknown = False
            self._due.put(binding.uid, (binding.since_s + UNCONFIRMED_S_MAX,))
            again.append(binding)
        return again, given_up
