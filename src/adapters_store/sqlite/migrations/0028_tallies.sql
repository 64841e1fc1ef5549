-- How many executions have ended, for exact totals that read none of them. Decision 229.
-- A tally counts those accepted before `tally_mark.before`, by the hour, the day and (2^53) in all; `begins`
-- is when its span does. The program moves the mark on. What ends, or goes, behind it is noted by triggers
-- as 1 or -1, so that nobody who writes can forget it, and added later. A note has no constraint: a
-- statement that may abort would record how to undo it, which costs as much as the statement.

CREATE TABLE execution_tallies (
    span INTEGER NOT NULL,
    owner_id TEXT NOT NULL,
    begins INTEGER NOT NULL,
    workflow_id TEXT NOT NULL,
    status TEXT NOT NULL,
    trigger_source TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (span, owner_id, begins, workflow_id, status, trigger_source)
) WITHOUT ROWID;
CREATE INDEX execution_tallies_of_workflow
    ON execution_tallies (span, workflow_id, begins, status, trigger_source, count);
CREATE INDEX execution_tallies_of_none ON execution_tallies (count) WHERE count = 0;

CREATE TABLE tally_notes (
    owner_id TEXT,
    workflow_id TEXT,
    accepted_at INTEGER,
    status TEXT,
    trigger_source TEXT,
    count INTEGER
);

CREATE TABLE tally_mark (before INTEGER NOT NULL);
INSERT INTO tally_mark (before) VALUES (0);

CREATE TRIGGER executions_ended_behind_mark AFTER UPDATE OF status ON executions
    WHEN new.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
        AND old.status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED')
        AND new.accepted_at < (SELECT before FROM tally_mark)
    BEGIN INSERT INTO tally_notes VALUES (new.owner_id, new.workflow_id, new.accepted_at, new.status,
        new.trigger_source, 1); END;

CREATE TRIGGER executions_inserted_behind_mark AFTER INSERT ON executions
    WHEN new.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
        AND new.accepted_at < (SELECT before FROM tally_mark)
    BEGIN INSERT INTO tally_notes VALUES (new.owner_id, new.workflow_id, new.accepted_at, new.status,
        new.trigger_source, 1); END;

CREATE TRIGGER executions_deleted_behind_mark AFTER DELETE ON executions
    WHEN old.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
        AND old.accepted_at < (SELECT before FROM tally_mark)
    BEGIN INSERT INTO tally_notes VALUES (old.owner_id, old.workflow_id, old.accepted_at, old.status,
        old.trigger_source, -1); END;
