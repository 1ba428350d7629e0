"""Runs of seeds, each made once however many tests look at it, and the seeds that failed once."""

from functools import cache

from muster.sim.report import Report
from muster.sim.run import run_seed
from muster.sim.storm.run import run_storm

# Seeds of the storm that once broke a promise, and what it was: each stays.
STORM_FAILED_ONCE: dict[int, str] = {
    4: "an eviction looked needless, for the room kept for a refused member was not counted",
    38: "an older status write landed late, and PodGroupInitiallyScheduled was not True any more",
    21: "an eviction without a placement, by an early state of preemption",
    113: "a leader whose clock was an hour ahead took victims that were leaving for stuck ones",
    93: "the rest of a group was evicted whose other members had been asked to leave before",
    183: "a leader that did not know of a restored backup said True of what it had bound before",
    14: "a gang whose node had gone and come back never said again that it was whole",
    3: "room of a binding to a node that is gone was thought to be taken",
    9: "counts may be half a minute old, at the end as well",
    107: "the same",
    125: "a member that vanished as the last one was bound: a loss after the start",
    26: "room of a victim as important as the preemptor was thought to be counted on",
    39: "a replica that was listing anew was thought to be informed",
    55: "a process that had seen what a restored backup takes back placed pods on it",
    29: "a gang looked not started to a leader that was told of its members before their group",
    112: "one refusal that hit four writes of a group kept it silent for minutes after it had ended",
    139: "leaders that lasted for twenty seconds each never said that a gang was whole again",
    159: "room of a victim that the API had said to be gone was thought to be taken until it was seen",
    188: "a member that had succeeded was thought to need the seat it was once nominated to",
    613: "who did not lead tried to make the lease again before Retry-After was over",
    141: "a leader that was told to stop gave the lease back while a binding was on its way",
    54: "a gang torn by a preemption was tried again before it was looked at",
    264: "a process that stood still from its start was thought to have seen what a backup took back",
    229: "a seat of an earlier leader was thought not to be meant, for another of its group was dropped",
    209: "an older write landed late, and a gang that was whole again went on saying that it is not",
    1171: "a claim that had its volume was made anew while others were waited for, and its pod was bound",
    1159: "a nomination that was taken back with a preparation was thought to be somebody's promise",
    254: "a member waited for ever after a release, for its gang needed less meanwhile and was started",
    32: "a group of a tree in part had succeeded and said that it is whole: the others were never released",
    3041: "a gang that had been released for a loss in the last minutes was thought to wait without right",
    3135: "the same",
    52: "groups of a tree that waited for their claims were bound, though another that it needs was gone",
    84: "the same",
    2104: "a tree was released as it was bound, by a leader whose clock was an hour ahead of the server's",
    119: "a gang that waited for its claims and lost a member kept room and devices for ten minutes",
    76: "a tree that had lost a group was thought not to have started, by what a new leader had been told",
    1472: "a tree that had lost a group was thought not to have started, after a backup was restored",
}


@cache
def report_of(seed: int) -> Report:
    """The report of this seed of the churn scenario."""
    return run_seed(seed)


@cache
def storm_of(seed: int) -> Report:
    """The report of this seed of the storm."""
    return run_storm(seed)
