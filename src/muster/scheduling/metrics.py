"""What the scheduler counts, as plain numbers under stock's metric names; the runtime turns them into text.

Names and labels follow kube-scheduler 1.37 (prefix `scheduler_`); times come from the runner's stopwatch.
"""

from bisect import bisect_left

Labels = tuple[tuple[str, str], ...]

ATTEMPTS = "scheduler_podgroup_schedule_attempts_total"
ATTEMPT_SECONDS = "scheduler_podgroup_scheduling_attempt_duration_seconds"
ALGORITHM_SECONDS = "scheduler_podgroup_scheduling_algorithm_duration_seconds"
POD_ATTEMPTS = "scheduler_schedule_attempts_total"
POD_ATTEMPT_SECONDS = "scheduler_scheduling_attempt_duration_seconds"
INCOMING = "scheduler_queue_incoming_entities_total"
QUEUED = "scheduler_queued_entities"
GANGS_STARTED = "muster_gangs_started_total"
GANGS_RELEASED = "muster_gangs_released_total"
MEMBER_LOSSES = "muster_member_losses_total"
BIND_FAILURES = "muster_bind_failures_by_cause_total"
DOUBLE_DECISIONS = "muster_double_decisions_total"
PENDING_PODS = "scheduler_pending_pods"
POD_PREEMPTIONS = "scheduler_preemption_attempts_total"
POD_VICTIMS = "scheduler_preemption_victims"
GROUP_PREEMPTIONS = "scheduler_workload_preemption_attempts_total"
GROUP_VICTIMS = "scheduler_workload_preemption_victims"
PREEMPTION_SECONDS = "scheduler_preemption_evaluation_duration_seconds"
PDB_VIOLATIONS = "scheduler_preemption_pdb_violations_total"

BUCKETS_S = tuple(0.001 * 2.0**power for power in range(15))
BOUNDS: dict[str, tuple[float, ...]] = {  # where they are others than BUCKETS_S
    POD_VICTIMS: tuple(2**power for power in range(7)),
    GROUP_VICTIMS: tuple(2**power for power in range(11)),
    PREEMPTION_SECONDS: tuple(0.001 * 2.0**power for power in range(16)),
}


class Histogram:
    """Counts per bucket (the last one: more than all bounds), their sum and number."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...] = BUCKETS_S) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        return sum(self.counts)


class Metrics:
    """Counters and histograms by name and labels; gauges are read from the queue when asked for."""

    def __init__(self) -> None:
        self.counters: dict[tuple[str, Labels], int] = {}
        self.histograms: dict[tuple[str, Labels], Histogram] = {}

    def count(self, name: str, by: int = 1, **labels: str) -> None:
        """Add to a counter."""
        key = (name, tuple(sorted(labels.items())))
        self.counters[key] = self.counters.get(key, 0) + by

    def observe(self, name: str, value: float, **labels: str) -> None:
        """Note a value, most often seconds."""
        key = (name, tuple(sorted(labels.items())))
        histogram = self.histograms.get(key)
        if histogram is None:
            histogram = self.histograms[key] = Histogram(BOUNDS.get(name, BUCKETS_S))
        histogram.observe(value)
