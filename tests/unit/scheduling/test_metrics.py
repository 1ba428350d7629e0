"""Plain numbers."""

from muster.scheduling.metrics import BUCKETS_S, Histogram, Metrics


def test_counters_are_kept_by_name_and_labels_in_order_of_the_label() -> None:
    metrics = Metrics()
    metrics.count("n", result="scheduled", profile="muster")
    metrics.count("n", profile="muster", result="scheduled")
    metrics.count("n", profile="muster", result="error")
    assert metrics.counters == {
        ("n", (("profile", "muster"), ("result", "scheduled"))): 2,
        ("n", (("profile", "muster"), ("result", "error"))): 1,
    }


def test_a_duration_falls_into_the_first_bucket_that_takes_it() -> None:
    histogram = Histogram()
    for seconds in (0.0005, BUCKETS_S[0], BUCKETS_S[-1] + 1):
        histogram.observe(seconds)
    assert histogram.counts[0] == 2
    assert histogram.counts[-1] == 1
    assert histogram.count == 3


def test_histograms_are_kept_by_name_and_labels() -> None:
    metrics = Metrics()
    metrics.observe("h", 1.5, result="scheduled")
    assert metrics.histograms[("h", (("result", "scheduled"),))].total == 1.5
