"""Everything that keeps members of a refused entity out: what could end the refusal.

A try stops at the first members that find no room, and speaks of those.  Where members are unlike, room for
another one helps as well: he moves there, and leaves his node to the one that was refused.  In come a refused
attempt and its snapshot; out comes the attempt with all plugins and all shapes that an event may be about.
Next: `queue.py`, which sleeps on them.
"""

from msgspec.structs import replace

from muster.base.errors import PluginError
from muster.cluster.snapshot import Snapshot
from muster.framework.runner import Runner
from muster.scheduling.attempt import UNSCHEDULABLE, Attempt, groups_of
from muster.scheduling.likeness import shape_of
from muster.scheduling.members import Cast


def widen(cast: Cast, snapshot: Snapshot, runner: Runner, refused: Attempt) -> Attempt:
    """The attempt; of unlike members with whatever keeps any of them from any node."""
    if refused.reason != UNSCHEDULABLE or not refused.shortfalls:
        return refused
    pods = {shape_of(member, snapshot, runner): member.pod for member in reversed(cast.waiting())}
    if len(pods) < 2:
        return refused
    try:
        found = runner.rejectors(pods.values(), snapshot, snapshot.live_rows())
    except PluginError:  # on a member that was not tried; the next attempt may come to it
        return refused
    if any(group.topology_keys for group in groups_of(cast)):
        found.update(runner.generators)
    first = tuple(short.pod for short in refused.shortfalls)
    others = tuple(pod for pod in reversed(pods.values()) if pod not in first)
    return replace(refused, rejectors=refused.rejectors | found, unplaced=first + others)
