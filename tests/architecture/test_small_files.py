"""A small file is an idea of its own; everything else belongs to a neighbour."""

from architecture.measure import ROOT, SMALL

REASONS = {
    "adapters_http/handlers/notices.py": "the description names its functions after the path",
    "adapters_http/handlers/operations.py": "the routes of the tag Operations",
    "adapters_http/handlers/sessions.py": "the routes of the tag Sessions",
    "adapters_http/tracing.py": "what requests are in a trace, beside what they ask",
    "adapters_runtime/engine/callbacks.py": "the client of one port",
    "adapters_runtime/engine/presence.py": "one loop of the engine",
    "adapters_runtime/sandbox/frames.py": "the protocol between two processes",
    "adapters_store/memory.py": "one of the three stores, by the name that a host writes",
    "adapters_store/private_folder.py": "who may read files: one rule for stores and keys",
    "wfcore/_exports.py": "the loader of public names of four packages",
    "wfcore/memory/counters.py": "one port in memory",
    "wfcore/model/json.py": "what JSON is",
    "wfcore/model/node.py": "one kind of record",
    "wfcore/model/signing.py": "one kind of record",
    "wfcore/ports/callbacks.py": "one port",
    "wfcore/ports/counters.py": "one port",
    "wfcore/ports/identity.py": "one port",
    "wfcore/rules/approval/options.py": "what an approver may do besides yes and no",
    "wfcore/rules/backoff.py": "the one backoff, copied into the client",
    "wfcore/rules/definition/changes.py": "the rule that compares two texts",
    "wfcore/rules/definition/duration.py": "the text of a duration, for definitions and settings",
    "wfcore/rules/execution/concurrency.py": "the rule about concurrency groups",
    "wfcore/rules/execution/rounds.py": "what going back puts aside",
    "wfcore/rules/explain/differences.py": "the rule that compares two executions",
    "wfcore/rules/ids.py": "the form of ids, for whatever makes or routes one",
    "wfcore/rules/phrase.py": "sentences that are translated where they are shown",
    "wfcore/rules/triggers/chain.py": "the rule about chains; `maxRuns` is found here",
    "wfcore/rules/visible.py": "the one rule of what pages and notices show",
    "wfcore/testing/contracts/awaited.py": "what every contract with coroutines inherits",
    "wfcore/testing/contracts/store.py": "the contract that authors of stores inherit",
    "wfcore/testing/simulator/people.py": "who is one person, told without the rules it judges",
    "wfcore/testing/simulator/promises.py": "what clients were told",
    "wfcore/time.py": "instants and durations",
    "wfcore/wire/languages.py": "the catalogue of words, for pages and notices",
    "wfcore_client/backoff.py": "a copy that `make client` writes",
    "wfserver/__main__.py": "where the command starts, before anything is installed",
    "wfserver/commands/check.py": "one command",
    "wfserver/commands/secret.py": "one command",
    "wfserver/commands/serve.py": "one command",
    "wfserver/commands/session.py": "one command",
    "wfserver/commands/signing.py": "one command",
    "wfserver/commands/states.py": "one command",
    "wfserver/commands/up.py": "one command",
    "wfserver/serving/listening.py": "what `serve` and `up` share before a server is loaded",
}
"""The files of fewer than `SMALL` lines, with what makes each an idea of its own."""


def test_every_small_file_has_a_reason() -> None:
    """A new one joins a neighbour or says here why not; one that is small no more leaves."""
    small = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if path.name != "__init__.py" and len(path.read_text().splitlines()) < SMALL
    }
    assert small == REASONS.keys()
