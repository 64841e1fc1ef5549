"""`wfcore try`: the sample over HTTP, with every request and its answer."""

import re
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from wfcore.model.approval import Approval
from wfcore.rules.approval.agreement import items_hash
from wfcore.rules.approval.machine import Approve
from wfserver import sample
from wfserver.data.bootstrap import read_key
from wfserver.data.pidfile import noted_url
from wfserver.errors import CommandFailed
from wfserver.settings.names import FIRST_KEY_FILE
from wfserver.terminal.http_client import Api, Exchange
from wfserver.terminal.invocation import Invocation
from wfserver.terminal.options import Command, pass_invocation
from wfserver.terminal.output import as_json, clean, console, put_json, say, shortened
from wfserver.terminal.review import PAGE, ReviewerChoice, approval_of, ask, put_groups
from wfserver.terminal.row_editor import Draft

if TYPE_CHECKING:
    from rich.console import Console

_WAIT_S = 30
_PATIENCE_S = 90.0
_BAD_REQUEST = 400
_EXECUTION = re.compile("exec_[0-9a-z]*")
_APPROVAL = re.compile("appr_[0-9a-z]*")
_WORTH = (
    "status",
    "currentStep",
    "completedSteps",
    "totalSteps",
    "approvalMessage",
    "name",
    "size",
    "output",
    "error",
    "executionId",
    "id",
)
"""The fields of an answer that are worth a line."""
_PREVIEW = 2_000


@click.command("try", cls=Command)
@click.option("--yes", is_flag=True, help="Approve without asking.")
@pass_invocation
def try_command(invocation: Invocation, yes: bool) -> int:
    """Run the sample against the running server: watch, decide, see the result."""
    data = invocation.settings().data
    url, key = noted_url(data), read_key(data)
    if url is None:
        raise CommandFailed(f"no server runs on {data}; start one in another terminal: wfcore up")
    if key is None:
        raise CommandFailed(
            f"{data / FIRST_KEY_FILE} is not there; wfcore up makes it where no key is"
        )
    trial = _Trial(Api(url, key), console(), quiet=invocation.json)
    result, artifacts = trial.run(prompts=not (yes or invocation.json))
    if invocation.json:
        put_json({"result": result, "artifacts": artifacts, "requests": len(trial.exchanges)})
    else:
        trial.show_curl(data / FIRST_KEY_FILE)
    return 1 if result["status"] == "FAILED" else 0


