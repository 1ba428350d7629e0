"""The null gang binder decides nothing, imports nothing of Muster, and writes each thing once."""

import asyncio
import subprocess
import sys
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from bench.null_binder import Binder, Item

ROOT = Path(__file__).parent.parent.parent


class FakeApi:
    """Accepts everything and keeps what it was told."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []

    async def call(self, method: str, path: str, body: bytes = b"", content_type: str = "") -> bytes:
        self.calls.append((method, path))
        await asyncio.sleep(0)
        return b"{}"

    def counted(self) -> Counter[str]:
        """Calls by the last part of their path."""
        return Counter(path.rsplit("/", 1)[1] for _, path in self.calls)


def pod(name: str, group: str = "") -> Item:
    spec = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return item(name, spec)


def group(name: str, min_count: int) -> Item:
    return item(name, {"schedulingPolicy": {"gang": {"minCount": min_count}}})


def item(name: str, spec: dict[str, object]) -> Item:
    return msgspec.convert({"metadata": {"name": name, "namespace": "d", "uid": name}, "spec": spec}, Item)


async def settle() -> None:
    for _ in range(30):
        await asyncio.sleep(0)


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
def binder(api: FakeApi) -> Binder:
    return Binder(api)  # type: ignore[arg-type]


async def test_a_gang_that_is_short_is_left_alone(binder: Binder, api: FakeApi) -> None:
    binder._see_group(group("g", 2))
    binder._see_pod(pod("a", "g"))
    await settle()
    assert api.calls == []


async def test_a_complete_gang_is_bound_told_once_and_has_its_events(binder: Binder, api: FakeApi) -> None:
    for name in "abc":
        binder._see_pod(pod(name, "g"))
    binder._see_group(group("g", 2))
    binder._see_pod(pod("d", "g"))
    await settle()
    assert api.counted() == {"binding": 4, "status": 1, "events": 4}
    assert api.calls[-1][1].endswith("events")


async def test_a_lone_pod_is_bound_at_once_and_only_once(binder: Binder, api: FakeApi) -> None:
    binder._see_pod(pod("a"))
    binder._see_pod(pod("a"))
    await settle()
    assert api.counted() == {"binding": 1, "events": 1}


def test_it_imports_nothing_of_muster() -> None:
    code = "import sys, bench.null_binder; print([m for m in sys.modules if m.split('.')[0] == 'muster'])"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
