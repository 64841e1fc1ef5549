"""Damaged rows in the database of a real server."""

import sqlite3
from contextlib import closing
from pathlib import Path

from wfserver.cli import main

from .flows import ECHO, REVIEW, REVIEW_AT_ONCE
from .process import until
from .site import Site

BROKEN = '{"secret": "do not tell"'


def test_one_row_stops_nothing(tmp_path: Path, capsys: object) -> None:
    """
    With a damaged approval that is due and a damaged execution that is due, the others expire and
    run, lists show the rest, the two are 500 by name, and `doctor` names them.
    """
    with closing(Site(tmp_path / "data")) as site:
        ann = site.caller()
        flow, at_once, review = map(ann.workflow, (ECHO, REVIEW_AT_ONCE, REVIEW))
        ended = ann.start(flow)
        ann.result(ended)
        _, damaged = ann.paused(review)
        site.kill()
        with closing(sqlite3.connect(site.data / "wfcore.db")) as database, database:
            sql = "UPDATE approvals SET body = ?, expires_at = 1 WHERE id = ?"
            database.execute(sql, (BROKEN, damaged))
            sql = "UPDATE executions SET body = ?, status = 'PENDING', due_at = 1 WHERE id = ?"
            database.execute(sql, (BROKEN, ended))
        site.serve()

        assert ann.result(ann.start(flow))["status"] == "COMPLETED"
        other = ann.start(at_once)
        until(lambda: ann.view(other)["status"] == "CANCELLED")
        listed = ann.get("/api/v1/executions").json()
        assert ended not in [one["executionId"] for one in listed["items"]]
        assert (listed["total"], len(listed["items"])) == (4, 3)
        assert ann.get("/api/v1/approvals").json()["total"] == 2
        for path in (f"executions/{ended}", f"approvals/{damaged}"):
            answer = ann.get(f"/api/v1/{path}")
            assert (answer.status_code, set(answer.json())) == (500, {"error"})
        assert site.http.get("/readyz").status_code == 200
        said = site.server.log.read_text()
        assert ended in said
        assert damaged in said
        assert "do not tell" not in said
        assert "Traceback" not in said
        main(["--data", str(site.data), "doctor"])
        shown = "".join(capsys.readouterr().out.split())  # type: ignore[attr-defined]
        assert ended in shown
        assert damaged in shown
