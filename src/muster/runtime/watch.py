"""List and watch one kind for as long as the process lives: JSON in, framework Events out.

In comes an `ApiClient` and what a kind is (`WatchedKind`); out go Events to `post`, in the order in which the
API server tells them.  A broken watch is resumed where it stopped; when the server has forgotten that
place (410), the kind is listed again and what vanished meanwhile is told as gone.  A list that is older than
what was seen before is told to nobody: the server was restored from a backup, and what the scheduler
remembers may never have happened.  Next: `runtime/loop.py`.
"""

import contextlib
import logging
from collections.abc import Awaitable, Callable
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import numpy as np
from msgspec import Raw, Struct

from muster.api.meta import ObjectMeta, is_earlier, version_number
from muster.base.errors import ApiError, Expired, Unavailable
from muster.framework.groups import ObjectKey
from muster.framework.ports import Event
from muster.runtime.client import ApiClient

PAGE = 1000
LIST_TIMEOUT_S = 60.0
WATCH_S_MIN, WATCH_S_MAX = 300, 600  # as client-go: not all watches of a fleet end at once
BACKOFF_S_FIRST, BACKOFF_S_MAX = 0.5, 15.0
UNSERVED_S = 60.0  # so often a kind that one can do without is asked for again
UNREADABLE = (msgspec.DecodeError, RecursionError)  # of whatever a server sends, nested however deep
CHANGES = ("ADDED", "MODIFIED")
FAILURES_BEFORE_RELIST = 4  # a place that cannot be resumed, for whatever reason, is given up

log = logging.getLogger("muster.watch")


class WentBack(Exception):
    """The server shows something older than it has shown before."""


class HasMetadata(Protocol):
    """Every API object."""

    @property
    def metadata(self) -> ObjectMeta: ...


Item = TypeVar("Item", bound=HasMetadata)
Part = TypeVar("Part")


def _never(was: object, now: object) -> bool:
    return False


class WatchedKind(Struct, Generic[Item], frozen=True):
    """A kind: where its collection is, how its objects are read, and what the scheduler is told of them.

    `is_no_news(told, now)`: nobody need be told of the object as it is now, given what was told last.
    """

    name: str
    path: str
    type: type[Item]
    seen: Callable[[Item], Event]
    gone: Callable[[ObjectKey, str], Event]
    without: str = ""  # what the scheduler does without this kind; empty: it does nothing without it
    is_no_news: Callable[[Item, Item], bool] = _never


