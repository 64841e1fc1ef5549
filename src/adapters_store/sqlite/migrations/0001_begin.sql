-- Every record is a row: what is looked up, filtered or ordered by is a column, the rest is the
-- JSON text `body`. `version` is what compare-and-set compares.

CREATE TABLE accounts (
    id TEXT PRIMARY KEY,
    email TEXT NOT NULL UNIQUE,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX accounts_newest ON accounts (created_at, id);

CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX api_keys_of_account ON api_keys (account_id, created_at, id);

CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);

CREATE INDEX sessions_by_age ON sessions (created_at);

CREATE TABLE logins (
    id TEXT PRIMARY KEY,
    last_failure_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX logins_by_age ON logins (last_failure_at);

CREATE TABLE workflows (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (owner_id, name)
);

CREATE TABLE definitions (
    workflow_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (workflow_id, revision)
);

CREATE TABLE shares (
    workflow_id TEXT NOT NULL,
    account_id TEXT NOT NULL,
    permission TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (workflow_id, account_id)
);
CREATE INDEX shares_of_account ON shares (account_id, permission, workflow_id);

-- An execution is a head here, its variables and its step results apart: one transition then
-- writes the head and the one step that changed. `lease_until` is the store's own.
CREATE TABLE executions (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    accepted_at INTEGER NOT NULL,
    masked INTEGER NOT NULL,
    status TEXT NOT NULL,
    completed_at INTEGER,
    due_at INTEGER,
    worker TEXT,
    fence INTEGER NOT NULL,
    lease_until INTEGER,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    output TEXT
);
CREATE INDEX executions_newest ON executions (accepted_at, id, status);
CREATE INDEX executions_of_owner ON executions (owner_id, accepted_at, id, status);
CREATE INDEX executions_of_workflow ON executions (workflow_id, accepted_at, id, status, owner_id);
CREATE INDEX executions_claimable ON executions (owner_id, due_at, id)
    WHERE worker IS NULL AND due_at IS NOT NULL AND status IN ('PENDING', 'RUNNING');
CREATE INDEX executions_next_due ON executions (due_at)
    WHERE worker IS NULL AND due_at IS NOT NULL AND status IN ('PENDING', 'RUNNING');
CREATE INDEX executions_held ON executions (worker, owner_id) WHERE worker IS NOT NULL;
CREATE INDEX executions_in_grace ON executions (due_at, id) WHERE status = 'INTERRUPTED';
CREATE INDEX executions_ended ON executions (completed_at, id) WHERE completed_at IS NOT NULL;

CREATE TABLE execution_variables (
    execution_id TEXT PRIMARY KEY,
    body TEXT NOT NULL
);

-- `position` is the place in the map of results; the step's name is in the body.
CREATE TABLE step_results (
    execution_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    body TEXT NOT NULL,
    output TEXT NOT NULL,
    PRIMARY KEY (execution_id, position)
) WITHOUT ROWID;

CREATE TABLE approvals (
    id TEXT PRIMARY KEY,
    execution_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    workflow_owner_id TEXT NOT NULL,
    owner_id TEXT NOT NULL,
    status TEXT NOT NULL,
    named INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX approvals_newest ON approvals (created_at, id, status);
CREATE INDEX approvals_of_execution ON approvals (execution_id);
CREATE INDEX approvals_of_workflow ON approvals (workflow_id, named);
CREATE INDEX approvals_of_owner ON approvals (owner_id);
CREATE INDEX approvals_of_workflow_owner ON approvals (workflow_owner_id);
CREATE INDEX approvals_open ON approvals (expires_at, id) WHERE status = 'PENDING';

-- Emails and account ids of named approvers, in lower case.
CREATE TABLE approval_approvers (
    approver TEXT NOT NULL,
    approval_id TEXT NOT NULL,
    PRIMARY KEY (approver, approval_id)
) WITHOUT ROWID;
CREATE INDEX approval_approvers_of_approval ON approval_approvers (approval_id);

CREATE TABLE artifacts (
    id TEXT PRIMARY KEY,
    execution_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX artifacts_of_execution ON artifacts (execution_id, created_at, id);

CREATE TABLE webhooks (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX webhooks_of_owner ON webhooks (owner_id, created_at, id);
CREATE INDEX webhooks_of_workflow ON webhooks (workflow_id, created_at, id);

CREATE TABLE webhook_tallies (
    webhook_id TEXT NOT NULL,
    date TEXT NOT NULL,
    status INTEGER NOT NULL,
    count INTEGER NOT NULL,
    last_at INTEGER NOT NULL,
    PRIMARY KEY (webhook_id, date, status)
) WITHOUT ROWID;

CREATE TABLE replays (
    scope TEXT NOT NULL,
    key TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (scope, key)
) WITHOUT ROWID;
CREATE INDEX replays_by_age ON replays (created_at);

CREATE TABLE events (
    execution_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (execution_id, number)
) WITHOUT ROWID;

CREATE TABLE audit (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL,
    body TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX audit_by_age ON audit (at);

-- One row that a ping changes, so that readiness is a real write.
CREATE TABLE pulse (beats INTEGER NOT NULL);
INSERT INTO pulse (beats) VALUES (0);
