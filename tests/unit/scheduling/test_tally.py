"""Members counted as they come and go, beside walking all of them."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from muster.api.core import Pod
from muster.api.meta import Condition
from muster.api.times import format_seconds, parse_seconds
from muster.framework.groups import ObjectKey
from muster.scheduling.members import Cast, Members, Stage, group_entity
from muster.testing.builders import make_group, make_pod

G = ObjectKey("default", "g")
STATES = ("waiting", "bound", "running", "ready", "unready", "succeeded early", "succeeded late", "failed")
STEPS = st.lists(
    st.tuples(st.sampled_from("abcd"), st.sampled_from((*STATES, "gone", "assume", "accept", "forget")))
    | st.tuples(st.just("group"), st.sampled_from(("made early", "made late", "gone")))
)
EARLY_S, LATE_S = 1000.0, 2000.0


def pod_in(name: str, state: str) -> Pod:
    node = "" if state == "waiting" else "n1"
    pod = make_pod(name, node=node)
    phase = {"running": "Running", "ready": "Running", "unready": "Running", "failed": "Failed"}.get(state)
    if state.startswith("succeeded"):
        phase = "Succeeded"
    started_s = EARLY_S - 1 if state.endswith("early") else EARLY_S + 1
    condition = Condition(type="Ready", status="True" if state == "ready" else "False")
    status = replace(
        pod.status,
        phase=phase or "Pending",
        start_time=format_seconds(started_s) if node else None,
        conditions=[condition] if state in ("ready", "unready") else None,
    )
    return replace(pod, status=status)


def walked(cast: Cast) -> tuple[int, int, int]:
    """Running, ready and succeeded members, one by one."""
    bound = [member.pod for member in cast.stages[Stage.BOUND].values()]
    made_s = cast.group.created_s if cast.group is not None else 0.0
    starts = [member.pod.status.start_time for member in cast.stages[Stage.SUCCEEDED].values()]
    return (
        sum(pod.status.phase == "Running" for pod in bound),
        sum(
            any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions or ())
            for pod in bound
        ),
        sum(start is None or parse_seconds(start) >= made_s for start in starts),
    )


def take_step(members: Members, name: str, step: str) -> None:
    key = ObjectKey("default", name)
    member = members.find(key)
    if name == "group":
        if step == "gone":
            members.lose_group(group_entity(G))
        else:
            made_s = EARLY_S if step == "made early" else LATE_S
            members.see_group(replace(make_group("g", 2), created_s=made_s))
    elif step == "gone":
        members.lose_pod(key)
    elif step in STATES:
        members.see_pod(pod_in(name, step), G)
    elif step == "assume" and member is not None and member.stage is Stage.WAITING:
        members.assume(member, "n1")
    elif step in ("accept", "forget") and member is not None and member.stage is Stage.ASSUMED:
        (members.accept if step == "accept" else members.forget)(member)


@given(STEPS)
def test_it_agrees_with_walking_whatever_is_seen(steps: list[tuple[str, str]]) -> None:
    members = Members(frozenset({"muster"}))
    for name, step in steps:
        take_step(members, name, step)
        cast = members.cast(group_entity(G))
        succeeded = cast.accepted_count - len(cast.stages[Stage.BOUND])
        assert (cast.tally.running, cast.tally.ready, succeeded) == walked(cast)
