"""The story of `muster demo`, three acts, as data: what is done, what must come of it, what did.

The manifests are the files of `examples/story/`; a user can apply them by hand.  In comes a `Stage`, an
embedded cluster in real or in virtual time; out come acts with their claims, each true or not.
Next: `demo.py`, which shows them.
"""

from collections.abc import Callable, Iterator
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any, Protocol

import yaml
from msgspec import Struct

from muster.cli.picture import GroupPicture, Picture, take_picture
from muster.framework.groups import ObjectKey

Object = dict[str, Any]

GPU = "nvidia.com/gpu"
NODES = "nodes.yaml"
NAMESPACE = "default"
_PATIENCE_S = 5.0
_POD = "/api/v1/namespaces/default/pods"
_GROUP = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
_COLLECTIONS = {"Pod": _POD, "PodGroup": _GROUP, "Node": "/api/v1/nodes"}


class Stage(Protocol):
    """A cluster to play on."""

    def call(self, method: str, path: str, body: Object | None = None) -> Object:
        """Send one request; raises `ApiError` where it is refused."""
        ...

    def pass_time(self, until: Callable[[], bool], patience_s: float) -> bool:
        """Let the cluster work until `until` is true; False if it is not within `patience_s`."""
        ...


class Claim(Struct, frozen=True):
    """Something the story says, and whether it came true."""

    text: str
    holds: bool


class Scene(Struct, frozen=True):
    """A moment worth showing: the picture then, what a group said, and what should be true."""

    caption: str
    picture: Picture
    messages: tuple[str, ...]
    claims: tuple[Claim, ...]


class Act(Struct, frozen=True):
    """A title, what is set up, and the scenes that follow, played as they are asked for."""

    title: str
    setting: str
    scenes: Callable[[Stage], Iterator[Scene]]


def manifests(name: str) -> list[Object]:
    """Give the objects of a file of the story, from the installed package or the source tree."""
    packaged = resources.files("muster.cli") / "examples" / name
    source = Path(__file__).parents[3] / "examples" / "story" / name
    text = packaged.read_text("utf-8") if packaged.is_file() else source.read_text("utf-8")
    return list(yaml.safe_load_all(text))


def look(stage: Stage) -> Picture:
    """Take a picture of the whole cluster through its API."""
    nodes, pods, groups = (
        stage.call("GET", path)["items"]
        for path in ("/api/v1/nodes", "/api/v1/pods", "/apis/scheduling.k8s.io/v1beta1/podgroups")
    )
    return take_picture(nodes, pods, groups)


# ── the three acts ───────────────────────────────────────────────────────────────────────────────


def _pod_at_a_time(stage: Stage) -> Iterator[Scene]:
    for entry in manifests("act-1-pod-at-a-time.yaml"):
        _create(stage, entry)
        if entry["kind"] == "Pod":
            stage.pass_time(partial(_is_decided, stage, entry["metadata"]["name"]), _PATIENCE_S)
    picture = look(stage)
    a, b = _group(picture, "job-a"), _group(picture, "job-b")
    runnable = sum(group.can_run for group in (a, b))
    yield Scene(
        f"{runnable} of 2 jobs able to run",
        picture,
        (picture.explain_deadlock(),),
        (
            Claim("12 of 12 GPUs are allocated", picture.requested[GPU] == picture.allocatable[GPU] == 12),
            Claim("job-a has 6 of its 8 workers, job-b too", (a.placed, b.placed) == (6, 6)),
            Claim("0 of 2 jobs are able to run", runnable == 0),
            Claim("this is a deadlock of job-a and job-b", picture.deadlocked == (a, b)),
        ),
    )


