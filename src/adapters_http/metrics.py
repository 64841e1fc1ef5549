"""
Counters of requests, and their Prometheus text.

Each application has a `Metrics` with a registry of its own: no counter is global. Use a `Metrics`
from the event loop only.
"""

from collections.abc import Mapping

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Metrics:
    """
    Counters of requests by route, method and status, of durations by route, and of this process.

    A route is a path template, never a path, because each new label is kept for ever. For the same
    reason every method outside of `METHODS` counts as "other".
    """

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        self.requests = Counter(
            "wfcore_http_requests",
            "Requests answered.",
            ("route", "method", "status"),
            registry=self._registry,
        )
        self.seconds = Histogram(
            "wfcore_http_request_seconds",
            "Time from a request's head to the end of its answer.",
            ("route",),
            buckets=_SECONDS,
            registry=self._registry,
        )

    def render(
        self,
        gauges: Mapping[str, float],
        about: Mapping[str, str],
        counted: CollectorRegistry | None = None,
    ) -> bytes:
        """
        The counters of this registry and of *counted*, and *gauges* with their present values.

        The name of a gauge may have labels: `wfcore_executions{status="RUNNING"}`. Names of one
        family are adjacent; *about* describes each family. A name that ends in `_total` is a
        counter.
        """
        lines: list[str] = []
        family = ""
        for name, value in gauges.items():
            if name.partition("{")[0] != family:
                family = name.partition("{")[0]
                kind = "counter" if family.endswith("_total") else "gauge"
                lines.append(f"# HELP {family} {about.get(family, family)}\n")
                lines.append(f"# TYPE {family} {kind}\n")
            lines.append(f"{name} {float(value)!r}\n")
        elsewhere = generate_latest(counted) if counted is not None else b""
        return generate_latest(self._registry) + elsewhere + "".join(lines).encode()


def by_process(texts: Mapping[int, bytes]) -> bytes:
    """The metrics of several processes as one text; each sample gets the number of its process."""
    families: dict[str, tuple[list[str], list[str]]] = {}
    for number, text in texts.items():
        label = f'process="{number}"'
        about: list[str] = []
        samples: list[str] = []
        for line in text.decode().splitlines(keepends=True):
            if line.startswith("# HELP "):
                about, samples = families.setdefault(line.split(" ")[2], ([], []))
                about[:] = [line]
            elif line.startswith("#"):
                about[1:] = [line]
            else:
                samples.append(_labelled(line, label))
    return "".join(
        line for family in families.values() for part in family for line in part
    ).encode()


def _labelled(sample: str, label: str) -> str:
    name, brace, rest = sample.partition("{")
    if brace:
        return f"{name}{{{label},{rest}"
    name, _, value = sample.partition(" ")
    return f"{name}{{{label}}} {value}"
