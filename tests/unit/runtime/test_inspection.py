"""What is said of each way in which a cluster can fall short."""

import json
from typing import Any

import pytest
from aiohttp import web
from tests.unit.runtime.in_process import ManualClock, client_of, status

from muster.base.errors import ConfigError
from muster.runtime.inspection import (
    Binder,
    Finding,
    LeaseHolder,
    Level,
    inspect,
    judge_api,
    judge_rivals,
    probe_pod,
)

NOW_S = 1_800_000_000.0
NOW = "2027-01-15T08:00:00.000000Z"


class FakeCluster:
    """An API server with two switches, rights, leases and events."""

    def __init__(self) -> None:
        self.is_served = True
        self.keeps_group = True
        self.denied: set[tuple[str, str]] = set()
        self.has_reviews = True
        self.leases: dict[str, dict[str, Any]] = {}
        self.events: list[dict[str, Any]] = []
        self.pods_refused = False
        self.reviewed: list[dict[str, str]] = []
        self.date = "Fri, 15 Jan 2027 08:00:00 GMT"  # NOW

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        path = request.path
        if path == "/version":
            return web.json_response({"gitVersion": "v1.37.2"}, headers={"Date": self.date})
        if path == "/apis/scheduling.k8s.io/v1beta1" and self.is_served:
            names = ["podgroups", "podgroups/status", "workloads"]
            return web.json_response({"resources": [{"name": name} for name in names]})
        if path.endswith("/pods") and request.query.get("dryRun") == "All" and not self.pods_refused:
            pod = await request.json()
            if not self.keeps_group:
                del pod["spec"]["schedulingGroup"]
            return web.json_response(pod, status=201)
        if path.endswith("/selfsubjectaccessreviews") and self.has_reviews:
            asked = (await request.json())["spec"]["resourceAttributes"]
            self.reviewed.append(asked)
            name = "/".join(filter(None, (asked["resource"], asked.get("subresource"))))
            return web.json_response(
                {"status": {"allowed": (asked["verb"], name) not in self.denied}}, status=201
            )
        lease = self.leases.get(path.rpartition("/")[2])
        if lease is not None:
            return web.json_response({"metadata": {}, "spec": lease})
        if path == "/apis/events.k8s.io/v1/events":
            return web.json_response({"items": self.events})
        return status(403 if self.pods_refused and path.endswith("/pods") else 404, "NotFound", "not here")

    async def inspect(self, *names: str) -> list[Finding]:
        async with client_of(self.answer, clock=ManualClock(NOW_S)) as client:
            return await inspect(client, scheduler_names=names or ("muster",), now_s=lambda: NOW_S)


def missing(findings: list[Finding]) -> list[str]:
    return [finding.text for finding in findings if finding.level is Level.MISSING]


async def test_a_sound_cluster_lacks_nothing() -> None:
    findings = await FakeCluster().inspect()
    assert [finding.level for finding in findings] == [Level.OK] * len(findings)
    assert [finding.check for finding in findings] == ["version", "clock", "api", "gate", "rights", "rival"]


@pytest.mark.parametrize(
    ("is_served", "is_gate_on", "words"),
    [
        pytest.param(False, True, "gate GenericWorkload is on, but scheduling.k8s.io/v1beta1", id="api-off"),
        pytest.param(True, False, "spec.schedulingGroup of new pods is dropped", id="gate-off"),
        pytest.param(
            False, False, "both are off unless asked for in 1.37, though they are beta", id="both-off"
        ),
        pytest.param(False, None, "scheduling.k8s.io/v1beta1 is not served", id="api-off-gate-unknown"),
    ],
)
def test_the_two_switches_are_told_apart(is_served: bool, is_gate_on: bool | None, words: str) -> None:
    faults = [
        finding
        for finding in judge_api(is_served=is_served, is_gate_on=is_gate_on)
        if finding.level is Level.MISSING
    ]
    assert len(faults) == 1
    assert words in faults[0].text
    assert "start kube-apiserver with --" in faults[0].cure


@pytest.mark.parametrize(
    ("date", "words"),
    [
        pytest.param("Fri, 15 Jan 2027 08:00:29 GMT", [], id="as good as equal"),
        pytest.param("Fri, 15 Jan 2027 07:00:00 GMT", ["3600 s ahead of the server's", "early"], id="ahead"),
        pytest.param("Fri, 15 Jan 2027 08:01:00 GMT", ["60 s behind the server's", "late"], id="behind"),
        pytest.param("yesterday", [], id="no time at all"),
    ],
)
async def test_clocks_that_differ_are_found_out(date: str, words: list[str]) -> None:
    cluster = FakeCluster()
    cluster.date = date
    faults = missing(await cluster.inspect())
    assert len(faults) == bool(words)
    assert all(word in faults[0] for word in words)


async def test_a_cluster_that_drops_the_group_is_found_out_by_a_dry_run() -> None:
    cluster = FakeCluster()
    cluster.keeps_group = False
    assert "dropped without a word" in missing(await cluster.inspect())[0]


async def test_a_dry_run_that_is_refused_is_no_verdict() -> None:
    cluster = FakeCluster()
    cluster.pods_refused = True
    findings = {finding.check: finding for finding in await cluster.inspect()}
    assert findings["gate"].level is Level.UNKNOWN
    assert "was refused: not here" in findings["gate"].text


