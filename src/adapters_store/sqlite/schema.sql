-- Every record is a row: what is looked up, filtered or ordered by is a column, the rest is the JSON text `body`.
-- `version` is what compare-and-set compares. Cells may be sealed (decision 86), and SQL cannot look into them.

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
    account_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX sessions_by_age ON sessions (created_at);
CREATE INDEX sessions_of_account ON sessions (account_id);

CREATE TABLE logins (
    id TEXT PRIMARY KEY,
    last_failure_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX logins_by_age ON logins (last_failure_at);

-- Links that sign in once: only a hash of what stands in the link is kept.
CREATE TABLE login_links (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX login_links_by_age ON login_links (created_at);

CREATE TABLE workflows (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    name TEXT NOT NULL,
    revision INTEGER NOT NULL,
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

CREATE TABLE workflow_states (
    workflow_id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
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

-- An execution is a head here, its variables and its step results apart: one transition then writes the head and the
-- one step that changed. `lease_until` and `queued` are the store's own; `queued` is 1 while an execution waits for
-- a place in its concurrency group. `capabilities`: what a worker must be able to do, as a JSON array of words. `cost`:
-- what an ended execution has spent, in 10^-12 USD; -1 where a price is unknown, NULL for nothing. `packed`: all that
-- an ended execution says, in one cell; its other rows are gone then.
CREATE TABLE executions (
    id TEXT PRIMARY KEY,
    owner_id TEXT NOT NULL,
    workflow_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    accepted_at INTEGER NOT NULL,
    masked INTEGER NOT NULL,
    status TEXT NOT NULL,
    completed_at INTEGER,
    due_at INTEGER,
    worker TEXT,
    fence INTEGER NOT NULL,
    lease_until INTEGER,
    concurrency_group TEXT,
    queued INTEGER NOT NULL DEFAULT 0,
    trigger_source TEXT NOT NULL,
    reference TEXT,
    redrive_of TEXT,
    capabilities TEXT NOT NULL,
    cost INTEGER,
    version INTEGER NOT NULL,
    body TEXT NOT NULL,
    callback_url TEXT,
    output TEXT,
    packed BLOB
);

-- The indexes of lists hold every column that a filter reads: rows are read of the page alone. Decision 147.
CREATE INDEX executions_newest ON executions (accepted_at, id, status, trigger_source);
CREATE INDEX executions_of_owner ON executions (owner_id, accepted_at, id, status, trigger_source);
CREATE INDEX executions_of_workflow
    ON executions (workflow_id, accepted_at, id, status, owner_id, trigger_source);

-- What failed, what has not ended, and what one source started is found without the others, however many there are.
-- What has ended never changes: its entries are written once.
CREATE INDEX executions_ended_badly_of_owner
    ON executions (owner_id, accepted_at, id, status, workflow_id, trigger_source)
    WHERE status IN ('FAILED', 'CANCELLED');
CREATE INDEX executions_ended_badly_of_workflow
    ON executions (workflow_id, accepted_at, id, status, owner_id, trigger_source)
    WHERE status IN ('FAILED', 'CANCELLED');
CREATE INDEX executions_unfinished ON executions (workflow_id, revision)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX executions_unfinished_of_owner
    ON executions (owner_id, accepted_at, id, status, workflow_id, trigger_source)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX executions_unfinished_of_workflow
    ON executions (workflow_id, accepted_at, id, status, owner_id, trigger_source)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX executions_by_source ON executions (owner_id, trigger_source, accepted_at, id);
CREATE INDEX executions_of_workflow_by_source ON executions (workflow_id, trigger_source, accepted_at, id);
CREATE INDEX executions_by_reference
    ON executions (reference, accepted_at, id, status, owner_id, workflow_id, trigger_source)
    WHERE reference IS NOT NULL;
CREATE INDEX executions_redrives ON executions (redrive_of, accepted_at, id) WHERE redrive_of IS NOT NULL;
CREATE INDEX executions_costs ON executions (workflow_id, accepted_at, cost, owner_id) WHERE cost IS NOT NULL;
CREATE INDEX executions_ended ON executions (completed_at, id) WHERE completed_at IS NOT NULL;

-- An execution that awaits an approval may be due, too: the time of a step around it is up.
CREATE INDEX executions_claimable ON executions (owner_id, due_at, id)
    WHERE worker IS NULL AND due_at IS NOT NULL
    AND status IN ('PENDING', 'RUNNING', 'AWAITING_APPROVAL') AND queued = 0;
CREATE INDEX executions_next_due ON executions (due_at)
    WHERE worker IS NULL AND due_at IS NOT NULL
    AND status IN ('PENDING', 'RUNNING', 'AWAITING_APPROVAL') AND queued = 0;
CREATE INDEX executions_held ON executions (worker, owner_id) WHERE worker IS NOT NULL;
CREATE INDEX executions_in_grace ON executions (due_at, id) WHERE status = 'INTERRUPTED';
CREATE INDEX executions_in_group ON executions (concurrency_group, queued, due_at, id)
    WHERE concurrency_group IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');

-- An execution without variables and `cause` has no row. `cause`: what its templates know as `trigger`.
CREATE TABLE execution_variables (
    execution_id TEXT PRIMARY KEY,
    body TEXT NOT NULL,
    cause TEXT
);

-- `position` is the place in the map of results; the step's name is in the body. With a rowid: rows of a table without
-- one are read whole to compare their keys, however large they are (decision 261).
CREATE TABLE step_results (
    execution_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    body TEXT NOT NULL,
    output TEXT NOT NULL,
    items TEXT,
    PRIMARY KEY (execution_id, position)
);

-- Executions of one group run at once up to the limit of their workflow. Which of them run is counted from the rows of
-- the group, by the claim that finds the group marked in `group_checks`.
CREATE TABLE group_limits (
    workflow_id TEXT PRIMARY KEY,
    at_once INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE group_checks (
    number INTEGER PRIMARY KEY,
    concurrency_group TEXT NOT NULL UNIQUE
);

-- When each account was last given a place, by any worker: accounts take turns, and the last free place is kept while
-- more than one of them has work. Written by the claim that gives the place.
CREATE TABLE served (
    owner_id TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX served_lately ON served (at);

-- `remind_at`: when the next reminder is due. `assented` and `idle`: JSON arrays; `idle` are the named approvers, in
-- lower case, from whom nothing is awaited now, such as those of an earlier stage.
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
    remind_at INTEGER,
    allow_self_approval INTEGER NOT NULL,
    assented TEXT NOT NULL,
    idle TEXT NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX approvals_newest ON approvals (created_at, id, status);
CREATE INDEX approvals_of_execution ON approvals (execution_id);
CREATE INDEX approvals_of_workflow ON approvals (workflow_id, named);
CREATE INDEX approvals_of_owner ON approvals (owner_id, status, id);
CREATE INDEX approvals_of_workflow_owner ON approvals (workflow_owner_id, status, id);
CREATE INDEX approvals_to_remind ON approvals (remind_at, id) WHERE remind_at IS NOT NULL;

-- The parts of an inbox are found, and counted, without what is in the others, however much that is.
CREATE INDEX approvals_open ON approvals (
    expires_at, id, named, owner_id, workflow_owner_id, workflow_id, allow_self_approval, assented, idle
) WHERE status = 'PENDING';
CREATE INDEX approvals_waiting ON approvals (created_at, id) WHERE status = 'PENDING';
CREATE INDEX approvals_open_of_workflow ON approvals (workflow_id, owner_id) WHERE status = 'PENDING';
CREATE INDEX approvals_agreed ON approvals (expires_at, id) WHERE status = 'PENDING' AND assented <> '[]';
CREATE INDEX approvals_decided ON approvals (
    created_at, id, status, named, owner_id, workflow_owner_id, workflow_id
) WHERE status <> 'PENDING';

-- What an approval holds beside its head: rows, columns, history, attachments, fields, answers. Lists read heads alone.
CREATE TABLE approval_details (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TRIGGER approval_details_go AFTER DELETE ON approvals BEGIN
    DELETE FROM approval_details WHERE id = old.id;
END;

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

-- Messages owed to callers whose execution has ended; `due_at` is NULL once one is settled.
CREATE TABLE callbacks (
    id TEXT PRIMARY KEY,
    due_at INTEGER,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX callbacks_due ON callbacks (due_at, id) WHERE due_at IS NOT NULL;

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

-- The last deliveries of each webhook. A trigger keeps the newest 50 of those with good credentials and of the others,
-- so that nobody who writes can forget it, and strangers push out nothing but strangers'.
CREATE TABLE webhook_deliveries (
    webhook_id TEXT NOT NULL,
    authenticated INTEGER NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (webhook_id, authenticated, id)
) WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (at);
CREATE TRIGGER webhook_deliveries_bounded AFTER INSERT ON webhook_deliveries
    BEGIN DELETE FROM webhook_deliveries
        WHERE webhook_id = new.webhook_id AND authenticated = new.authenticated AND id < (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = new.webhook_id AND authenticated = new.authenticated
            ORDER BY id DESC LIMIT 1 OFFSET 49); END;

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

-- Messages to people, each due until it was sent, dropped or given up.
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

-- Output lines of executions that nobody followed: numbered apart from their events, which have no gaps.
CREATE TABLE logs (
    execution_id TEXT NOT NULL,
    number INTEGER NOT NULL,
    at INTEGER NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (execution_id, number)
) WITHOUT ROWID;

-- Processes that take executions, each as it announced itself.
CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);

-- Keys that sign links, all of them in one row.
CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);

-- Groups of people, all of them in one row.
CREATE TABLE people_groups (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);

-- The keys that something may be sealed with, by their ids; the keys themselves are elsewhere.
CREATE TABLE seal_keys (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE);

-- Audit entries are linked: each carries the hash of the one before it, in the order of commits. The columns that are
-- searched are computed from the text that was hashed, so that they cannot differ from it.
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

-- Every commit that changes anything counts a beat. `changes` counts how often a record was changed or deleted that
-- every request asks for and hardly anybody changes: while the number is the same, what was read of them still holds.
-- Counted by triggers, so that nobody who writes can forget it.
CREATE TABLE pulse (beats INTEGER NOT NULL, changes INTEGER NOT NULL);
INSERT INTO pulse (beats, changes) VALUES (0, 0);

CREATE TRIGGER accounts_changed AFTER UPDATE ON accounts
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER accounts_deleted AFTER DELETE ON accounts
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER api_keys_changed AFTER UPDATE ON api_keys
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER api_keys_deleted AFTER DELETE ON api_keys
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER workflows_changed AFTER UPDATE ON workflows
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER workflows_deleted AFTER DELETE ON workflows
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER webhooks_changed AFTER UPDATE ON webhooks
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER webhooks_deleted AFTER DELETE ON webhooks
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;

-- How many executions have ended, for exact totals that read none of them.
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

-- Up to which end executions have been packed.
CREATE TABLE packing_mark (completed_at INTEGER NOT NULL, id TEXT NOT NULL);
INSERT INTO packing_mark (completed_at, id) VALUES (0, '');
