"""kubectl commands that change things: apply, create, patch, label, delete, cordon and taint."""

from tests.conformance.cluster_process import ClusterProcess, Ran
from tests.conformance.kubectl.manifests import group, job, pod, write


def ok(ran: Ran) -> str:
    """Give what a command that must succeed printed."""
    assert ran.code == 0, ran.err
    return ran.out


def apply(cluster: ClusterProcess, *objects: dict[str, object]) -> str:
    return ok(cluster.kubectl("apply", "-f", "-", text=write(*objects)))


def test_apply_creates_then_finds_nothing_to_do_then_configures(cluster: ClusterProcess) -> None:
    name = "podgroup.scheduling.k8s.io/apply-a"
    assert apply(cluster, group("apply-a", 2)) == f"{name} created\n"
    assert apply(cluster, group("apply-a", 2)) == f"{name} unchanged\n"
    assert apply(cluster, group("apply-a", 3)) == f"{name} configured\n"


def test_apply_takes_several_kinds_at_once(cluster: ClusterProcess) -> None:
    printed = apply(cluster, group("apply-b", 1), pod("apply-b-0", "apply-b"), job("apply-b", 1))
    assert printed.splitlines() == [
        "podgroup.scheduling.k8s.io/apply-b created",
        "pod/apply-b-0 created",
        "job.batch/apply-b created",
    ]


def test_create_twice_says_that_it_exists(cluster: ClusterProcess) -> None:
    text = write(group("create-a", 2))
    assert (
        ok(cluster.kubectl("create", "-f", "-", text=text)) == "podgroup.scheduling.k8s.io/create-a created\n"
    )
    again = cluster.kubectl("create", "-f", "-", text=text)
    assert (again.code, again.err) == (
        1,
        'Error from server (AlreadyExists): error when creating "STDIN": '
        'podgroups.scheduling.k8s.io "create-a" already exists\n',
    )


def test_an_invalid_group_is_refused_with_the_field(cluster: ClusterProcess) -> None:
    ran = cluster.kubectl("apply", "-f", "-", text=write(group("bad", 0)))
    assert ran.code == 1
    assert 'The PodGroup "bad" is invalid: spec.schedulingPolicy.gang.minCount' in ran.err


def test_an_unknown_field_is_refused(cluster: ClusterProcess) -> None:
    wrong = group("bad", 1)
    wrong["spec"]["schedulingPolicies"] = {}
    ran = cluster.kubectl("apply", "-f", "-", text=write(wrong))
    assert ran.code == 1
    assert 'unknown field "spec.schedulingPolicies"' in ran.err


def test_a_version_that_is_not_served_is_told(cluster: ClusterProcess) -> None:
    old = group("bad", 1) | {"apiVersion": "scheduling.k8s.io/v1alpha1"}
    ran = cluster.kubectl("apply", "-f", "-", text=write(old))
    assert ran.code == 1
    assert 'no matches for kind "PodGroup" in version "scheduling.k8s.io/v1alpha1"' in ran.err


def test_patch_in_its_three_forms(cluster: ClusterProcess) -> None:
    apply(cluster, group("patch-a", 2))
    name = "podgroup.scheduling.k8s.io/patch-a"
    merge = '{"spec":{"schedulingPolicy":{"gang":{"minCount":3}}}}'
    json_patch = '[{"op":"replace","path":"/spec/schedulingPolicy/gang/minCount","value":4}]'
    for kind, patch in (("merge", merge), ("json", json_patch), ("strategic", merge)):
        assert (
            ok(cluster.kubectl("patch", "podgroup", "patch-a", f"--type={kind}", "-p", patch))
            == f"{name} patched\n"
        )
    again = cluster.kubectl("patch", "podgroup", "patch-a", "--type=merge", "-p", merge)
    assert ok(again) == f"{name} patched (no change)\n"
    count = cluster.kubectl(
        "get", "podgroup", "patch-a", "-o", "jsonpath={.spec.schedulingPolicy.gang.minCount}"
    )
    assert ok(count) == "3"


