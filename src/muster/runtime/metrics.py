"""Counters and timings as Prometheus text.

In come the core's plain numbers (`scheduling/metrics.py`) and the counts of watches, executor and client; out
comes the page.  Names and labels are kube-scheduler's where it has them, the rest is `muster_`.  Next:
`health.py`, which serves it.
"""

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from msgspec import Struct
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

from muster.base.errors import ConfigError
from muster.scheduling import metrics as core
from muster.scheduling.metrics import Histogram, Labels, Metrics
from muster.scheduling.report import PLACES, Report
from muster.scheduling.scheduler import Scheduler

CONTENT_TYPE = "text/plain; version=0.0.4"

Key = tuple[str, Labels]
Plain = CounterMetricFamily | GaugeMetricFamily
_Value = TypeVar("_Value")

HELP = {
    core.ATTEMPTS: "Attempts to place pod groups, by result.",
    core.ATTEMPT_SECONDS: "How long attempts at pod groups took.",
    core.ALGORITHM_SECONDS: "How long the placement of pod groups took.",
    core.POD_ATTEMPTS: "Attempts to place pods, by result.",
    core.POD_ATTEMPT_SECONDS: "How long attempts at pods took.",
    core.POD_PREEMPTIONS: "Times lone pods asked for room at the cost of weaker ones.",
    core.POD_VICTIMS: "Pods chosen to leave for a lone pod, each time.",
    core.GROUP_PREEMPTIONS: "Times pod groups asked for room at the cost of weaker ones, by what came of it.",
    core.GROUP_VICTIMS: "Pods chosen to leave for a pod group, each time.",
    core.PREEMPTION_SECONDS: "How long it took to choose who leaves.",
    core.PDB_VIOLATIONS: "Pods chosen to leave beyond what disruption budgets allow.",
    core.INCOMING: "Pods and pod groups that entered a queue, by queue and cause.",
    core.QUEUED: "Pods and pod groups in each queue.",
    core.PENDING_PODS: "Pods that wait, by queue.",
}


class RequestCounts:
    """How often the API server was asked, by verb and code (0: no answer)."""

    def __init__(self) -> None:
        self.by_verb_and_code: dict[tuple[str, int], int] = {}

    def count(self, verb: str, code: int) -> None:
        """Count one request."""
        key = (verb, code)
        self.by_verb_and_code[key] = self.by_verb_and_code.get(key, 0) + 1

    def counters(self) -> Iterator[tuple[Key, int]]:
        """The counts as client-go names them."""
        for (verb, code), count in sorted(self.by_verb_and_code.items()):
            labels = (("code", str(code) if code else "<error>"), ("method", verb))
            yield ("rest_client_requests_total", labels), count


class MetricsPage(Collector):
    """Everything we count, gathered anew at each scrape."""

    def __init__(
        self,
        core_metrics: Metrics,
        *,
        counters: Callable[[], Iterable[tuple[Key, int]]],
        gauges: Callable[[], Iterable[tuple[Key, float]]],
    ) -> None:
        self._core = core_metrics
        self._counters = counters
        self._gauges = gauges

    def collect(self) -> Iterator[Plain | HistogramMetricFamily]:
        """One family per name."""
        for name, counts in _by_name([*self._core.counters.items(), *self._counters()]):
            yield _family(CounterMetricFamily, name.removesuffix("_total"), name, counts)
        for name, values in _by_name(self._gauges()):
            yield _family(GaugeMetricFamily, name, name, values)
        for name, histograms in _by_name(self._core.histograms.items()):
            label_names = [label for label, _ in histograms[0][0]]
            family = HistogramMetricFamily(name, HELP.get(name, name), labels=label_names)
            for labels, histogram in histograms:
                family.add_metric([value for _, value in labels], _buckets(histogram), histogram.total)
            yield family

    def text(self) -> bytes:
        """The page."""
        registry = CollectorRegistry(auto_describe=False)
        registry.register(self)
        return generate_latest(registry)


def queue_counters(report: Report) -> Iterator[tuple[Key, int]]:
    """How many entered each queue, by cause."""
    for (place, event, kind), count in report.incoming.items():
        yield (core.INCOMING, (("event", event), ("queue", place), ("type", kind))), count


def queue_gauges(report: Report) -> Iterator[tuple[Key, float]]:
    """How many are in each queue."""
    for (place, kind), count in report.queued.items():
        yield (core.QUEUED, (("queue", place), ("type", kind))), count
    for place in PLACES:
        yield (core.PENDING_PODS, (("queue", place),)), report.pending_pods.get(place, 0)


def page_of(scheduler: Scheduler) -> bytes:
    """The page of a scheduler in the server's own process: it has no client and no watches to count."""
    report = scheduler.report()
    page = MetricsPage(
        scheduler.metrics, counters=lambda: queue_counters(report), gauges=lambda: queue_gauges(report)
    )
    return page.text()


def _by_name(items: Iterable[tuple[Key, _Value]]) -> Iterator[tuple[str, list[tuple[Labels, _Value]]]]:
    names: dict[str, list[tuple[Labels, _Value]]] = {}
    for (name, labels), value in items:
        names.setdefault(name, []).append((labels, value))
    yield from sorted(names.items())


def _family(kind: type[Plain], short: str, name: str, values: Sequence[tuple[Labels, float]]) -> Plain:
    family = kind(short, HELP.get(name, name), labels=[label for label, _ in values[0][0]])
    for labels, value in values:
        family.add_metric([text for _, text in labels], value)
    return family


def _buckets(histogram: Histogram) -> list[tuple[str, float]]:
    """Counts up to each bound, as Prometheus wants them."""
    bounds = [*map(repr, histogram.bounds), "+Inf"]
    running, buckets = 0, []
    for bound, count in zip(bounds, histogram.counts, strict=True):
        running += count
        buckets.append((bound, float(running)))
    return buckets


# ── where it is served ───────────────────────────────────────────────────────────────────────────


class Address(Struct, frozen=True):
    """Where to listen; None as a whole switches the server off."""

    host: str
    port: int


def parse_address(text: str) -> Address | None:
    """Read HOST:PORT; "0" switches the server off, as with the stock components.  Raises ConfigError."""
    if text == "0":
        return None
    host, separator, port = text.rpartition(":")
    if not separator or not port.isdigit() or int(port) > 65535:
        raise ConfigError(f"needs HOST:PORT or 0, got {text!r}", path="--metrics-bind-address")
    return Address(host.strip("[]") or "0.0.0.0", int(port))


def listen(address: Address) -> socket.socket:
    """Take the address; who asks is answered when the server has been loaded.

    Raises   ConfigError if it cannot be had.
    """
    host, port = address.host, address.port
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        return socket.create_server((host, port), family=found[0][0])
    except OSError as error:
        is_name = isinstance(error, socket.gaierror)
        why = error.strerror if is_name else os.strerror(error.errno or 0)
        raise ConfigError(
            f"cannot listen on {host}:{port}: {(why or str(error)).lower()}",
            path="--metrics-bind-address",
            hint="give another address, or 0 for none",
        ) from error
