-- Audit entries are linked: each carries the hash of the one before it, in the order of commits.
-- What can be looked for is computed from the text that was hashed, so that it cannot differ from it.
-- The program links the entries of before, then drops audit_unlinked.

ALTER TABLE audit RENAME TO audit_unlinked;
DROP INDEX audit_by_age;

CREATE TABLE audit (
    number INTEGER PRIMARY KEY CHECK (number > 0),
    previous TEXT NOT NULL,
    hash TEXT NOT NULL,
    body TEXT NOT NULL,
    record TEXT,
    id TEXT AS (CASE WHEN json_valid(body) THEN json_extract(body, '$.id') END),
    at INTEGER AS (CASE WHEN json_valid(body) THEN json_extract(body, '$.at') END),
    execution_id TEXT AS (CASE WHEN json_valid(body) THEN json_extract(body, '$.executionId') END)
);
CREATE UNIQUE INDEX audit_by_id ON audit (id);
CREATE INDEX audit_by_age ON audit (at, id);
CREATE INDEX audit_of_execution ON audit (execution_id) WHERE execution_id IS NOT NULL;

-- One row. start: the last entry that retention has deleted; end: the newest.
CREATE TABLE audit_chain (
    id TEXT NOT NULL,
    start_number INTEGER NOT NULL,
    start_hash TEXT NOT NULL,
    end_number INTEGER NOT NULL,
    end_hash TEXT NOT NULL
);
INSERT INTO audit_chain VALUES (lower(hex(randomblob(16))),
    0, '0000000000000000000000000000000000000000000000000000000000000000',
    0, '0000000000000000000000000000000000000000000000000000000000000000');
