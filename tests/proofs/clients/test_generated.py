"""Clients made by code generators: they pass their type checkers, and they do a whole flow."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from adapters_http.config import HttpConfig
from adapters_http.openapi.document import document
from tests.system.scenarios.flows import REFUNDS
from tests.system.scenarios.site import Site

HERE = Path(__file__).parent
MODULES = HERE / "node_modules"
PACKAGE = "wfcore_http_api_client"
DONE = 'COMPLETED 3 true [{"id":1,"amount":7}]'


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    made = Site(tmp_path_factory.mktemp("site") / "data")
    yield made
    made.close()


@pytest.fixture
def described(tmp_path: Path) -> Path:
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document(HttpConfig())))
    return path


def run(*words: object, cwd: Path, **env: str) -> str:
    """What a program says that has to end well."""
    command = [str(word) for word in words]
    environment = {**os.environ, **env}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def flow(site: Site) -> tuple[str, str, str]:
    """Where, with which key, and which workflow."""
    ann = site.caller()
    return site.server.url, ann.key.text, ann.workflow(REFUNDS)


def test_a_client_in_python(site: Site, described: Path, tmp_path: Path) -> None:
    """openapi-python-client leaves no operation out; its classes type-check; start to download."""
    package = tmp_path / PACKAGE
    tools = Path(sys.executable).parent
    said = run(
        *(tools / "openapi-python-client", "generate", "--meta", "none"),
        *("--path", described, "--output-path", package),
        cwd=tmp_path,
        PATH=f"{tools}:{os.environ['PATH']}",
    )
    assert "WARNING" not in said.upper()
    assert "omitted" not in said
    run(
        *(sys.executable, "-m", "mypy", "--strict", "--config-file=", "--follow-imports=silent"),
        *(f"--cache-dir={tmp_path}/cache", HERE / "flow.py", package / "api", package / "models"),
        cwd=tmp_path,
        MYPYPATH=str(tmp_path),
    )
    said = run(
        sys.executable, HERE / "flow.py", *flow(site), cwd=tmp_path, PYTHONPATH=str(tmp_path)
    )
    assert said.strip() == DONE


def test_a_client_in_typescript(site: Site, described: Path, tmp_path: Path) -> None:
    """openapi-typescript's types pass `tsc --strict`, and with openapi-fetch they do the flow."""
    if not MODULES.exists():
        if os.environ.get("CI"):
            pytest.fail("npm ci --prefix tests/proofs/clients")
        pytest.skip("tests/proofs/clients is not installed: make test does that where npm is")
    (tmp_path / "node_modules").symlink_to(MODULES)
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "flow.ts").write_text((HERE / "flow.ts").read_text())
    run(MODULES / ".bin/openapi-typescript", described, "-o", "api.d.ts", cwd=tmp_path)
    run(
        *(MODULES / ".bin/tsc", "--strict", "--noUncheckedIndexedAccess", "--target", "es2022"),
        *("--module", "nodenext", "--types", "node", "flow.ts", "api.d.ts"),
        cwd=tmp_path,
    )
    assert run("node", "flow.js", *flow(site), cwd=tmp_path).strip() == DONE
