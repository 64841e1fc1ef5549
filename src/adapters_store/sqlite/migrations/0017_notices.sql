-- Notices: what people are told, each due until it was sent, dropped or given up.

CREATE TABLE notices (
    id TEXT PRIMARY KEY,
    execution_id TEXT,
    channel TEXT NOT NULL,
    recipient TEXT NOT NULL,
    status TEXT NOT NULL,
    due_at INTEGER,
    attempted_at INTEGER,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX notices_due ON notices (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX notices_waiting ON notices (channel, recipient) WHERE due_at IS NOT NULL;
CREATE INDEX notices_attempted ON notices (channel, recipient, attempted_at)
    WHERE attempted_at IS NOT NULL;
CREATE INDEX notices_of_execution ON notices (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX notices_by_age ON notices (created_at, id);
CREATE INDEX notices_by_status ON notices (status, created_at, id);
