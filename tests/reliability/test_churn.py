"""Memory that grows is told by the medians of the first steady minute and the last."""

from tests.reliability.churn import by_minute, growth_of

SAMPLES = [(0.0, 50.0), (0.5, 60.0), (1.0, 100.0), (1.4, 100.0), (1.8, 900.0), (2.5, 104.0), (2.9, 106.0)]


def test_growth_is_counted_from_the_minute_asked_for_to_the_last() -> None:
    assert round(growth_of(SAMPLES, 1.0), 4) == 0.05


def test_what_was_used_before_the_minute_asked_for_is_no_growth() -> None:
    assert growth_of([(0.0, 50.0), (1.0, 100.0), (2.0, 100.0)], 1.0) == 0.0


def test_each_minute_has_its_median() -> None:
    assert by_minute(SAMPLES) == [55.0, 100.0, 105.0]
