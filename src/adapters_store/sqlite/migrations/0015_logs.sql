-- Output lines of executions that nobody followed: numbered apart from their events, which have no gaps.

CREATE TABLE logs (
    execution_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (execution_id, number)
) WITHOUT ROWID;