def _gangs(stage: Stage) -> Iterator[Scene]:
    _clear(stage)
    for entry in manifests("act-2-gangs.yaml"):
        _create(stage, entry)
    stage.pass_time(lambda: _placed(stage, "job-a") == 8 and bool(_reason(stage, "job-b")), _PATIENCE_S)
    picture = look(stage)
    a, b = _group(picture, "job-a"), _group(picture, "job-b")
    message = _reason(stage, "job-b")
    yield Scene(
        "one job runs, the other holds nothing",
        picture,
        (f"{b.group.key} {message}",),
        (
            Claim("job-a has all 8 workers", (a.placed, a.can_run) == (8, True)),
            Claim("job-b holds nothing", (b.placed, dict(b.held)) == (0, {})),
            Claim("nobody is deadlocked", not picture.deadlocked),
            Claim("job-b says what it needs: 8 × 1 GPU, 4 free", f"8 × 1 {GPU}, 4 free" in message),
            Claim("job-b says what it waits for: the end of job-a", "when default/job-a ends" in message),
            Claim("job-b says what else would help: 4 more nodes", "4 more nodes like" in message),
        ),
    )
    stage.pass_time(lambda: _placed(stage, "job-b") == 8, 2 * _PATIENCE_S)
    picture = look(stage)
    a, b = _group(picture, "job-a"), _group(picture, "job-b")
    yield Scene(
        "job-a ends, job-b gets all eight",
        picture,
        (),
        (
            Claim("all 8 workers of job-a succeeded", a.succeeded == 8),
            Claim("job-b has all 8 workers", (b.placed, b.can_run) == (8, True)),
        ),
    )


def _lower_min_count(stage: Stage) -> Iterator[Scene]:
    for entry in manifests("act-3-another-gang.yaml"):
        _create(stage, entry)
    stage.pass_time(lambda: bool(_reason(stage, "job-c")), _PATIENCE_S)
    picture = look(stage)
    c = _group(picture, "job-c")
    yield Scene(
        "a third gang of eight waits",
        picture,
        (f"{c.group.key} {_reason(stage, 'job-c')}",),
        (Claim("job-c holds nothing", (c.placed, c.needed) == (0, 8)),),
    )
    (patch,) = manifests("act-3-lower-min-count.yaml")
    stage.call("PATCH", f"{_GROUP}/job-c", patch)
    stage.pass_time(lambda: _placed(stage, "job-c") == 4, _PATIENCE_S)
    picture = look(stage)
    c = _group(picture, "job-c")
    yield Scene(
        "its minCount is lowered from 8 to 4: it starts at once",
        picture,
        (),
        (
            Claim("job-c runs with 4 of its 8 workers", (c.placed, c.needed, c.can_run) == (4, 4, True)),
            Claim("12 of 12 GPUs are allocated, and all of them work", picture.requested[GPU] == 12),
        ),
    )


ACTS = (
    Act(
        "pod at a time",
        "twelve nodes with one H100 each; two jobs of eight one-GPU workers, placed in turn a, b, a, b",
        _pod_at_a_time,
    ),
    Act("the same two jobs as gangs", "all eight workers of a job, or none (minCount: 8)", _gangs),
    Act("minCount lowered on a waiting gang", "job-b has eight GPUs, four are free", _lower_min_count),
)


# ── what the acts are made of ────────────────────────────────────────────────────────────────────


def _create(stage: Stage, entry: Object) -> None:
    stage.call("POST", _COLLECTIONS[entry["kind"]], entry)


def _clear(stage: Stage) -> None:
    """Delete all pods and groups, and wait until they are gone."""
    for collection in (_POD, _GROUP):
        for entry in stage.call("GET", collection)["items"]:
            stage.call("DELETE", f"{collection}/{entry['metadata']['name']}")
    stage.pass_time(lambda: not any(stage.call("GET", c)["items"] for c in (_POD, _GROUP)), _PATIENCE_S)


def _is_decided(stage: Stage, name: str) -> bool:
    """Whether the scheduler has bound the pod or said that it cannot."""
    pod = stage.call("GET", f"{_POD}/{name}")
    conditions = pod.get("status", {}).get("conditions", [])
    refused = any(entry["type"] == "PodScheduled" and entry["status"] == "False" for entry in conditions)
    return refused or bool(pod["spec"].get("nodeName"))


def _placed(stage: Stage, name: str) -> int:
    return _group(look(stage), name).placed


def _reason(stage: Stage, name: str) -> str:
    """What the group says of why it is not scheduled; empty while it has said nothing."""
    group = _group(look(stage), name).group
    condition = group.find_condition("PodGroupInitiallyScheduled")
    return (condition.message or "") if condition is not None and condition.status == "False" else ""


def _group(picture: Picture, name: str) -> GroupPicture:
    return picture.groups[ObjectKey(NAMESPACE, name)]
