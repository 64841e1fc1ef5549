"""Lists show what people call things, not only ids."""

from .conftest import Call


def test_lists_show_names_and_emails(wfcore: Call, applied: str) -> None:
    """Executions name workflow and starter, webhooks workflow and owner, approvals the step."""
    assert wfcore("execution", "start", applied).status == 0
    line = wfcore("execution", "list").out.splitlines()[1]
    assert "Greet" in line
    assert "ann@example.org" in line
    made = wfcore("webhook", "create", "--workflow", applied, "--name", "orders", "--secret", "s")
    assert made.status == 0, made.err
    line = wfcore("webhook", "list").out.splitlines()[1]
    assert "Greet" in line
    assert "ann@example.org" in line


def test_keys_are_listed_with_their_account(wfcore: Call) -> None:
    """A key stands in the list with its account's email."""
    key = ("--account", "ann@example.org", "--name", "erp", "--scope", "WORKFLOW_READ")
    assert wfcore("key", "create", *key).status == 0
    id = wfcore("account", "list", "--json").json["items"][0]["id"]
    (line,) = wfcore("key", "list", "--account", id).out.splitlines()[1:]
    assert line.split()[1:3] == ["erp", "ann@example.org"]


def test_workflows_are_listed_with_their_owners(wfcore: Call, applied: str) -> None:
    """A workflow stands in the list with its owner's email."""
    assert "ann@example.org" in wfcore("workflow", "list").out
