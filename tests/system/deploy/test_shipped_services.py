"""
The compose file and the manifests that are shipped: each command line in them is executed, each
healthcheck and probe asked, with a real PostgreSQL and a real Caddy. Loopback only.
"""

import os
import re
import secrets
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import kubernetes_validate
import pytest

from tests.support.distribution import program
from tests.support.postgres_server import Cluster, binaries, cluster
from tests.system.scenarios.process import free_port
from wfserver.settings.table import KNOWN

from .containerfile import HERE, PROFILE
from .shipped_services import IMAGE, Server, compose, manifests

FLOW = """
name: Two machines
steps:
  - name: work
    kind: code
    language: bash
    source: echo content >"$WF_ARTIFACTS/file.txt"
"""
KUBERNETES = ("1.30", "1.33", kubernetes_validate.latest_version())
ANN = "ann@example.org"
SCOPES = ("WORKFLOW_READ", "WORKFLOW_EXECUTE", "EXECUTION_READ", "ARTIFACT_READ")


@pytest.fixture(scope="module")
def variables(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the head of the compose file has put into `.env`, the keys by the same commands."""
    anybody = Server([], {}, tmp_path_factory.mktemp("keys") / "data")
    return {
        "POSTGRES_PASSWORD": "secret",
        "WFCORE_SEAL_KEY": anybody.command("seal", "key").stdout.strip(),
        "WFCORE_SIGNING_KEY": f"first:{secrets.token_hex(32)}",
        "WFCORE_PUBLIC_URL": "http://localhost:8080",
    }


@pytest.fixture
def database(variables: Mapping[str, str]) -> Iterator[Cluster]:
    """The service `database`: its command line, when its healthcheck succeeds."""
    service = compose(variables)["services"]["database"]
    name, *options = service["command"]
    assert name == "postgres"
    settings = dict(one.split("=", 1) for one in options if one != "-c")
    run = cluster(**settings)
    made = next(run)
    try:
        made.execute(f"CREATE DATABASE {service['environment']['POSTGRES_DB']}")
        kind, *check = service["healthcheck"]["test"]
        assert kind == "CMD"
        check[0] = str((binaries() / "postgres").resolve().parent / check[0])
        subprocess.run(check, env={"PGHOST": str(made.folder)}, check=True, timeout=30)
        yield made
    finally:
        run.close()


def _server(
    name: str, arguments: list[str], env: Mapping[str, str], folder: Path, database: Cluster
) -> Server:
    """It with what this machine calls the database and the folder of artifacts."""
    shared = folder / "artifacts"
    shared.mkdir(exist_ok=True)
    url = env["WFCORE_STORE"]
    here = {
        "WFCORE_STORE": re.sub(r"@[^/]+/(\w+)$", rf"@/\1?host={database.folder}", url),
        "WFCORE_ARTIFACTS": shared.as_uri(),
    }
    assert env["WFCORE_ARTIFACTS"] == "file:///artifacts"
    return Server(arguments, {**env, **here}, folder / name)


def _runs(server: Server, address: str, everywhere: Sequence[str]) -> None:
    """A workflow is started at one address, run by whoever does, and its artifact is everywhere."""
    server.command("account", "create", ANN, "--plan", "PRO")
    (server.folder.parent / "flow.yaml").write_text(FLOW)
    flow = str(server.folder.parent / "flow.yaml")
    server.command("workflow", "apply", flow, "--owner", ANN)
    scopes = [f"--scope={scope}" for scope in SCOPES]
    key = server.command("key", "create", "--account", ANN, "--name", "test", *scopes).stdout
    headers = {"Authorization": f"Bearer {''.join(re.findall(r'wfk_[0-9A-Za-z_-]+', key)[:1])}"}
    with httpx.Client(base_url=address, headers=headers, timeout=60) as client:
        (found,) = client.get("/api/v1/workflows").json()["items"]
        started = client.post(
            f"/api/v1/workflows/{found['id']}/executions?wait=30", json={"inputs": {}}
        )
        assert started.json()["status"] == "COMPLETED", started.text
        path = f"/api/v1/executions/{started.json()['executionId']}/artifacts"
        (artifact,) = client.get(path).json()["artifacts"]
    link = urlsplit(artifact["downloadUrl"])
    for one in everywhere:
        got = httpx.get(f"{one}{link.path}?{link.query}", timeout=60)
        assert got.text == "content\n"


@pytest.fixture
def caddy(tmp_path: Path) -> Iterator[Callable[[Mapping[str, str]], str]]:
    """Starts the service `proxy` with its own Caddyfile, given where the others are."""
    started: list[subprocess.Popen[bytes]] = []

    def start(addresses: Mapping[str, str]) -> str:
        conf, port = (HERE / "deploy" / "compose" / "Caddyfile").read_text(), free_port()
        here = {f"{name}:8000": address for name, address in addresses.items()}
        here[":8080 {"] = f"http://:{port} {{\n\tbind 127.0.0.1"
        for shipped, ours in here.items():
            assert shipped in conf
            conf = conf.replace(shipped, ours)
        (tmp_path / "Caddyfile").write_text(conf)
        line = compose_command("proxy", tmp_path)
        env = {"HOME": str(tmp_path), "PATH": os.environ["PATH"]}
        started.append(subprocess.Popen(line, env=env, stderr=subprocess.DEVNULL))
        return f"http://127.0.0.1:{port}"

    yield start
    for process in started:
        process.kill()
        process.wait()


def compose_command(name: str, folder: Path) -> list[str]:
    """The command line of the proxy, its file in *folder*."""
    whole = compose(defaultdict(str))
    command = [
        word.replace("/etc/caddy", str(folder)) for word in whole["services"][name]["command"]
    ]
    return [program(command[0], "caddy"), *command[1:]]


def test_the_compose_file_runs(
    variables: Mapping[str, str],
    database: Cluster,
    caddy: Callable[[Mapping[str, str]], str],
    tmp_path: Path,
) -> None:
    """
    Two servers that answer and two that run steps, each by its own line: healthy, an execution runs
    through the proxy, every server has its artifact, and each ends with status 0 in its grace.
    """
    services = compose(variables)["services"]
    servers = {
        name: _server(name, one["command"], one["environment"], tmp_path, database)
        for name, one in services.items()
        if one["image"] == "wfcore"
    }
    assert sorted(servers) == ["api-1", "api-2", "worker-1", "worker-2"]
    assert services["proxy"]["depends_on"].keys() == {"api-1", "api-2"}
    try:
        for server in servers.values():
            server.start()
        for server in servers.values():
            server.healthy()
        urls = {name: servers[name].ready() for name in ("api-1", "api-2")}
        proxy = caddy({name: url.removeprefix("http://") for name, url in urls.items()})
        with httpx.Client(transport=httpx.HTTPTransport(retries=8)) as client:
            assert client.get(f"{proxy}/healthz").status_code == 200
        _runs(servers["api-1"], proxy, tuple(urls.values()))
    finally:
        grace = {name: float(services[name]["stop_grace_period"].rstrip("s")) for name in servers}
        ended = {name: server.stop(grace[name]) for name, server in servers.items()}
    assert set(ended.values()) == {0}


def test_the_compose_file_is_about_the_image_that_is_built() -> None:
    """Its paths and settings exist, and steps get the isolation that was measured."""
    whole = compose(defaultdict(str))
    folder = HERE / "deploy" / "compose"
    for service in whole["services"].values():
        if service["image"] != "wfcore":
            continue
        assert (folder / service["build"]["context"] / service["build"]["dockerfile"]).exists()
        assert service["environment"].keys() <= KNOWN.keys()
        options = dict(one.split(":", 1) for one in service["security_opt"])
        assert (folder / options["seccomp"]).resolve() == PROFILE
        assert options["systempaths"] == "unconfined"
        assert service["tmpfs"] == ["/tmp"]


@pytest.mark.parametrize("version", KUBERNETES)
def test_the_manifests_are_what_kubernetes_reads(version: str) -> None:
    """By the schemas of its versions: no unknown field, none that is missing."""
    for one in manifests():
        kubernetes_validate.validate(one, version, strict=True)


def _pods() -> Iterator[tuple[str, Any]]:
    for one in manifests():
        if one["kind"] == "Deployment":
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


def test_what_selects_finds() -> None:
    """Deployments, the service and the budgets mean the pods that there are; ports have names."""
    labels = [
        one["spec"]["template"]["metadata"]["labels"]
        for one in manifests()
        if one["kind"] == "Deployment"
    ]
    for one in manifests():
        selector = one.get("spec", {}).get("selector")
        if selector:
            assert selector.get("matchLabels", selector) in labels
    for _, pod in _pods():
        (container,) = pod["containers"]
        assert pod["enableServiceLinks"] is False  # WFCORE_SERVICE_HOST would be refused
        assert {mount["name"] for mount in container["volumeMounts"]} == {
            volume["name"] for volume in pod["volumes"]
        }
        assert container["ports"] == [{"name": "http", "containerPort": int(IMAGE["EXPOSE"])}]
        assert str(pod["securityContext"]["runAsUser"]) == IMAGE["USER"].split(":")[0]


def test_the_manifests_run(variables: Mapping[str, str], database: Cluster, tmp_path: Path) -> None:
    """A pod of each deployment: every probe is answered, an execution runs, and SIGTERM ends it."""
    (settings,) = (one["data"] for one in manifests() if one["kind"] == "ConfigMap")
    secret = {
        "WFCORE_STORE": "postgresql://wfcore:secret@database/wfcore",
        "WFCORE_SEAL_KEY": variables["WFCORE_SEAL_KEY"],
        "WFCORE_SIGNING_KEY": variables["WFCORE_SIGNING_KEY"],
    }
    assert settings.keys() | secret.keys() <= KNOWN.keys()
    pods = dict(_pods())
    servers = {
        name: _server(
            name, pod["containers"][0]["args"], {**settings, **secret}, tmp_path, database
        )
        for name, pod in pods.items()
    }
    try:
        for server in servers.values():
            server.start()
        for name, server in servers.items():
            container = pods[name]["containers"][0]
            for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
                asked = httpx.get(server.ready() + container[probe]["httpGet"]["path"], timeout=30)
                assert asked.status_code == 200, asked.text
        address = servers["wfcore-api"].ready()
        _runs(servers["wfcore-api"], address, [address])
    finally:
        grace = {name: float(pods[name]["terminationGracePeriodSeconds"]) for name in servers}
        ended = {name: server.stop(grace[name]) for name, server in servers.items()}
    assert set(ended.values()) == {0}
