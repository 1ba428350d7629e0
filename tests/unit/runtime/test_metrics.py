"""Prometheus text from plain counts."""

import pytest

from muster.base.errors import ConfigError
from muster.runtime.metrics import Address, MetricsPage, RequestCounts, parse_address
from muster.scheduling.metrics import ATTEMPT_SECONDS, ATTEMPTS, QUEUED, Metrics


def text_of(metrics: Metrics, requests: RequestCounts | None = None) -> str:
    page = MetricsPage(
        metrics,
        counters=(requests or RequestCounts()).counters,
        gauges=lambda: [((QUEUED, (("queue", "active"), ("type", "pod"))), 3.0)],
    )
    return page.text().decode()


def test_counters_of_the_core_keep_their_name_and_labels() -> None:
    metrics = Metrics()
    metrics.count(ATTEMPTS, result="scheduled", profile="muster")
    metrics.count(ATTEMPTS, result="scheduled", profile="muster")
    assert f'{ATTEMPTS}{{profile="muster",result="scheduled"}} 2.0' in text_of(metrics)


def test_histograms_add_up_from_bucket_to_bucket() -> None:
    metrics = Metrics()
    for seconds in (0.0005, 0.003, 100.0):
        metrics.observe(ATTEMPT_SECONDS, seconds, profile="muster")
    text = text_of(metrics)
    assert f'{ATTEMPT_SECONDS}_bucket{{le="0.001",profile="muster"}} 1.0' in text
    assert f'{ATTEMPT_SECONDS}_bucket{{le="0.004",profile="muster"}} 2.0' in text
    assert f'{ATTEMPT_SECONDS}_bucket{{le="+Inf",profile="muster"}} 3.0' in text
    assert f'{ATTEMPT_SECONDS}_sum{{profile="muster"}} 100.0035' in text


def test_gauges_are_read_when_the_page_is() -> None:
    assert f'{QUEUED}{{queue="active",type="pod"}} 3.0' in text_of(Metrics())


def test_requests_are_counted_as_client_go_does() -> None:
    requests = RequestCounts()
    for code in (201, 201, 0):
        requests.count("POST", code)
    text = text_of(Metrics(), requests)
    assert 'rest_client_requests_total{code="201",method="POST"} 2.0' in text
    assert 'rest_client_requests_total{code="<error>",method="POST"} 1.0' in text


def test_a_page_is_the_same_however_often_it_is_read() -> None:
    metrics = Metrics()
    metrics.count(ATTEMPTS, result="error")
    assert text_of(metrics) == text_of(metrics)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("127.0.0.1:10261", Address("127.0.0.1", 10261), id="address"),
        pytest.param(":8080", Address("0.0.0.0", 8080), id="everywhere"),
        pytest.param("[::1]:8080", Address("::1", 8080), id="six"),
        pytest.param("0", None, id="off"),
    ],
)
def test_an_address_is_read_as_the_stock_components_do(text: str, expected: Address | None) -> None:
    assert parse_address(text) == expected


@pytest.mark.parametrize("text", ["8080", "host:", "host:http", "host:70000", ""])
def test_a_bad_address_names_the_option(text: str) -> None:
    with pytest.raises(ConfigError, match="--metrics-bind-address: needs HOST:PORT or 0"):
        parse_address(text)
