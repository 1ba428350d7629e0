"""Manifests as a user writes them, for the kubectl tests."""

from typing import Any

import yaml


def write(*objects: dict[str, Any]) -> str:
    """Give the objects as one YAML text."""
    return yaml.safe_dump_all(objects)


def group(name: str, min_count: int | None = None, **metadata: Any) -> dict[str, Any]:
    """A PodGroup: a gang, or basic without `min_count`."""
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    return {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, **metadata},
        "spec": {"schedulingPolicy": policy},
    }


def pod(
    name: str, group: str | None = None, *, cpu: str = "100m", gpus: int = 0, **metadata: Any
) -> dict[str, Any]:
    """A pod of one container; it goes at once when deleted."""
    requests: dict[str, Any] = {"cpu": cpu}
    limits = {"nvidia.com/gpu": gpus} if gpus else {}
    spec: dict[str, Any] = {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {"name": "c", "image": "example.com/c:1", "resources": {"requests": requests, "limits": limits}}
        ],
    }
    if group is not None:
        spec["schedulingGroup"] = {"podGroupName": group}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, **metadata}, "spec": spec}


def job(name: str, completions: int, *, run_seconds: float = 0.2) -> dict[str, Any]:
    """A Job whose pods end by themselves."""
    template = {
        "metadata": {"annotations": {"muster.dev/run-seconds": str(run_seconds)}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "example.com/c:1"}]},
    }
    spec = {"completions": completions, "parallelism": completions, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
