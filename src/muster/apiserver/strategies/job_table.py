"""The row of a Job."""

from typing import Any

from muster.apiserver.kinds import Object
from muster.apiserver.strategies.fields import items, mapping, text
from muster.apiserver.strategies.printing import Column, age, column, duration, seconds
from muster.apiserver.strategies.selectors import selector_text

COLUMNS: tuple[Column, ...] = (
    column("Name"),
    column("Status"),
    column("Completions"),
    column("Duration"),
    column("Age"),
    column("Containers", wide=True),
    column("Images", wide=True),
    column("Selector", wide=True),
)


def job_cells(job: Object, now_s: float) -> list[Any]:
    """One row, wide columns included."""
    spec, status = mapping(job, "spec"), mapping(job, "status")
    containers = items(mapping(mapping(spec, "template"), "spec"), "containers")
    return [
        job["metadata"]["name"],
        _status(job),
        _completions(spec, status),
        _duration(status, now_s),
        age(job, now_s),
        ",".join(text(container, "name") for container in containers),
        ",".join(text(container, "image") for container in containers),
        selector_text(spec.get("selector")),
    ]


def _status(job: Object) -> str:
    status = mapping(job, "status")
    true = {c.get("type") for c in items(status, "conditions") if c.get("status") == "True"}
    if "Complete" in true:
        return "Complete"
    if "Failed" in true:
        return "Failed"
    if job["metadata"].get("deletionTimestamp"):
        return "Terminating"
    if "Suspended" in true:
        return "Suspended"
    if "FailureTarget" in true:
        return "FailureTarget"
    if "SuccessCriteriaMet" in true:
        return "SuccessCriteriaMet"
    return "Running"


def _completions(spec: Object, status: Object) -> str:
    succeeded = status.get("succeeded") or 0
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _duration(status: Object, now_s: float) -> str:
    start = seconds(status.get("startTime"))
    if start is None:
        return ""
    end = seconds(status.get("completionTime"))
    return duration((now_s if end is None else end) - start)
