"""`muster up`: the embedded cluster on an event loop, with sockets, a clock and a way to stop.

`Driver` gives the cluster its turns: after every request, and when the time it named has come, a bounded
slice of work each, so that requests are answered in between.  `run` serves until SIGINT or SIGTERM.
"""

import asyncio
import errno
import gc
import logging
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from muster.apiserver.exchange import Request, Response
from muster.apiserver.http import HttpServer
from muster.apiserver.kinds import Refused
from muster.apiserver.statuses import status_of
from muster.assembly.cluster_plan import ClusterPlan, build_cluster
from muster.assembly.embedded import EmbeddedCluster
from muster.base.errors import ConfigError, InvariantViolated
from muster.framework.ports import Event, Search, SearchDone
from muster.runtime.certificates import kubeconfig, make_identity, write_private
from muster.runtime.clock import Clock
from muster.runtime.logs import set_up_logging
from muster.runtime.searcher import Searcher
from muster.scheduling.scheduler import Scheduler

YOUNG_OBJECTS_BEFORE_COLLECTION = 50_000  # a store of many small objects; saves a seventh of the work
ANYWHERE = ("0.0.0.0", "::", "")

log = logging.getLogger("muster.up")


class Plan(Struct, frozen=True):
    """What `muster up` was told."""

    cluster: ClusterPlan
    host: str
    port: int
    kubeconfig: Path


class Address(NamedTuple):
    """Where the server is."""

    url: str
    port: int


class Driver:
    """Gives an embedded cluster its turns on the running event loop."""

    def __init__(self, cluster: EmbeddedCluster, now_s: Callable[[], float]) -> None:
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._cluster = cluster
        self._now_s = now_s
        self._loop = asyncio.get_running_loop()
        self._turn: asyncio.TimerHandle | asyncio.Handle | None = None
        self._turn_is_next = False
        self._is_stopped = False
        self._searcher = Searcher(post=self._answered)
        self._answers: dict[int, Callable[[Event], None]] = {}  # by ticket: whom to tell
        cluster.search_with(self._search)

    def handle(self, request: Request) -> Response:
        """Answer a request, and see to it that its consequences get their turn."""
        try:
            response = self._cluster.request(request, self._now_s())
        except Exception as error:
            log.exception("%s %s failed", request.method, request.path)
            refused = Refused(f"Internal error occurred: {error}", code=500, reason="InternalError")
            return Response(500, status_of(refused))
        if request.method != "GET":
            self.wake()
        elif request.path == "/metrics" and response.status == 404:
            return self._metrics() or response
        return response

    def _metrics(self) -> Response | None:
        """What the scheduler counts; None where there is none.  The server has let the asker pass."""
        from muster.runtime.metrics import CONTENT_TYPE, page_of  # costs a start more than it is asked for

        for scheduler in self._cluster.schedulers:
            if isinstance(scheduler, Scheduler):
                return Response(200, raw=page_of(scheduler), content_type=CONTENT_TYPE)
        return None

    def wake(self) -> None:
        """Have the cluster work as soon as the loop is free."""
        if not self._turn_is_next and not self._is_stopped:
            if self._turn is not None:
                self._turn.cancel()
            self._turn = self._loop.call_soon(self._work)
            self._turn_is_next = True

    def stop(self) -> None:
        """Give no more turns."""
        self._is_stopped = True
        self._searcher.stop()
        if self._turn is not None:
            self._turn.cancel()

    def _search(self, effect: Search, answer: Callable[[Event], None]) -> None:
        self._answers[effect.ticket] = answer
        self._searcher.perform(effect)

    def _answered(self, event: Event) -> None:
        if isinstance(event, SearchDone):
            self._answers.pop(event.ticket)(event)
            self.wake()

    def _work(self) -> None:
        """One slice of work; a fault of ours in it is told, and costs what it was about to do."""
        self._turn, self._turn_is_next = None, False
        now_s = self._now_s()
        try:
            due_s = self._cluster.advance(now_s)
        except InvariantViolated as error:
            self.stop()
            self.failed.set_exception(error)
            return
        except Exception:
            log.exception("a part of the cluster failed; it goes on with what is next")
            due_s = now_s
        if due_s is None:
            return
        delay_s = due_s - self._now_s()
        if delay_s <= 0:
            self.wake()
        else:
            self._turn = self._loop.call_later(delay_s, self._work)


