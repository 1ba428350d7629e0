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
PENDING_PODS = "scheduler_pending_pods"

BUCKETS_S = tuple(0.001 * 2.0**power for power in range(15))


class Histogram:
    """Counts per bucket (the last one: longer than all bounds), their sum and number."""

    __slots__ = ("counts", "sum_s")

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def observe(self, seconds: float) -> None:
        """Count one duration."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum_s += seconds

    @property
    def count(self) -> int:
        return sum(self.counts)


class Metrics:
    """Counters and histograms by name and labels; gauges are read from the queue when asked for."""

    def __init__(self) -> None:
        self.counters: dict[tuple[str, Labels], int] = {}
        self.histograms: dict[tuple[str, Labels], Histogram] = {}

    def count(self, name: str, **labels: str) -> None:
        """Add one."""
        key = (name, tuple(sorted(labels.items())))
        self.counters[key] = self.counters.get(key, 0) + 1

    def observe(self, name: str, seconds: float, **labels: str) -> None:
        """Note a duration."""
        key = (name, tuple(sorted(labels.items())))
        self.histograms.setdefault(key, Histogram()).observe(seconds)
