"""Counts in the Prometheus text format, with nothing global."""

from functools import partial

from prometheus_client.parser import text_string_to_metric_families

from adapters_http.metrics import Metrics, by_process
from adapters_store.hints import channels
from tests.support.http_world import World
from wfserver.serving.processes import MetricsOfAll

ROUTE = "/api/v1/workflows/{id}"


def samples(metrics: Metrics, **gauges: float) -> dict[tuple[str, ...], float]:
    """Every sample of *metrics*."""
    return read(metrics.render(gauges, {}).decode())


async def counted(world: World) -> dict[tuple[str, ...], float]:
    """Every sample that the server shows."""
    return read((await world.get("/metrics")).text)


def read(text: str) -> dict[tuple[str, ...], float]:
    """Samples by name and label values, as a Prometheus server reads them."""
    return {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


async def test_requests_are_counted_by_route_method_and_status(world: World) -> None:
    """Each combination has its own count, each route its durations."""
    path = f"/api/v1/workflows/{await world.workflow()}"
    for missing in (path, path, f"{path}0"):
        await world.get(missing)
    found = await counted(world)
    assert found["wfcore_http_requests_total", ROUTE, "200", "GET"] == 2
    assert found["wfcore_http_requests_total", ROUTE, "404", "GET"] == 1
    assert found["wfcore_http_request_seconds_count", ROUTE] == 3
    assert found["wfcore_http_request_seconds_bucket", "+Inf", ROUTE] == 3
    assert 0 < found["wfcore_http_request_seconds_sum", ROUTE] < 100


async def test_methods_that_clients_invent_share_one_count(world: World) -> None:
    """No client can make the table grow with methods of its own."""
    unusual = ("PROPFIND", "MKCOL", "SEARCH", "PURGE", "REPORT")
    for method in unusual:
        assert (await world.http.request(method, "/nowhere")).status_code == 404
    found = await counted(world)
    assert found["wfcore_http_requests_total", "404", "other", "unknown"] == len(unusual)
    assert not [key for key in found if set(key) & set(unusual)]


def test_gauges_are_as_they_are_now():
    """Gauges, with labels or without, are what the caller gives at that moment."""
    metrics = Metrics()
    first = samples(metrics, **{'runs{status="A"}': 2, 'runs{status="B"}': 0, "slots": 1.5})
    assert (first["runs", "A"], first["runs", "B"], first["slots",]) == (2, 0, 1.5)
    assert ("slots",) not in samples(metrics)


def test_two_applications_count_apart():
    """Metrics of one application never show in another's."""
    one, other = Metrics(), Metrics()
    one.requests.labels("/", "GET", "200").inc()
    assert ("wfcore_http_requests_total", "/", "200", "GET") not in samples(other)


def test_of_several_processes_each_sample_says_whose_it_is() -> None:
    """Each family stands once, with the samples of all processes under their numbers."""
    texts = {}
    for number in (1, 3):
        metrics = Metrics()
        metrics.requests.labels('/"}{ ', "GET", "200").inc(number)
        texts[number] = metrics.render({"places": number, 'runs{state="A b"}': number}, {})
    text = by_process(texts).decode()
    assert text.count("# TYPE wfcore_http_requests_total counter") == 1
    for number in (1, 3):
        found = read(text)
        assert found["places", str(number)] == found["runs", str(number), "A b"] == number
        labels = sorted(('/"}{ ', "200", str(number), "GET"))
        assert found["wfcore_http_requests_total", *labels] == number
    one = read(by_process({0: texts[1]}).decode())
    assert len(one) == len(read(texts[1].decode()))


async def test_whoever_is_asked_shows_what_all_processes_counted() -> None:
    """A process asks the others; one that does not answer soon is left out."""
    made = channels(3)
    here, there, deaf = (MetricsOfAll(number, one) for number, one in enumerate(made))
    here.answer_s, there.answer_s = 0.05, 60

    async def text(of: str) -> bytes:
        return f"# HELP a a\n# TYPE a counter\na {of}\n".encode()

    async with here.answering(partial(text, "1.0")), there.answering(partial(text, "2.0")):
        found = await here.read(partial(text, "1.0"))
        assert (0 in found, 2 in found) == (True, False)
        async with deaf.answering(partial(text, "3.0")):
            for _ in range(3):
                found = await there.read(partial(text, "2.0"))
                assert [found[number].split()[-1] for number in found] == [b"1.0", b"2.0", b"3.0"]
    for end in {end for one in made for end in (one.own, *one.others.values())}:
        end.close()
