-- What starts workflows by itself. A timer is a due row that is deleted by the unit that starts.

CREATE TABLE triggers (
    id TEXT PRIMARY KEY,
    workflow_id TEXT NOT NULL,
    watches TEXT,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX triggers_newest ON triggers (created_at, id);
CREATE INDEX triggers_of_workflow ON triggers (workflow_id, created_at, id);
CREATE INDEX triggers_watching ON triggers (watches, created_at, id) WHERE watches IS NOT NULL;

CREATE TABLE timers (
    id TEXT PRIMARY KEY,
    trigger_id TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX timers_due ON timers (due_at, id);
CREATE INDEX timers_of_trigger ON timers (trigger_id, due_at);
