"""One kind as one scheduler process sees it: listed, then watched, with everything a watch can suffer.

Plays the part of `runtime/watch.py`.  Within one kind order is kept, as in a real watch; between kinds there
is none, for each has its own delay.  A watch breaks and is resumed, or has expired (410) and the kind is
listed again.  A list is always consistent: the runtime asks for the newest.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from muster.apiserver.kinds import Kind as Row
from muster.apiserver.store import Change, Store
from muster.base.errors import Expired
from muster.framework.ports import Event
from muster.sim.storm.weather import Sky
from muster.sim.view import Object, uid_of

_LIST_S = (0.005, 0.05)
_TRAVEL_S = (0.001, 0.01)
_RECONNECT_S = (0.5, 3.0)
_RECONNECT_LONG_S = (3.0, 20.0)


class Source(Protocol):
    """What an informer needs of the world."""

    @property
    def store(self) -> Store:
        """What the API server holds."""
        ...

    @property
    def is_up(self) -> bool:
        """Whether the API server takes connections."""
        ...

    def event_of(self, resource: str, obj: Object, *, gone: bool) -> Event:
        """The event that tells a scheduler of this state of an object."""
        ...

    def now_s(self) -> float:
        """True time."""
        ...

    def count(self, name: str) -> None:
        """Note that a fault has happened."""
        ...


class _Frame(NamedTuple):
    arrival_s: float
    revision: int
    obj: Object
    gone: bool


class Informer:
    """Keeps one kind in view; `tell` is given each event, `later` runs an action of this process.

    `lag_s`: how far the API server that serves this watch is behind.  `version`: the newest revision it has
    told of.  `went_back` is True once the server showed something older than that: it was restored from a
    backup.
    """

    def __init__(
        self,
        row: Row,
        source: Source,
        sky: Sky,
        *,
        tell: Callable[[Event], None],
        later: Callable[[Callable[[], None], float], None],
    ) -> None:
        self.synced = False
        self.went_back = False
        self.lag_s = 0.0
        self._row = row
        self._source = source
        self._sky = sky
        self._tell = tell
        self._later = later
        self.version = 0
        self._known: dict[tuple[str, str], Object] = {}
        self._frames: deque[_Frame] = deque()
        self._is_watching = False
        self._attempt = 0  # what was asked for before is not waited for any more

    @property
    def is_carrying(self) -> bool:
        """Whether something is on its way to the scheduler, or may be."""
        return bool(self._frames) or not (self._is_watching and self.synced)

    def list(self) -> None:
        """List everything anew, then watch."""
        self._attempt += 1
        self._is_watching = False
        self.synced = False
        self._frames.clear()
        attempt = self._attempt
        self._later(lambda: self._ask(attempt), self._sky.between(*_LIST_S))

    def disconnect(self) -> None:
        """The connection breaks; try again soon to go on where it stopped."""
        self._attempt += 1
        self._is_watching = False
        self._frames.clear()
        attempt = self._attempt
        is_long = self._sky.strikes(self._sky.weather.broken_long)
        pause_s = self._sky.between(*(_RECONNECT_LONG_S if is_long else _RECONNECT_S))
        self._later(lambda: self._resume(attempt), pause_s)

    def see(self, change: Change) -> None:
        """The store took a write of this kind."""
        if not self._is_watching:
            return
        weather = self._sky.weather
        if self._sky.strikes(weather.watch_expired):
            self._source.count("watch expired (410)")
            self.list()
        elif self._sky.strikes(weather.watch_broken):
            self._source.count("watch broken")
            self.disconnect()
        else:
            self._queue(change)

    # ── listing ──

    def _ask(self, attempt: int) -> None:
        """The list request arrives at the server."""
        if attempt != self._attempt:
            return
        if not self._source.is_up:
            self._later(lambda: self._ask(attempt), self._sky.between(*_RECONNECT_S))
            return
        objects, revision = self._source.store.list(self._row), self._source.store.revision
        self._is_watching = True  # from this revision on; frames queue up behind the list
        arrival_s = self._source.now_s() + self._sky.between(*_LIST_S)
        self._later(lambda: self._listed(attempt, objects, revision), arrival_s - self._source.now_s())

    def _listed(self, attempt: int, objects: Sequence[Object], revision: int) -> None:
        if attempt != self._attempt:
            return
        if revision < self.version:
            self.went_back = True
            return
        if any(self._is_older(obj) for obj in objects):
            self.went_back = True
            return
        present = {_key_of(obj) for obj in objects}
        for obj in objects:
            self._show(obj)
        for key in [key for key in self._known if key not in present]:
            self._show_gone(key)
        self.version = revision
        self.synced = True
        self._deliver()

    def _is_older(self, obj: Object) -> bool:
        """Whether a list shows an earlier state of this very object than was told."""
        known = self._known.get(_key_of(obj))
        return known is not None and uid_of(known) == uid_of(obj) and _version_of(obj) < _version_of(known)

    # ── watching ──

    def _resume(self, attempt: int) -> None:
        if attempt != self._attempt:
            return
        store = self._source.store
        if not self._source.is_up:
            self.disconnect()
        elif not self.version or not self.synced:
            self.list()
        elif store.revision < self.version:
            self.went_back = True
        elif self._sky.strikes(self._sky.weather.resume_expired):
            self._source.count("watch expired while it was broken (410)")
            self.list()
        else:
            self._is_watching = True
            try:
                missed = store.changes_after(self.version)
            except Expired:
                self.list()
                return
            for change in missed:
                if change.kind.name == self._row.name:
                    self._queue(change)

    def _queue(self, change: Change) -> None:
        """Put an event on the wire, behind what is there already."""
        weather, sky, now_s = self._sky.weather, self._sky, self._source.now_s()
        arrival_s = now_s + self.lag_s + sky.between(*_TRAVEL_S)
        if sky.strikes(weather.event_late):
            self._source.count("event late")
            arrival_s += sky.between(0, weather.event_late_s_max)
        if self._frames:
            arrival_s = max(arrival_s, self._frames[-1].arrival_s)
        frame = _Frame(arrival_s, change.revision, change.object, change.type == "DELETED")
        self._frames.append(frame)
        if not frame.gone and sky.strikes(weather.event_doubled):
            self._source.count("event doubled")
            self._frames.append(frame)
        self._later(self._deliver, arrival_s - now_s)

    def _deliver(self) -> None:
        """Tell what has arrived."""
        while self.synced and self._frames and self._frames[0].arrival_s <= self._source.now_s() + 1e-9:
            frame = self._frames.popleft()
            if frame.gone:
                self._show_gone(_key_of(frame.obj))
            else:
                self._show(frame.obj, again=frame.revision == self.version)
            self.version = max(self.version, frame.revision)

    def _show(self, obj: Object, *, again: bool = False) -> None:
        """Tell of an object, unless this very version has been told; first that one of its name is gone."""
        key = _key_of(obj)
        known = self._known.get(key)
        if known is not None and uid_of(known) != uid_of(obj):
            self._show_gone(key)
        elif known is not None and _version_of(known) == _version_of(obj) and not again:
            return
        self._known[key] = obj
        self._tell(self._source.event_of(self._row.resource, obj, gone=False))

    def _show_gone(self, key: tuple[str, str]) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._tell(self._source.event_of(self._row.resource, known, gone=True))


def _key_of(obj: Object) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def _version_of(obj: Object) -> int:
    return int(obj["metadata"]["resourceVersion"])
