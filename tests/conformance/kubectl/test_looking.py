"""kubectl commands that look: get in its forms, describe, wait, events and api-resources."""

import json

import pytest
from tests.conformance.cluster_process import ClusterProcess
from tests.conformance.kubectl.manifests import group, job, pod
from tests.conformance.kubectl.test_changing import apply, ok


@pytest.fixture(scope="module")
def gang(cluster: ClusterProcess) -> str:
    """A gang of two that runs, named look; a third pod of it is not asked for."""
    apply(cluster, group("look", 2, labels={"team": "a"}))
    apply(cluster, pod("look-0", "look", gpus=1), pod("look-1", "look", gpus=1))
    ok(cluster.kubectl("wait", "--for=condition=Ready", "pod/look-0", "pod/look-1", "--timeout=20s"))
    return "look"


def rows(table: str) -> list[list[str]]:
    """Cut a table into cells at two or more spaces."""
    return [[cell for cell in line.split("  ") if cell.strip()] for line in table.splitlines()]


def header(table: str) -> list[str]:
    return [cell.strip() for cell in rows(table)[0]]


def test_get_pods_shows_the_usual_columns(cluster: ClusterProcess, gang: str) -> None:
    table = ok(cluster.kubectl("get", "pods", "look-0", "look-1"))
    assert header(table) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert table.splitlines()[1].split()[:4] == ["look-0", "1/1", "Running", "0"]


def test_get_pods_wide_shows_the_node(cluster: ClusterProcess, gang: str) -> None:
    table = ok(cluster.kubectl("get", "pods", "-o", "wide"))
    assert header(table)[5:] == ["IP", "NODE", "NOMINATED NODE", "READINESS GATES"]
    assert "n1" in next(line for line in table.splitlines() if line.startswith("look-0 "))


def test_get_podgroups_shows_policy_workload_and_status(cluster: ClusterProcess, gang: str) -> None:
    table = ok(cluster.kubectl("get", "podgroup", "look"))
    assert table.splitlines()[0].split() == ["NAME", "POLICY", "WORKLOAD", "STATUS", "AGE"]
    assert table.splitlines()[1].split()[:4] == ["look", "Gang", "<none>", "Scheduled"]


def test_get_nodes_shows_status_roles_and_version(cluster: ClusterProcess) -> None:
    table = ok(cluster.kubectl("get", "nodes", "n1", "n2"))
    assert table.splitlines()[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION"]
    assert table.splitlines()[1].split()[:3] == ["n1", "Ready", "worker"]
    wide = ok(cluster.kubectl("get", "nodes", "-o", "wide")).splitlines()[0]
    assert "INTERNAL-IP" in wide
    assert "CONTAINER-RUNTIME" in wide


def test_get_jobs_and_workloads(cluster: ClusterProcess) -> None:
    apply(cluster, job("look-job", 2))
    ok(cluster.kubectl("wait", "--for=condition=Complete", "job/look-job", "--timeout=30s"))
    line = ok(cluster.kubectl("get", "jobs", "look-job")).splitlines()
    assert line[0].split() == ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    assert line[1].split()[:3] == ["look-job", "Complete", "2/2"]
    workload = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "Workload",
        "metadata": {"name": "look-workload"},
        "spec": {"podGroupTemplates": [{"name": "t", "schedulingPolicy": {"basic": {}}}]},
    }
    assert apply(cluster, workload) == "workload.scheduling.k8s.io/look-workload created\n"
    table = ok(cluster.kubectl("get", "workload", "look-workload"))
    assert table.split()[:3] == ["NAME", "AGE", "look-workload"]


def test_get_nothing_and_all_namespaces(cluster: ClusterProcess, gang: str) -> None:
    assert cluster.kubectl("get", "pods", "-l", "no=such").err == "No resources found in default namespace.\n"
    table = ok(cluster.kubectl("get", "podgroups", "-A"))
    assert table.split()[0] == "NAMESPACE"


def test_get_as_yaml_json_name_and_jsonpath(cluster: ClusterProcess, gang: str) -> None:
    text = ok(cluster.kubectl("get", "podgroup", "look", "-o", "yaml"))
    assert text.startswith("apiVersion: scheduling.k8s.io/v1beta1\nkind: PodGroup\n")
    assert "managedFields" not in text
    assert json.loads(ok(cluster.kubectl("get", "pods", "-o", "json")))["kind"] == "List"
    assert ok(cluster.kubectl("get", "podgroup", "look", "-o", "name")) == "podgroup.scheduling.k8s.io/look\n"
    node = cluster.kubectl("get", "pod", "look-0", "-o", "jsonpath={.spec.nodeName}")
    assert ok(node) == "n1"


def test_get_by_label_and_field(cluster: ClusterProcess, gang: str) -> None:
    assert ok(cluster.kubectl("get", "podgroups", "-l", "team=a", "-o", "name")) == (
        "podgroup.scheduling.k8s.io/look\n"
    )
    on_node = ok(cluster.kubectl("get", "pods", "--field-selector", "spec.nodeName=n1", "-o", "name"))
    assert "pod/look-0\n" in on_node


def test_get_two_kinds_at_once(cluster: ClusterProcess, gang: str) -> None:
    text = ok(cluster.kubectl("get", "podgroup/look", "pod/look-0"))
    assert "podgroup.scheduling.k8s.io/look" in text
    assert "pod/look-0" in text


def test_what_does_not_exist_is_told(cluster: ClusterProcess) -> None:
    missing = cluster.kubectl("get", "podgroup", "nope")
    assert (missing.code, missing.err) == (
        1,
        'Error from server (NotFound): podgroups.scheduling.k8s.io "nope" not found\n',
    )
    unknown = cluster.kubectl("get", "nopes")
    assert (unknown.code, unknown.err) == (1, 'error: the server doesn\'t have a resource type "nopes"\n')


