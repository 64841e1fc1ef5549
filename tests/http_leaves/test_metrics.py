"""Counts in the Prometheus text format, with nothing global."""

from prometheus_client.parser import text_string_to_metric_families

from adapters_http.metrics import Metrics


def samples(metrics: Metrics, **gauges: float) -> dict[tuple[str, ...], float]:
    """Every sample by name and label values, as a Prometheus server reads them."""
    text = metrics.render(gauges).decode()
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_requests_are_counted_by_route_method_and_status():
    """Each combination has its own count, each route its durations."""
    metrics = Metrics()
    for status, seconds in ((200, 0.02), (200, 0.03), (404, 3.0)):
        metrics.observe_request("/a/{id}", "GET", status, seconds)
    found = samples(metrics)
    assert found["wfcore_http_requests_total", "/a/{id}", "200", "GET"] == 2
    assert found["wfcore_http_requests_total", "/a/{id}", "404", "GET"] == 1
    assert found["wfcore_http_request_seconds_count", "/a/{id}"] == 3
    assert found["wfcore_http_request_seconds_bucket", "/a/{id}", "0.025"] == 1
    assert found["wfcore_http_request_seconds_bucket", "/a/{id}", "0.05"] == 2
    assert round(found["wfcore_http_request_seconds_sum", "/a/{id}"], 6) == 3.05


def test_methods_that_clients_invent_share_one_count():
    """No client can make the table grow with methods of its own."""
    metrics = Metrics()
    for n in range(50):
        metrics.observe_request("unknown", f"X{n}", 405, 0.1)
    counts = {key: value for key, value in samples(metrics).items() if key[0].endswith("_total")}
    assert counts["wfcore_http_requests_total", "405", "other", "unknown"] == 50
    assert len([key for key in counts if key[0] == "wfcore_http_requests_total"]) == 1


def test_gauges_are_as_they_are_now():
    """Gauges, with labels or without, are what the caller gives at that moment."""
    metrics = Metrics()
    first = samples(metrics, **{'runs{status="A"}': 2, 'runs{status="B"}': 0, "slots": 1.5})
    assert (first["runs", "A"], first["runs", "B"], first["slots",]) == (2, 0, 1.5)
    assert ("slots",) not in samples(metrics)


def test_two_applications_count_apart():
    """Metrics of one application never show in another's."""
    one, other = Metrics(), Metrics()
    one.observe_request("/", "GET", 200, 0.1)
    assert ("wfcore_http_requests_total", "/", "200", "GET") not in samples(other)