class _Trial:
    """One run of the sample, printed as it goes."""

    def __init__(self, api: Api, out: "Console", quiet: bool) -> None:
        self.exchanges: list[Exchange] = []
        self._api = api
        self._out = out
        self._quiet = quiet
        api.heard = self._heard

    def run(self, prompts: bool) -> tuple[Any, Sequence[Any]]:
        """Run the sample; returns the `ExecutionResult` and the artifacts."""
        path = f"/api/v1/workflows/{self._sample_id()}/executions"
        self._say("Start it")
        id = self._api.call("POST", path, {"inputs": {}})["executionId"]
        self._say("Wait until it ends or asks somebody")
        status = self._rest(id)
        while status == "AWAITING_APPROVAL":
            self._decide(id, prompts)
            self._say("Wait until it ends or asks somebody")
            status = self._rest(id)
        self._say("Read the result")
        result = self._api.call("GET", f"/api/v1/executions/{id}/result")
        self._say("See what it left behind")
        listed = self._api.call("GET", f"/api/v1/executions/{id}/artifacts")["artifacts"]
        for artifact in listed:
            self._preview(artifact)
        self._conclude(result)
        return result, listed

    def show_curl(self, key_file: Path) -> None:
        """Print the requests as commands to paste, which start and decide a new execution."""
        self._say("The same by hand")
        self._paste(f"export API={self._api.url} KEY=$(cat {shlex.quote(str(key_file))})")
        for command in replay(self.exchanges):
            self._paste(command)

    def _sample_id(self) -> str:
        self._say("Find the sample")
        for workflow in self._api.call("GET", "/api/v1/workflows?size=200")["items"]:
            if workflow["name"] == sample.NAME:
                return str(workflow["id"])
        raise CommandFailed(
            f"the sample {sample.NAME!r} is not there; wfcore up makes it in a new store"
        )

    def _rest(self, id: str) -> str:
        """The status of the execution once it has ended or waits for a decision."""
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until:
            run = self._api.call("GET", f"/api/v1/executions/{id}?wait={_WAIT_S}")
            if run["status"] not in ("PENDING", "RUNNING"):
                return str(run["status"])
        raise CommandFailed(f"{id} is still {run['status']} after {_PATIENCE_S:.0f} s")

    def _decide(self, id: str, prompts: bool) -> None:
        self._say("Somebody has to decide: see what is asked")
        open_ones = self._api.call("GET", f"/api/v1/approvals/execution/{id}")["approvals"]
        for pending in [one for one in open_ones if one["status"] == "PENDING"]:
            path = f"/api/v1/approvals/{pending['id']}"
            detail = self._api.call("GET", path)
            approval = approval_of(detail)
            if not self._quiet:
                put_groups(approval, self._out, PAGE)
            self._answer(path, approval, prompts)

    def _answer(self, path: str, approval: Approval, prompts: bool) -> None:
        """Send the decision on the rows that were shown; after a refusal, prompt again."""
        draft, decision = Draft(approval), ReviewerChoice(Approve())
        while True:
            if prompts:
                decision = _prompted(approval, self._out, draft)
            body: dict[str, Any] = {}
            edited = decision.choice.edited if isinstance(decision.choice, Approve) else None
            if edited is not None:
                body = {"editedItems": edited, "expectedItemsHash": items_hash(approval)}
            if decision.comment is not None:
                body["comment"] = decision.comment
            verb = type(decision.choice).__name__
            self._say(verb)
            try:
                self._api.call("POST", f"{path}/{verb.lower()}", body)
                return
            except CommandFailed as refusal:
                if edited is None or self.exchanges[-1].status != _BAD_REQUEST:
                    raise
                self._out.print(clean(refusal), style="red")

    def _preview(self, artifact: Any) -> None:
        content = bytearray()
        self._api.download(artifact["downloadUrl"], content.extend)
        if not self._quiet and artifact["previewable"]:
            self._out.print()
            self._out.print(f"  {clean(artifact['name'])}, {len(content):,} bytes", style="bold")
            for line in content[:_PREVIEW].decode("utf-8", "replace").splitlines():
                self._out.print(f"  {clean(line)}")

    def _conclude(self, result: Any) -> None:
        if not self._quiet:
            output = "" if result["output"] is None else as_json(result["output"], indent=None)
            style = "bold green" if result["status"] == "COMPLETED" else "bold yellow"
            self._out.print()
            self._out.print(f"{result['status']} {output}", style=style)

    def _heard(self, exchange: Exchange) -> None:
        self.exchanges.append(exchange)
        if self._quiet:
            return
        room = min(self._out.width, 100) - 7
        self._out.print(f"  {exchange.method:<4} {exchange.path}", soft_wrap=True)
        if exchange.body:
            self._out.print(f"       {shortened(exchange.body, room)}", soft_wrap=True)
        style = "green" if exchange.status < _BAD_REQUEST else "red"
        answer = shortened(_gist(exchange), room)
        self._out.print(f"  [{style}]{exchange.status}[/]  ", markup=True, end="")
        self._out.print(answer, style="dim", soft_wrap=True)

    def _say(self, title: str) -> None:
        if not self._quiet:
            self._out.print()
            self._out.print(title, style="bold")

    def _paste(self, line: str) -> None:
        # Never wrapped, so that a copied command is complete.
        self._out.print(line, soft_wrap=True, style="cyan")


def _prompted(approval: Approval, out: "Console", draft: Draft) -> ReviewerChoice:
    try:
        return ask(approval, clean(approval.message), out, draft)
    except click.Abort:
        say(f"{approval.id} waits: wfcore approval approve {approval.id}", err=True)
        raise


def replay(exchanges: Sequence[Exchange]) -> Iterator[str]:
    """*exchanges*, from the start on, as curl commands that take ids from the answers."""
    for one in exchanges[1:]:
        path = _APPROVAL.sub("$APPROVAL", _EXECUTION.sub("$ID", one.path))
        command = f'curl -s "$API{path}" -H "X-API-Key: $KEY"'
        if one.method != "GET":
            body = shlex.quote(as_json(one.body, indent=None))
            command += f" -H 'Content-Type: application/json' -d {body}"
        if path.endswith("/executions"):
            command = f"ID=$({command} | grep -o '{_EXECUTION.pattern}')"
        elif path.endswith("/approvals/execution/$ID"):
            command = f"APPROVAL=$({command} | grep -o '{_APPROVAL.pattern}')"
        else:
            command += "; echo"
        yield command
    yield """curl -s "$API$(curl -s "$API/api/v1/executions/$ID/artifacts" -H "X-API-Key: $KEY" \\
  | grep -o '/api/[^"]*download[^"]*')\""""


def _gist(exchange: Exchange) -> Any:
    """The part of an answer that is worth a line: the status first, and no ids of the request."""
    answer = exchange.answer
    for many in ("items", "approvals", "artifacts"):
        if many in answer:
            rows = [_worth(row, exchange.path) for row in answer[many]]
            return {"total": answer["total"], many: rows}
    return _worth(answer, exchange.path)


def _worth(record: Any, path: str) -> Any:
    return {
        name: record[name]
        for name in _WORTH
        if record.get(name) not in (None, "") and f"/{record[name]}" not in path
    }
