-- Messages owed to callers whose execution has ended; `due_at` is NULL once one is settled.

CREATE TABLE callbacks (
    id TEXT PRIMARY KEY,
    due_at INTEGER,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX callbacks_due ON callbacks (due_at, id) WHERE due_at IS NOT NULL;
