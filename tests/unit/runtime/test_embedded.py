"""Tests of runtime/embedded.py: turns of the cluster, faults that are told, addresses had or named."""

import asyncio
import socket
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from muster.apiserver.exchange import Request, Response
from muster.assembly.cluster_plan import ClusterPlan, build_cluster
from muster.base.errors import ConfigError, InvariantViolated
from muster.framework.groups import ObjectKey
from muster.framework.ports import Event, Search, SearchDone
from muster.placement.packing import Answer, Verdict, group_problem, no_rule
from muster.runtime.embedded import Address, Driver, Plan, address_of, listen, serve, take_away


class FakeCluster:
    """Answers everything, and says of each turn when the next is due."""

    def __init__(self, dues: list[float | Exception | None]) -> None:
        self.dues = dues
        self.turns_s: list[float] = []

    def search_with(self, search: Callable[[Search, Callable[[Event], None]], None]) -> None:
        self.search = search

    def request(self, request: Request, now_s: float) -> Response:
        if request.path == "/broken":
            raise ValueError("a fault of ours")
        return Response(200, {"path": request.path})

    def advance(self, now_s: float) -> float | None:
        self.turns_s.append(now_s)
        due = self.dues.pop(0)
        if isinstance(due, Exception):
            raise due
        return due


def driver_of(cluster: FakeCluster, now_s: Callable[[], float] = lambda: 5.0) -> Driver:
    return Driver(cluster, now_s)  # type: ignore[arg-type]


async def some_turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_write_gives_the_cluster_a_turn_and_a_read_does_not() -> None:
    cluster = FakeCluster([None])
    driver = driver_of(cluster)
    driver.handle(Request("GET", "/a"))
    await some_turns()
    assert cluster.turns_s == []
    assert driver.handle(Request("POST", "/a")).status == 200
    await some_turns()
    assert cluster.turns_s == [5.0]


async def test_a_search_is_done_in_another_thread_and_its_answer_gives_a_turn() -> None:
    cluster = FakeCluster([None])
    driver = driver_of(cluster)
    rule, one = no_rule(1, 1), np.array([1])
    nowhere = group_problem(rule, one, needed=2, domains=(np.array([0]),), is_exact=True)
    answered = asyncio.Event()
    events: list[Event] = []

    def take(event: Event) -> None:
        events.append(event)
        answered.set()

    cluster.search(Search(3, ObjectKey("default", "g"), nowhere, 250), take)
    assert events == []
    await answered.wait()
    await some_turns()
    assert events == [SearchDone(3, Answer(Verdict.IMPOSSIBLE))]
    assert cluster.turns_s == [5.0]
    driver.stop()


async def test_many_writes_at_once_cost_one_turn() -> None:
    cluster = FakeCluster([None])
    driver = driver_of(cluster)
    for _ in range(100):
        driver.handle(Request("POST", "/a"))
    await some_turns()
    assert len(cluster.turns_s) == 1


async def test_work_that_is_left_gets_another_turn_at_once() -> None:
    cluster = FakeCluster([5.0, 5.0, None])
    driver_of(cluster).wake()
    await some_turns()
    assert len(cluster.turns_s) == 3


async def test_a_later_time_is_waited_for_and_a_write_does_not_wait_for_it() -> None:
    cluster = FakeCluster([1000.0, 1000.0])
    driver = driver_of(cluster)
    driver.wake()
    await some_turns()
    assert len(cluster.turns_s) == 1
    driver.handle(Request("DELETE", "/a"))
    await some_turns()
    assert len(cluster.turns_s) == 2
    driver.stop()


