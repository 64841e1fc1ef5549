"""
Passkeys in Chromium at the shipped site of nginx, with TLS and below a path, in front of a server.
"""

import json
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from cryptography.hazmat.primitives.hashes import SHA256, Hash
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509 import load_pem_x509_certificate
from playwright.sync_api import BrowserContext, Page, expect, sync_playwright

from adapters_runtime.passkeys import WebAuthnPasskeys
from tests.adapters_http.console.conftest import CHROMIUM, PATIENCE, QUIET
from tests.adapters_http.console.test_passkeys_in_browser import Key
from tests.support.distribution import missing
from tests.wfserver.conftest import Call, Running, call
from wfcore.rules.base64url import decoded
from wfcore.rules.receipt import read_receipt, receipt_fault

from . import test_behind_proxies as proxies
from .test_behind_proxies import HOST, behind, nginx
from .test_below_a_path import below, inner, up

__all__ = ["call", "inner", "up"]
URL = f"https://{HOST}/flows"
SIGNED = """
name: signed
steps:
  - name: release
    kind: manual_approval
    assurance: passkey
    message: Sign the payments that may leave.
    groups:
      - name: payments
        rows: [{id: P-1, amount: 1200.5}]
        rowKey: id
"""


@pytest.fixture
def site(
    up: Running, inner: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[httpx.Client]:
    """A client of nginx, with the key of the first account."""
    below(tmp_path / "deploy", "nginx/wfcore.conf")
    monkeypatch.setattr(proxies, "DEPLOY", tmp_path / "deploy")
    key = (up.data / "first.key").read_text().strip()
    with behind(nginx, tmp_path, inner) as client:
        client.headers["Authorization"] = f"Bearer {key}"
        yield client


@pytest.fixture
def flow(up: Running, call: Call) -> str:
    """The id of a workflow with a signed release."""
    whose = ("--owner", up.said["email"])
    said = call("--data", str(up.data), "workflow", "apply", "-", *whose, "--json", stdin=SIGNED)
    return str(said.json["id"])


@pytest.fixture
def context(site: httpx.Client, flow: str, tmp_path: Path) -> Iterator[BrowserContext]:
    """A browser for which the host of the site is nginx on loopback, and its certificate valid."""
    if CHROMIUM is None:
        missing("needs Debian's chromium: apt-get install chromium")
    rules = f"MAP {HOST}:443 127.0.0.1:{site.base_url.port},MAP * ~NOTFOUND,EXCLUDE 127.0.0.1"
    trusted = f"--ignore-certificate-errors-spki-list={_fingerprint(tmp_path / 'cert.pem')}"
    arguments = [*QUIET, f"--host-resolver-rules={rules}", trusted]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        made = browser.new_context(viewport={"width": 1280, "height": 900})
        made.set_default_timeout(PATIENCE)
        yield made
        browser.close()


def _fingerprint(certificate: Path) -> str:
    """The hash of the certificate's key, as Chromium wants it."""
    public = load_pem_x509_certificate(certificate.read_bytes()).public_key()
    hashed = Hash(SHA256())
    hashed.update(public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    return b64encode(hashed.finalize()).decode()


def _asked(site: httpx.Client, flow: str) -> str:
    """The id of an approval that a passkey must confirm."""
    started = site.post(f"/flows/api/v1/workflows/{flow}/executions?wait=30", json={"inputs": {}})
    assert started.json()["status"] == "AWAITING_APPROVAL"
    path = f"/flows/api/v1/approvals/execution/{started.json()['executionId']}"
    return str(site.get(path).json()["approvals"][0]["id"])


def _registered(page: Page, way_in: str) -> None:
    """Signed in by the link that `up` printed, with one passkey."""
    page.goto(way_in)
    page.get_by_role("button", name="Continue as").click()
    page.wait_for_url(lambda url: "/in/" not in url)
    page.goto(f"{URL}/account")
    page.get_by_label("Name of the new passkey").fill("my laptop")
    page.get_by_role("button", name="Register a passkey").click()
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("my laptop")


def test_a_passkey_registers_signs_and_signs_in(
    up: Running, site: httpx.Client, flow: str, context: BrowserContext
) -> None:
    """Host and origin are those of WFCORE_PUBLIC_URL, whatever the server's own port. SR-7."""
    page = context.new_page()
    Key(page)
    assert up.said["console"].startswith(f"{URL}/in/")
    _registered(page, up.said["console"])
    id = _asked(site, flow)
    page.goto(f"{URL}/approvals/{id}")
    page.get_by_role("button", name="Review and sign").click()
    page.get_by_role("dialog").get_by_role("button", name="Approve").click()
    expect(page.get_by_role("heading", level=2).first).to_contain_text("Approved")
    (found,) = site.get(f"/flows/api/v1/approvals/{id}").json()["receipts"]
    receipt: Any = read_receipt(found)
    assert receipt_fault(receipt, WebAuthnPasskeys().verifies) is None
    assert receipt.statement["rpId"] == HOST
    assert json.loads(decoded(receipt.client_data))["origin"] == f"https://{HOST}"
    context.clear_cookies()
    page.goto(f"{URL}/sign-in?next=/account")
    page.get_by_role("button", name="Sign in with a passkey").click()
    expect(page.get_by_role("textbox", name="Name", exact=True)).to_have_value("my laptop")
    assert page.url == f"{URL}/account"