def test_a_watch_prints_each_change(cluster: ClusterProcess) -> None:
    apply(cluster, group("watched", 2))
    command = [
        "get",
        "podgroup",
        "watched",
        "-w",
        "-o",
        'jsonpath={.spec.schedulingPolicy.gang.minCount}{"\\n"}',
    ]
    with cluster.start_kubectl(*command) as watching:
        assert watching.stdout is not None
        assert watching.stdout.readline() == "2\n"
        patch = '{"spec":{"schedulingPolicy":{"gang":{"minCount":5}}}}'
        ok(cluster.kubectl("patch", "podgroup", "watched", "--type=merge", "-p", patch))
        seen = [watching.stdout.readline()]
        while seen[-1] == "2\n":  # conditions may change in between
            seen.append(watching.stdout.readline())
        watching.terminate()
    assert seen[-1] == "5\n"


def test_a_watched_table_has_one_header_and_a_row_a_change(cluster: ClusterProcess) -> None:
    with cluster.start_kubectl("get", "pods", "-w", "-l", "app=tabled") as watching:
        assert watching.stdout is not None
        apply(cluster, pod("tabled", labels={"app": "tabled"}))
        lines = [watching.stdout.readline(), watching.stdout.readline()]
        while "Running" not in lines[-1]:
            lines.append(watching.stdout.readline())
        watching.terminate()
    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    assert {line.split()[0] for line in lines[1:]} == {"tabled"}
    assert {line.split()[2] for line in lines[1:]} <= {"Pending", "ContainerCreating", "Running"}


def test_wait_for_a_condition_that_comes_and_one_that_does_not(cluster: ClusterProcess) -> None:
    waiting = cluster.start_kubectl(
        "wait", "--for=condition=PodGroupInitiallyScheduled", "podgroup/late", "--timeout=20s"
    )
    waiting.communicate()  # a group that does not exist yet is no group to wait for
    assert waiting.returncode == 1
    apply(cluster, group("late", 1))
    with cluster.start_kubectl(
        "wait", "--for=condition=PodGroupInitiallyScheduled", "podgroup/late", "--timeout=20s"
    ) as waiting:
        apply(cluster, pod("late-0", "late"))
        out, err = waiting.communicate(timeout=30)
    assert (out, err) == ("podgroup.scheduling.k8s.io/late condition met\n", "")
    never = cluster.kubectl("wait", "--for=condition=Never", "pod/late-0", "--timeout=1s")
    assert (never.code, never.err) == (1, "error: timed out waiting for the condition on pods/late-0\n")


def test_describe_podgroup(cluster: ClusterProcess, gang: str) -> None:
    text = ok(cluster.kubectl("describe", "podgroup", "look"))
    for part in ("Kind:         PodGroup", "Min Count:  2", "Reason:                Scheduled", "team=a"):
        assert part in text, text


def test_describe_pod_shows_its_group_and_events(cluster: ClusterProcess, gang: str) -> None:
    text = ok(cluster.kubectl("describe", "pod", "look-0"))
    for part in ("SchedulingGroup:", "PodGroupName:  look", "Node:", "n1/", "Scheduled", "default-scheduler"):
        assert part in text, text


def test_describe_node_adds_up_what_is_requested(cluster: ClusterProcess, gang: str) -> None:
    text = ok(cluster.kubectl("describe", "node", "n1"))
    assert "Non-terminated Pods:" in text
    assert "default                     look-0" in text
    assert "nvidia.com/gpu" in text.split("Allocated resources:")[1]


def test_describe_job(cluster: ClusterProcess) -> None:
    apply(cluster, job("described", 1))
    ok(cluster.kubectl("wait", "--for=condition=Complete", "job/described", "--timeout=30s"))
    text = ok(cluster.kubectl("describe", "job", "described"))
    assert "Pods Statuses:    0 Active (0 Ready) / 1 Succeeded / 0 Failed" in text
    assert "SuccessfulCreate" in text


def test_events_in_both_forms(cluster: ClusterProcess, gang: str) -> None:
    got = ok(cluster.kubectl("get", "events"))
    assert got.splitlines()[0].split() == ["LAST", "SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
    assert "pod/look-0" in got
    told = ok(cluster.kubectl("events", "--for", "pod/look-0"))
    assert "Scheduled" in told
    assert "Pod/look-0" in told


def test_api_resources_and_versions(cluster: ClusterProcess) -> None:
    listed = ok(cluster.kubectl("api-resources", "--api-group=scheduling.k8s.io", "--no-headers"))
    names = [line.split()[0] for line in listed.splitlines()]
    assert names == ["compositepodgroups", "podgroups", "priorityclasses", "workloads"]
    versions = ok(cluster.kubectl("api-versions")).splitlines()
    assert {"v1", "batch/v1", "scheduling.k8s.io/v1beta1", "scheduling.k8s.io/v1alpha3"} <= set(versions)


def test_version_and_raw(cluster: ClusterProcess) -> None:
    assert "Server Version: v1.37" in ok(cluster.kubectl("version"))
    assert json.loads(ok(cluster.kubectl("get", "--raw", "/api/v1/nodes")))["kind"] == "NodeList"


def test_explain_knows_the_fields(cluster: ClusterProcess) -> None:
    text = ok(cluster.kubectl("explain", "podgroup.spec.schedulingPolicy"))
    assert "GROUP:      scheduling.k8s.io" in text
    assert "gang" in text


def test_without_a_token_nobody_gets_in(cluster: ClusterProcess) -> None:
    ran = cluster.kubectl("get", "pods", "--token=wrong")
    assert ran.code == 1
    assert "Unauthorized" in ran.err