def test_the_pod_of_the_dry_run_passes_the_restricted_pod_security_standard() -> None:
    spec = probe_pod()["spec"]
    context = spec["containers"][0]["securityContext"]
    assert spec["securityContext"]["runAsNonRoot"]
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert context == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


async def test_each_missing_right_says_what_it_is_for() -> None:
    cluster = FakeCluster()
    cluster.denied = {("create", "pods/binding"), ("patch", "podgroups/status")}
    cluster.denied |= {("get", "leases"), ("create", "leases"), ("update", "leases")}
    assert missing(await cluster.inspect()) == [
        "this user may not create pods/binding, so Muster could not bind pods to nodes",
        "this user may not patch podgroups.scheduling.k8s.io/status,"
        " so Muster could not say on a group whether it was placed",
        "this user may not get, create and update leases.coordination.k8s.io in namespace kube-system,"
        " so Muster could not be the only one of its name",
    ]


async def test_a_right_to_one_lease_is_asked_for_by_its_name() -> None:
    cluster = FakeCluster()
    await cluster.inspect("trainer")
    asked = [review for review in cluster.reviewed if review["resource"] == "leases"]
    assert [(review["verb"], review.get("name")) for review in asked] == [
        ("get", "trainer"),
        ("create", None),
        ("update", "trainer"),
    ]


async def test_a_server_without_access_reviews_leaves_the_rights_unknown() -> None:
    cluster = FakeCluster()
    cluster.has_reviews = False
    findings = {finding.check: finding for finding in await cluster.inspect()}
    assert findings["rights"].level is Level.UNKNOWN
    assert "no access reviews" in findings["rights"].text


async def test_a_muster_that_leads_already_is_no_rival() -> None:
    cluster = FakeCluster()
    cluster.leases["muster"] = {"holderIdentity": "host_1", "renewTime": NOW, "leaseDurationSeconds": 15}
    assert missing(await cluster.inspect()) == []


async def test_kube_scheduler_is_a_rival_for_the_default_name() -> None:
    cluster = FakeCluster()
    cluster.leases["kube-scheduler"] = {
        "holderIdentity": "cp_1",
        "renewTime": NOW,
        "leaseDurationSeconds": 15,
    }
    assert missing(await cluster.inspect("muster")) == []
    assert "kube-scheduler is running (cp_1)" in missing(await cluster.inspect("default-scheduler"))[0]


async def test_a_kube_scheduler_that_gave_its_lease_back_is_no_rival() -> None:
    cluster = FakeCluster()
    cluster.leases["kube-scheduler"] = {"holderIdentity": "", "renewTime": NOW, "leaseDurationSeconds": 15}
    assert missing(await cluster.inspect("default-scheduler")) == []


async def test_somebody_who_binds_without_a_lease_is_a_rival() -> None:
    cluster = FakeCluster()
    event = {"eventTime": "2027-01-15T07:59:50.000000Z", "reportingController": "muster"}
    cluster.events = [event | {"reportingInstance": "other-1"}]
    assert "being bound by other-1 while nobody holds" in missing(await cluster.inspect())[0]


@pytest.mark.parametrize(
    ("holder", "binders", "is_rival"),
    [
        pytest.param(None, [Binder("a", NOW_S - 500, NOW_S - 100)], False, id="long-ago"),
        pytest.param(
            LeaseHolder("a", True, NOW_S - 900), [Binder("a", NOW_S - 500, NOW_S - 1)], False, id="the-leader"
        ),
        pytest.param(
            LeaseHolder("b", True, NOW_S - 5), [Binder("a", NOW_S - 500, NOW_S - 6)], False, id="handed-over"
        ),
        pytest.param(
            LeaseHolder("", False, NOW_S - 5), [Binder("a", NOW_S - 500, NOW_S - 6)], False, id="just-stopped"
        ),
        pytest.param(
            LeaseHolder("b", True, NOW_S - 900),
            [Binder("a", NOW_S - 2, NOW_S - 1)],
            True,
            id="not-the-leader",
        ),
        pytest.param(
            None,
            [Binder("a", NOW_S - 900, NOW_S - 500), Binder("b", NOW_S - 700, NOW_S - 400)],
            True,
            id="two-at-the-same-time",
        ),
        pytest.param(
            None,
            [Binder("a", NOW_S - 900, NOW_S - 700), Binder("b", NOW_S - 600, NOW_S - 400)],
            False,
            id="one-after-the-other",
        ),
    ],
)
def test_who_counts_as_a_rival(holder: LeaseHolder | None, binders: list[Binder], is_rival: bool) -> None:
    finding = judge_rivals("muster", holder=holder, stock=None, binders=binders, now_s=NOW_S)
    assert (finding.level is Level.MISSING) is is_rival


async def test_a_server_that_is_none_is_a_config_error() -> None:
    async def handler(request: web.BaseRequest) -> web.Response:
        return web.Response(text=json.dumps([]))

    async with client_of(handler) as client:
        with pytest.raises(ConfigError, match="is no Kubernetes API server"):
            await inspect(client, scheduler_names=("muster",), now_s=lambda: NOW_S)