async def serve(plan: Plan, say_ready: Callable[[Address], None], stop: asyncio.Event) -> None:
    """Run the cluster until `stop` is set.

    Raises   ConfigError for nodes that the server refuses, for an address that cannot be had, and for a
             kubeconfig that cannot be written.
    """
    clock = Clock()
    rng = np.random.default_rng()  # noqa: TID251  here chance comes in
    cluster = build_cluster(plan.cluster, rng, clock.now_s(), stopwatch=clock.now_s)
    driver = Driver(cluster, clock.now_s)
    names = (socket.gethostname(), *(() if plan.host in ANYWHERE else (plan.host,)))
    identity = make_identity(names)
    listener = listen(plan.host, plan.port)
    server = HttpServer(
        driver.handle, now_s=clock.now_s, ssl_context=identity.server_context, tokens=(identity.token,)
    )
    await server.start(listener)
    way_in = b""
    try:
        driver.wake()
        address = address_of(listener, plan.host)
        way_in = kubeconfig(identity, address.url)
        put_there(plan.kubeconfig, way_in)
        say_ready(address)
        driver.failed.add_done_callback(lambda _: stop.set())
        await stop.wait()
        if driver.failed.done():
            driver.failed.result()
    finally:
        driver.stop()
        await server.close()
        take_away(plan.kubeconfig, way_in)


def listen(host: str, port: int) -> socket.socket:
    """Take an address to serve on; port 0 is any free one.

    Raises   ConfigError naming the option, where the address cannot be had.
    """
    try:
        family = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][
            0
        ]
        return socket.create_server((host, port), family=family, backlog=1024)
    except socket.gaierror as error:
        raise ConfigError(error.strerror or str(error), path=f"--listen {host}") from error
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            hint = "choose another port, or --port 0 for a free one"
            raise ConfigError(f"{host}:{port} is in use", path=f"--port {port}", hint=hint) from error
        option = f"--port {port}" if error.errno == errno.EACCES else f"--listen {host}"
        raise ConfigError(error.strerror or str(error), path=option) from error


def address_of(listener: socket.socket, host: str) -> Address:
    """Give the address under which a client on this machine finds the server."""
    port = listener.getsockname()[1]
    name = "127.0.0.1" if host in ANYWHERE else f"[{host}]" if ":" in host else host
    return Address(f"https://{name}:{port}", port)


def put_there(path: Path, content: bytes) -> None:
    """Write the kubeconfig, unless another has been written there since this process started.

    Raises   ConfigError naming the option.
    """
    where = f"--kubeconfig-out: {path}"
    if path.exists():
        hint = "choose another name"
        raise ConfigError("somebody else has written it meanwhile", path=where, hint=hint)
    try:
        write_private(path, content)
    except OSError as error:
        raise ConfigError(error.strerror or str(error), path=where, hint="choose another folder") from error


def take_away(path: Path, content: bytes) -> None:
    """Remove the kubeconfig that we wrote, not one that another has written there since."""
    if path.is_file() and path.read_bytes() == content:
        path.unlink()


def run(plan: Plan, say_ready: Callable[[Address], None]) -> None:
    """Serve until SIGINT or SIGTERM; on uvloop, whose TLS costs a tenth of the memory of asyncio's."""
    import uvloop

    async def until_signalled() -> None:
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, stop.set)
        await serve(plan, say_ready, stop)

    set_up_logging(logging.WARNING)
    gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS_BEFORE_COLLECTION, 20, 20)
    uvloop.run(until_signalled())