class ListMeta(Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class RawList(Struct):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[Raw] | None = None


class Page(Struct, Generic[Item]):
    metadata: ListMeta = msgspec.field(default_factory=ListMeta)
    items: list[Item] | None = None


class Frame(Struct, Generic[Part]):
    """One line of a watch."""

    type: str
    object: Part


class Named(Struct):
    """An object of which only the metadata matters: a bookmark, or one that is gone."""

    metadata: ObjectMeta


class WatchError(Struct):
    message: str = ""
    reason: str = ""
    code: int = 0


class _Known(Struct, Generic[Item]):
    """The newest state seen of an object, and the last one told."""

    uid: str
    version: str
    told: Item


class Counts(Struct):
    """What one watch has been through; `runtime/metrics.py` shows it."""

    lists: int = 0
    watches: int = 0
    events: int = 0
    failures: int = 0
    unreadable: int = 0


class ListWatch(Generic[Item]):
    """Keeps one kind in view.  `synced` is True once it has been listed."""

    def __init__(
        self,
        kind: WatchedKind[Item],
        client: ApiClient,
        *,
        post: Callable[[Event], None],
        has_room: Callable[[], Awaitable[None]],
        on_synced: Callable[[], None],
        on_went_back: Callable[[str], None],
        rng: np.random.Generator,
        pause: Callable[[float], Awaitable[None]],
        now_s: Callable[[], float],
    ) -> None:
        self.kind = kind
        self.synced = False
        self.counts = Counts()
        self._client = client
        self._post = post
        self._has_room = has_room
        self._on_synced = on_synced
        self._on_went_back = on_went_back
        self._rng = rng
        self._pause = pause
        self._now_s = now_s
        self._known: dict[ObjectKey, _Known[Item]] = {}
        self._version = ""
        self._newest = 0  # the highest version the server has shown, kept when the place is not
        self._failures = 0
        page_of: Any = Page
        frame_of: Any = Frame
        self._page_decoder = msgspec.json.Decoder(page_of[kind.type])
        self._item_decoder = msgspec.json.Decoder(kind.type)
        self._news_decoder = msgspec.json.Decoder(frame_of[kind.type])
        self._frame_decoder = msgspec.json.Decoder(frame_of[Raw])

    async def run(self) -> None:
        """Keep watching until cancelled or the server went back.  Failures are logged and tried again."""
        while True:
            try:
                if not self._version:
                    await self.list_once()
                began_s = self._now_s()
                await self.watch_once()
                if self._now_s() - began_s < 1.0:
                    raise Unavailable("the watch ended as soon as it began", code=0)
            except Expired:
                # The server no longer knows our place: nothing to wait for, list again.
                log.info("%s: resource version %s has expired, listing again", self.kind.name, self._version)
                self._version = ""
                self._failures += 1
                if self._failures > 1:
                    await self._back_off(None)
            except ApiError as error:
                await self._failed(error)
            except WentBack as error:
                self._on_went_back(str(error))
                return

    def forget_place(self) -> None:
        """Begin with a list when next run, and count as not listed until then; to be called between runs."""
        self._version = ""
        self.synced = False

    async def list_once(self) -> None:
        """List everything and tell what is new, what changed, and what is gone since last time.

        Raises   ApiError; WentBack, before anything that is older than before has been told.
        """
        present: set[ObjectKey] = set()
        continue_, version = "", ""
        limit = PAGE
        while True:
            query = {"limit": str(limit)} if limit else {}
            if continue_:
                query["continue"] = continue_
            try:
                answer = await self._client.call("GET", self.kind.path, query=query, timeout_s=LIST_TIMEOUT_S)
            except Expired:
                if not continue_:
                    raise
                # The list outlived its own first page; take it in one piece.
                present.clear()
                continue_, limit = "", 0
                continue
            metadata, items, illegible = self._read_page(answer.body)
            present.update(illegible)  # as they were when they could be read
            if not metadata.resource_version:  # a Status, or whatever: an empty list has a version, too
                raise Unavailable(f"the list of {self.kind.name} is no list: it has no version", code=0)
            self._check_age(metadata, items)
            for item in items:
                if not self._is_told(item):
                    await self._tell(item)
                present.add(_key_of(item.metadata))
            version = metadata.resource_version
            continue_ = metadata.continue_
            if not continue_:
                break
        for key in [key for key in self._known if key not in present]:
            self._tell_gone(key)
        self._move_to(version)
        self.counts.lists += 1
        if not self.synced:
            self.synced = True
            self._on_synced()

    async def watch_once(self) -> None:
        """Follow one watch to its end.  Raises ApiError when it breaks; Expired when it cannot be resumed."""
        seconds = int(self._rng.integers(WATCH_S_MIN, WATCH_S_MAX, endpoint=True))
        query = {
            "watch": "true",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._version,
            "timeoutSeconds": str(seconds),
        }
        async with self._client.lines(self.kind.path, query) as batches:
            self.counts.watches += 1
            async for lines in batches:
                self._failures = 0
                for line in lines:
                    await self._take(line)

    async def _take(self, line: bytes) -> None:
        """Read a line; in one pass where it tells of an object as the API says: thousands a second."""
        try:
            news = self._news_decoder.decode(line)
        except UNREADABLE:
            news = None
        if news is not None and news.type in CHANGES:
            self.counts.events += 1
            await self._take_item(news.object)
            return
        try:
            frame = self._frame_decoder.decode(line)
        except UNREADABLE as error:
            raise Unavailable(f"the watch of {self.kind.name} sent no event: {error}", code=0) from error
        if frame.type == "ERROR":
            self._raise_error(frame.object)
        self.counts.events += frame.type != "BOOKMARK"
        if frame.type in CHANGES and (item := self._read_item(frame.object)) is not None:
            await self._take_item(item)
            return
        metadata = self._read(frame.object, Named).metadata
        if frame.type == "DELETED":
            self._tell_gone(_key_of(metadata))
        self._move_to(metadata.resource_version)

    async def _take_item(self, item: Item) -> None:
        if not self._is_told(item):
            await self._tell(item)
        self._move_to(item.metadata.resource_version)

    def _move_to(self, version: str) -> None:
        """The next watch goes on from here."""
        self._version = version
        self._newest = max(self._newest, version_number(version) or 0)

    def _check_age(self, metadata: ListMeta, items: list[Item]) -> None:
        """Raise WentBack where a list, which is always of now, is older than what was shown before."""
        version = version_number(metadata.resource_version)
        if version is not None and version < self._newest:
            raise WentBack(
                f"a list of {self.kind.name} is of version {version}, {self._newest} was seen before"
            )
        for item in items:
            found = item.metadata
            known = self._known.get(_key_of(found))
            if known is None or known.uid != found.uid:
                continue
            if is_earlier(found.resource_version, known.version):
                name = "/".join(filter(None, _key_of(found)))
                versions = f"is of version {found.resource_version}, {known.version} was seen before"
                raise WentBack(f"{self.kind.name} {name} {versions}")

    def _raise_error(self, raw: Raw) -> None:
        error = self._read(raw, WatchError)
        message = f"the watch of {self.kind.name} ended: {error.message}"
        if error.code == 410:
            raise Expired(message, code=410, reason=error.reason)
        raise Unavailable(message, code=error.code, reason=error.reason)

    def _read(self, raw: Raw, type_: type[Part]) -> Part:
        try:
            return msgspec.json.decode(raw, type=type_)
        except UNREADABLE as error:
            raise Unavailable(f"the watch of {self.kind.name} sent no object: {error}", code=0) from error

    def _is_told(self, item: Item) -> bool:
        """Whether nobody need be told of it: this very version has been told, or one that says the same."""
        metadata = item.metadata
        known = self._known.get(_key_of(metadata))
        if known is None or known.uid != metadata.uid:
            return False
        version = metadata.resource_version
        if known.version != version and not self.kind.is_no_news(known.told, item):
            return False
        known.version = version
        return True

    async def _tell(self, item: Item) -> None:
        """Tell of an object once there is room for it; first that another one of its name is gone."""
        await self._has_room()
        metadata = item.metadata
        key = _key_of(metadata)
        known = self._known.get(key)
        if known is not None and known.uid != metadata.uid:
            self._tell_gone(key)
        self._known[key] = _Known(metadata.uid, metadata.resource_version, item)
        self._post(self.kind.seen(item))

    def _tell_gone(self, key: ObjectKey) -> None:
        known = self._known.pop(key, None)
        if known is not None:
            self._post(self.kind.gone(key, known.uid))

    def _read_page(self, body: bytes) -> tuple[ListMeta, list[Item], list[ObjectKey]]:
        """Decode a page at once; where one object is not as its type says, leave out that one only.

        Gives those left out by name, where that can be read.
        """
        try:
            page = self._page_decoder.decode(body)
            return page.metadata, page.items or [], []
        except UNREADABLE:
            try:
                raw = msgspec.json.decode(body, type=RawList)
            except UNREADABLE as error:
                raise Unavailable(f"the list of {self.kind.name} is no list: {error}", code=0) from error
        items: list[Item] = []
        illegible: list[ObjectKey] = []
        for each in raw.items or ():
            if (item := self._read_item(each)) is not None:
                items.append(item)
                continue
            with contextlib.suppress(Unavailable):
                illegible.append(_key_of(self._read(each, Named).metadata))
        return raw.metadata, items, illegible

    def _read_item(self, raw: Raw) -> Item | None:
        try:
            item: Item = self._item_decoder.decode(raw)
        except UNREADABLE as error:
            self.counts.unreadable += 1
            log.error("%s: left out an object that is not as the API says: %s", self.kind.name, error)
            return None
        return item

    async def _failed(self, error: ApiError) -> None:
        self.counts.failures += 1
        self._failures += 1
        if self.kind.without and not self._version and error.code in (403, 404):
            await self._do_without(error)
            return
        log.warning("%s: %s", self.kind.name, error)
        if self._failures >= FAILURES_BEFORE_RELIST:
            self._version = ""
        await self._back_off(error.retry_after_s)

    async def _do_without(self, error: ApiError) -> None:
        """Let the scheduler begin without this kind, say so once, and look again from time to time."""
        if not self.synced:
            lack = "not served" if error.code == 404 else f"not allowed: {error}"
            log.warning("%s: %s; %s", self.kind.name, lack, self.kind.without)
            self.synced = True
            self._on_synced()
        await self._pause(UNSERVED_S)

    async def _back_off(self, retry_after_s: float | None) -> None:
        """Wait longer each time, never in step with others; at least as long as the server asked for."""
        ceiling = min(BACKOFF_S_MAX, BACKOFF_S_FIRST * 2.0 ** min(self._failures - 1, 10))
        seconds = ceiling * (0.5 + 0.5 * float(self._rng.random()))
        await self._pause(max(seconds, retry_after_s or 0.0))


def _key_of(metadata: ObjectMeta) -> ObjectKey:
    return ObjectKey(metadata.namespace, metadata.name)
