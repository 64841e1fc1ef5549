"""The metrics in `/metrics` as a table, read from the objects that count them."""

from collections.abc import Iterator

from prometheus_client.metrics import MetricWrapperBase

from adapters_http.metrics import Metrics
from wfserver.serving.metrics import GAUGES, ServerMetrics

_LABELS = {"wfcore_loop_up": ("loop",), "wfcore_oldest_due_seconds": ("loop",)}
_HEAD = "| Metric | Type | Labels | What it says |\n|---|---|---|---|\n"


def table() -> str:
    """Every metric of a server, by name."""
    return _HEAD + "".join(sorted(_rows()))


def _rows() -> Iterator[str]:
    for holder in (Metrics(), ServerMetrics()):
        for one in vars(holder).values():
            if isinstance(one, MetricWrapperBase):
                (family,) = one.describe()
                name = f"{family.name}_total" if family.type == "counter" else family.name
                yield _row(name, family.type, one._labelnames, family.documentation)
    for name, says in GAUGES.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        yield _row(name, kind, _LABELS.get(name, ()), says)


def _row(name: str, kind: str, labels: tuple[str, ...], says: str) -> str:
    shown = ", ".join(f"`{label}`" for label in labels)
    return f"| `{name}` | {kind} | {shown} | {says} |\n"