def test_label_and_annotate(cluster: ClusterProcess) -> None:
    apply(cluster, pod("label-a"))
    assert ok(cluster.kubectl("label", "pod", "label-a", "a=b")) == "pod/label-a labeled\n"
    again = cluster.kubectl("label", "pod", "label-a", "a=c")
    assert (again.code, again.err) == (1, "error: 'a' already has a value (b), and --overwrite is false\n")
    assert ok(cluster.kubectl("annotate", "pod", "label-a", "x=y")) == "pod/label-a annotated\n"
    assert ok(cluster.kubectl("get", "pods", "-l", "a=b", "-o", "name")) == "pod/label-a\n"


def test_delete_waits_until_it_is_gone(cluster: ClusterProcess) -> None:
    apply(cluster, group("delete-a", 1), pod("delete-a-0", "delete-a"))
    gone = ok(cluster.kubectl("delete", "pod", "delete-a-0"))
    assert gone == 'pod "delete-a-0" deleted from default namespace\n'
    gone = ok(cluster.kubectl("delete", "podgroup", "delete-a"))
    assert gone == 'podgroup.scheduling.k8s.io "delete-a" deleted from default namespace\n'
    assert cluster.kubectl("get", "podgroup", "delete-a").err == (
        'Error from server (NotFound): podgroups.scheduling.k8s.io "delete-a" not found\n'
    )


def test_delete_of_nothing(cluster: ClusterProcess) -> None:
    assert cluster.kubectl("delete", "pod", "nobody").code == 1
    assert ok(cluster.kubectl("delete", "pod", "nobody", "--ignore-not-found")) == ""
    assert "No resources found" in ok(cluster.kubectl("delete", "pods", "-l", "no=pod"))


def test_delete_by_force(cluster: ClusterProcess) -> None:
    apply(cluster, pod("force-a"))
    ran = cluster.kubectl("delete", "pod", "force-a", "--grace-period=0", "--force")
    assert ran.out == 'pod "force-a" force deleted from default namespace\n'
    assert ran.err.startswith("Warning: Immediate deletion does not wait for confirmation")


def test_deleting_a_job_takes_its_pods_along(cluster: ClusterProcess) -> None:
    apply(cluster, job("delete-job", 2, run_seconds=600))
    ok(cluster.kubectl("wait", "--for=jsonpath={.status.active}=2", "job/delete-job", "--timeout=20s"))
    assert ok(cluster.kubectl("delete", "job", "delete-job")) == (
        'job.batch "delete-job" deleted from default namespace\n'
    )
    wait = ("wait", "--for=delete", "pod", "-l", "batch.kubernetes.io/job-name=delete-job", "--timeout=20s")
    assert cluster.kubectl(*wait).code == 0


def test_cordon_and_uncordon(cluster: ClusterProcess) -> None:
    assert ok(cluster.kubectl("cordon", "n2")) == "node/n2 cordoned\n"
    assert ok(cluster.kubectl("cordon", "n2")) == "node/n2 already cordoned\n"
    assert "Ready,SchedulingDisabled" in ok(cluster.kubectl("get", "node", "n2"))
    assert ok(cluster.kubectl("uncordon", "n2")) == "node/n2 uncordoned\n"


def test_taint_and_untaint(cluster: ClusterProcess) -> None:
    assert ok(cluster.kubectl("taint", "nodes", "n2", "k=v:NoSchedule")) == "node/n2 tainted\n"
    assert "k=v:NoSchedule" in ok(cluster.kubectl("describe", "node", "n2"))
    assert ok(cluster.kubectl("taint", "nodes", "n2", "k-")) == "node/n2 untainted\n"


def test_replace_needs_what_is_immutable(cluster: ClusterProcess) -> None:
    apply(cluster, group("replace-a", 2))
    ran = cluster.kubectl("replace", "-f", "-", text=write(group("replace-a", 3)))
    assert ran.code == 1
    assert "spec.priority: Invalid value: null: field is immutable" in ran.err


def test_a_dry_run_changes_nothing(cluster: ClusterProcess) -> None:
    ran = cluster.kubectl("create", "--dry-run=server", "-f", "-", text=write(group("dry", 2)))
    assert ok(ran) == "podgroup.scheduling.k8s.io/dry created (server dry run)\n"
    assert cluster.kubectl("get", "podgroup", "dry").code == 1
