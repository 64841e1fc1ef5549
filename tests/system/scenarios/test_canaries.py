"""A canary in every place where a secret may come in; none of them is found where data rests."""

import json
import subprocess
import sys
import tarfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from wfcore.model.access import OPERATOR
from wfcore.usecases.accounts.accounts import set_secret

from .site import ApiCaller, Site, signed

QUOTED = 'Qu"o\\te/ä'
CANARIES = {
    name: f"c4nary-{name}-{QUOTED}-7e1f"
    for name in ("input", "default", "child", "undeclared", "payload", "named")
}
PLAIN = {name: f"c4nary-{name}-9b2d" for name in ("webhook", "old", "transformed", "url")}
KEPT = ("seal.key", "first.key", "signing.key")

CHILD = """
variables: {token: {type: string}}
steps: [{name: inner, kind: code, language: bash, source: "echo \\"$WF_VAR_token\\"; exit 1"}]
"""
PARENT = """
variables:
  token: {type: string, secret: true}
  preset: {type: string, secret: true, default: %s}
  free: {type: string}
steps:
  - name: leak
    kind: code
    language: python
    secrets: [API_TOKEN]
    source: |
      import base64, json, os, sys
      named = os.environ["WF_SECRET_API_TOKEN"]
      print(named, json.dumps(named), base64.b64encode(named.encode()).decode())
      print(named, file=sys.stderr)
      token = os.environ["WF_VAR_token"]
      print(token, json.dumps(token), base64.b64encode(token.encode()).decode())
      print(token, file=sys.stderr)
      print(os.environ["WF_VAR_preset"])
      print(token[::-1])
      with open(os.environ["WF_OUTPUT"], "w") as file:
          said = {"named": named, "said": token, "inside": ["x" + token]}
          json.dump({**said, "reversed": token[::-1]}, file)
  - name: each
    kind: loop
    items: "{{ [variables.token, variables.free] }}"
    as: one
    steps: [{name: look, kind: code, language: bash, source: "echo $WF_VAR_one"}]
  - name: below
    kind: workflow
    workflow: %s
    inputs: {token: "{{ variables.token }}"}
    continueOnError: true
  - name: review
    kind: manual_approval
    message: "Really {{ variables.token }}?"
    groups:
      - name: rows
        title: Rows
        rows: [{v: "{{ variables.token }}"}]
        columns: [{key: v, title: V}]
output: {kept: "{{ steps.leak.output }}"}
"""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A server that logs all it ever logs."""
    settings = {"WFCORE_LOG": "debug", "WFCORE_ALLOW_PRIVATE_CALLBACKS": "1"}
    with closing(Site(tmp_path / "data", settings)) as made:
        yield made


def forms(canary: str) -> set[bytes]:
    """How it would look in a file: as it is, as JSON once and twice, in base64 at each offset."""
    once = (json.dumps(canary), json.dumps(canary, ensure_ascii=False))
    texts = {canary, *(text[1:-1] for text in once), *(json.dumps(text)[1:-1] for text in once)}
    found = {text.encode() for text in texts}
    for offset in range(3):
        data = bytes(offset) + canary.encode()
        for encode in (b64encode, urlsafe_b64encode):
            found.add(encode(data)[(8 * offset + 5) // 6 : 8 * len(data) // 6])
    return found


def resting(data: Path) -> dict[str, bytes]:
    """What every file of the data folder holds but keys and artifacts."""
    return {
        str(path.relative_to(data)): path.read_bytes()
        for path in data.rglob("*")
        if path.is_file() and path.name not in KEPT and "artifacts" not in path.parts
    }


def assert_no_canary(files: dict[str, bytes]) -> None:
    every = {name: forms(canary) for name, canary in (CANARIES | PLAIN).items()}
    every["reversed"] = forms(CANARIES["input"][::-1])
    found = [
        (name, place)
        for place, content in files.items()
        for name, looks in every.items()
        if any(look in content for look in looks)
    ]
    assert not found


def play(site: Site, ann: ApiCaller) -> str:
    """Let every canary in, and end everything; the id of the execution that met most of them."""
    owner = ann.account.id
    site.do(lambda services: set_secret(services, OPERATOR, owner, "API_TOKEN", CANARIES["named"]))
    child = ann.workflow(CHILD)
    parent = ann.workflow(PARENT % (json.dumps(CANARIES["default"]), child))
    answer = ann.post(
        f"/api/v1/workflows/{parent}/executions",
        {
            "inputs": {"token": CANARIES["input"], "free": CANARIES["undeclared"]},
            "enableMonitoring": True,
            "callbackUrl": f"http://127.0.0.1:9/{PLAIN['url']}",
        },
        headers={"Idempotency-Key": "once"},
    )
    assert answer.status_code == 202, answer.text
    id = str(answer.json()["executionId"])
    assert ann.rested(id)["status"] == "AWAITING_APPROVAL"
    approval = ann.open_approval(id)
    decided = ann.post(f"/api/v1/approvals/{approval}/approve", {})
    assert decided.status_code == 200, decided.text
    assert ann.result(id)["status"] == "COMPLETED"
    hooked = ann.workflow(CHILD)
    hook = ann.webhook(hooked, secret=PLAIN["webhook"])
    body = json.dumps({"token": CANARIES["payload"]}).encode()
    path = f"/api/webhooks/{hook.id}/trigger"
    sent = site.http.post(path, content=body, headers=signed(PLAIN["webhook"], body))
    assert sent.status_code == 202, sent.text
    ann.rested(sent.json()["executionId"])
    return id


def test_no_canary_rests_in_clear(site: Site, ann: ApiCaller, tmp_path: Path) -> None:
    """
    Database, its log, the server's log, a backup without key: while it runs, and when it has ended.
    """
    id = play(site, ann)
    assert CANARIES["undeclared"] in json.dumps(
        ann.get(f"/api/v1/executions/{id}").json(), ensure_ascii=False
    ).replace('\\"', '"').replace("\\\\", "\\")
    named = ann.get(f"/api/v1/executions/{id}/result").json()
    assert "***" in json.dumps(named)
    assert "c4nary-named" not in json.dumps(named)
    assert_no_canary(resting(site.data) | {"log": site.server.log.read_bytes()})
    backup = tmp_path / "all.tar"
    wfcore = (sys.executable, "-m", "wfserver", "--data", str(site.data))
    subprocess.run([*wfcore, "backup", str(backup)], check=True)
    with tarfile.open(backup) as tar:
        assert "seal.key" not in tar.getnames()
    assert_no_canary({"backup": backup.read_bytes()})
    assert site.stop() == 0
    assert_no_canary(resting(site.data) | {"log": site.server.log.read_bytes()})


def test_the_search_finds_what_is_in_clear(tmp_path: Path) -> None:
    """A canary in any of its forms, somewhere in a file, is found."""
    for canary in (CANARIES["input"], PLAIN["webhook"]):
        for look in forms(canary):
            with pytest.raises(AssertionError):
                assert_no_canary({"file": b"before " + look + b" behind"})