async def test_a_fault_in_a_turn_is_told_and_the_next_turn_comes(caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster([KeyError("x"), None])
    driver_of(cluster).wake()
    await some_turns()
    assert len(cluster.turns_s) == 2
    assert "a part of the cluster failed" in caplog.text


async def test_a_broken_promise_of_ours_ends_everything() -> None:
    driver = driver_of(FakeCluster([InvariantViolated("room counted twice")]))
    driver.wake()
    await some_turns()
    with pytest.raises(InvariantViolated):
        driver.failed.result()


async def test_a_fault_in_a_request_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    response = driver_of(FakeCluster([])).handle(Request("GET", "/broken"))
    assert response.status == 500
    assert response.object is not None
    assert (response.object["reason"], "a fault of ours" in caplog.text) == ("InternalError", True)


def metrics_of(plan: ClusterPlan, **words: Any) -> Response:
    driver = Driver(build_cluster(plan, np.random.default_rng(1), 5.0), lambda: 5.0)
    return driver.handle(Request("GET", "/metrics", **words))


async def test_the_schedulers_metrics_are_at_the_server() -> None:
    response = metrics_of(ClusterPlan([]))
    assert (response.status, response.content_type) == (200, "text/plain; version=0.0.4")
    assert response.raw is not None
    assert b'scheduler_pending_pods{queue="active"} 0.0' in response.raw


async def test_a_cluster_without_a_scheduler_has_no_metrics() -> None:
    assert metrics_of(ClusterPlan([], scheduler=None)).status == 404


async def test_metrics_are_not_for_everybody() -> None:
    assert metrics_of(ClusterPlan([]), user="somebody", groups=("system:authenticated",)).status == 403


async def test_after_stop_there_are_no_turns() -> None:
    cluster = FakeCluster([])
    driver = driver_of(cluster)
    driver.wake()
    driver.stop()
    driver.handle(Request("POST", "/a"))
    await some_turns()
    assert cluster.turns_s == []


# ── addresses ────────────────────────────────────────────────────────────────────────────────────


def test_a_port_in_use_is_named_with_the_cure() -> None:
    with listen("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"--port {port}: 127.0.0.1:{port} is in use") as caught:
            listen("127.0.0.1", port)
    assert "--port 0" in caught.value.hint


@pytest.mark.parametrize("host", ["203.0.113.1", "no such host"])
def test_an_address_that_is_not_ours_is_named(host: str) -> None:
    with pytest.raises(ConfigError, match=f"--listen {host}"):
        listen(host, 0)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1", "https://127.0.0.1:"),
        ("0.0.0.0", "https://127.0.0.1:"),
        ("localhost", "https://localhost:"),
    ],
)
def test_a_client_on_this_machine_finds_the_server(host: str, url: str) -> None:
    with listen(host, 0) as listener:
        address = address_of(listener, host)
    assert address.url == f"{url}{address.port}"
    assert address.port > 0


# ── a whole cluster, in this loop ────────────────────────────────────────────────────────────────


async def test_the_kubeconfig_is_there_while_the_server_is_and_private(tmp_path: Path) -> None:
    stop = asyncio.Event()
    kubeconfig = tmp_path / "kubeconfig"
    seen: list[tuple[int, bool]] = []

    def ready(address: Address) -> None:
        mode = stat.S_IMODE(kubeconfig.stat().st_mode)
        with socket.create_connection(("127.0.0.1", address.port), timeout=5):
            seen.append((mode, address.url in kubeconfig.read_text()))
        stop.set()

    plan = Plan(ClusterPlan([]), "127.0.0.1", 0, kubeconfig)
    await asyncio.wait_for(serve(plan, ready, stop), 30)
    assert seen == [(0o600, True)]
    assert not kubeconfig.exists()


async def test_a_kubeconfig_that_came_to_be_meanwhile_is_kept(tmp_path: Path) -> None:
    (tmp_path / "kubeconfig").write_text("of another muster up, started at the same moment")
    plan = Plan(ClusterPlan([]), "127.0.0.1", 0, tmp_path / "kubeconfig")
    with pytest.raises(ConfigError, match="somebody else has written it meanwhile"):
        await asyncio.wait_for(serve(plan, lambda _: None, asyncio.Event()), 30)
    assert (tmp_path / "kubeconfig").read_text().startswith("of another")


async def test_a_kubeconfig_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    plan = Plan(ClusterPlan([]), "127.0.0.1", 0, tmp_path / "gone" / "kubeconfig")
    with pytest.raises(ConfigError, match="kubeconfig: No such file or directory") as caught:
        await asyncio.wait_for(serve(plan, lambda _: None, asyncio.Event()), 30)
    assert caught.value.path.startswith("--kubeconfig-out")


def test_a_kubeconfig_of_somebody_else_is_not_taken_away(tmp_path: Path) -> None:
    path = tmp_path / "kubeconfig"
    path.write_bytes(b"another")
    take_away(path, b"ours")
    assert path.exists()
    take_away(path, b"another")
    assert not path.exists()
