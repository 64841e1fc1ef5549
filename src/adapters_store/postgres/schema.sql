-- Every record is a row, as in SQLite: what is looked up, filtered or ordered by is a column, the rest is the
-- JSON text `body` (text, not jsonb: that refuses \u0000). Texts are compared by their bytes, whatever the
-- collation of the database is, so that lists have the order that every other store gives them.

CREATE DOMAIN word AS text COLLATE "C";

-- The store's time in milliseconds. Stable, so that an index can be searched with it.
CREATE FUNCTION wfcore_now() RETURNS bigint LANGUAGE sql STABLE
    AS $$ SELECT (extract(epoch FROM statement_timestamp()) * 1000)::bigint $$;

-- Ends a statement in which fewer rows than wanted were written: somebody else was faster.
CREATE FUNCTION wfcore_require(what text, wanted bigint, written bigint) RETURNS void LANGUAGE plpgsql
    AS $$ BEGIN
        IF written <> wanted THEN
            RAISE EXCEPTION USING ERRCODE = 'WF001', MESSAGE = what;
        END IF;
    END $$;

-- As SQLite's function of that name: the values of a JSON array.
CREATE FUNCTION json_each(list text) RETURNS TABLE (value text) LANGUAGE sql IMMUTABLE
    AS $$ SELECT json_array_elements_text(list::json) $$;

CREATE TABLE accounts (
    id word PRIMARY KEY,
    email word NOT NULL UNIQUE,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX accounts_newest ON accounts (created_at, id);

CREATE TABLE api_keys (
    id word PRIMARY KEY,
    account_id word NOT NULL,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX api_keys_of_account ON api_keys (account_id, created_at, id);

CREATE TABLE sessions (
    id word PRIMARY KEY,
    account_id word NOT NULL,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX sessions_by_age ON sessions (created_at);
CREATE INDEX sessions_of_account ON sessions (account_id);

CREATE TABLE logins (
    id word PRIMARY KEY,
    last_failure_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX logins_by_age ON logins (last_failure_at);

CREATE TABLE login_links (
    id word PRIMARY KEY,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX login_links_by_age ON login_links (created_at);

CREATE TABLE workflows (
    id word PRIMARY KEY,
    owner_id word NOT NULL,
    name word NOT NULL,
    revision bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    UNIQUE (owner_id, name)
);
CREATE INDEX workflows_by_name ON workflows (name, id);

CREATE TABLE definitions (
    workflow_id word NOT NULL,
    revision bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (workflow_id, revision)
);

CREATE TABLE workflow_states (
    workflow_id word PRIMARY KEY,
    version bigint NOT NULL,
    body text NOT NULL
);

CREATE TABLE shares (
    workflow_id word NOT NULL,
    account_id word NOT NULL,
    permission word NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (workflow_id, account_id)
);
CREATE INDEX shares_of_account ON shares (account_id, permission, workflow_id);

-- Room is left on each page, so that a transition that changes no index stays on it. `lease_until` and
-- `queued` are the store's own. `packed`: what SQLite packed before it was moved here. The other columns
-- are those of SQLite.
CREATE TABLE executions (
    id word PRIMARY KEY,
    owner_id word NOT NULL,
    workflow_id word NOT NULL,
    revision bigint NOT NULL,
    accepted_at bigint NOT NULL,
    masked bigint NOT NULL,
    status word NOT NULL,
    completed_at bigint,
    due_at bigint,
    worker word,
    fence bigint NOT NULL,
    lease_until bigint,
    concurrency_group word,
    queued bigint NOT NULL DEFAULT 0,
    trigger_source word NOT NULL,
    reference word,
    redrive_of word,
    capabilities text NOT NULL,
    cost bigint,
    version bigint NOT NULL,
    body text NOT NULL,
    callback_url text,
    output text,
    packed bytea
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX executions_newest ON executions (accepted_at, id);
CREATE INDEX executions_of_owner ON executions (owner_id, accepted_at, id);
CREATE INDEX executions_of_workflow ON executions (workflow_id, accepted_at, id);
CREATE INDEX executions_claimable ON executions (owner_id, due_at, id)
    WHERE worker IS NULL AND due_at IS NOT NULL
    AND status IN ('PENDING', 'RUNNING', 'AWAITING_APPROVAL') AND queued = 0;
CREATE INDEX executions_next_due ON executions (due_at)
    WHERE worker IS NULL AND due_at IS NOT NULL
    AND status IN ('PENDING', 'RUNNING', 'AWAITING_APPROVAL') AND queued = 0;
CREATE INDEX executions_held ON executions (worker, owner_id) WHERE worker IS NOT NULL;
CREATE INDEX executions_in_grace ON executions (due_at, id) WHERE status = 'INTERRUPTED';
CREATE INDEX executions_ended ON executions (completed_at, id) WHERE completed_at IS NOT NULL;
CREATE INDEX executions_unfinished ON executions (workflow_id, revision)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX executions_in_group ON executions (concurrency_group, queued, due_at, id)
    WHERE concurrency_group IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX executions_by_reference ON executions (reference, accepted_at, id)
    WHERE reference IS NOT NULL;
CREATE INDEX executions_redrives ON executions (redrive_of, accepted_at, id) WHERE redrive_of IS NOT NULL;

-- Lists of what failed, of what has not ended, or of what one source started are found without the others,
-- however many there are. What has ended never changes: its entries are written once.
CREATE INDEX executions_ended_badly_of_owner ON executions (owner_id, accepted_at, id)
    WHERE status IN ('FAILED', 'CANCELLED');
CREATE INDEX executions_ended_badly_of_workflow ON executions (workflow_id, accepted_at, id)
    WHERE status IN ('FAILED', 'CANCELLED');
CREATE INDEX executions_unfinished_of_owner ON executions (owner_id, accepted_at, id)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX executions_by_source ON executions (owner_id, trigger_source, accepted_at, id);
CREATE INDEX executions_of_workflow_by_source ON executions (workflow_id, trigger_source, accepted_at, id);
CREATE INDEX executions_unfinished_of_workflow ON executions (workflow_id, accepted_at, id)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX executions_costs ON executions (workflow_id, accepted_at, cost, owner_id) WHERE cost IS NOT NULL;

CREATE TABLE execution_variables (
    execution_id word PRIMARY KEY,
    body text NOT NULL,
    cause text
);

CREATE TABLE step_results (
    execution_id word NOT NULL,
    position bigint NOT NULL,
    body text NOT NULL,
    output text NOT NULL,
    items text,
    PRIMARY KEY (execution_id, position)
) WITH (fillfactor = 80);

CREATE TABLE group_limits (
    workflow_id word PRIMARY KEY,
    at_once bigint NOT NULL
);

CREATE TABLE group_checks (
    concurrency_group word PRIMARY KEY
);

-- When each account was last given a place, by any worker.
CREATE TABLE served (
    owner_id word PRIMARY KEY,
    at bigint NOT NULL
) WITH (fillfactor = 50);
CREATE INDEX served_lately ON served (at);

CREATE TABLE approvals (
    id word PRIMARY KEY,
    execution_id word NOT NULL,
    workflow_id word NOT NULL,
    workflow_owner_id word NOT NULL,
    owner_id word NOT NULL,
    status word NOT NULL,
    named bigint NOT NULL,
    created_at bigint NOT NULL,
    expires_at bigint NOT NULL,
    remind_at bigint,
    allow_self_approval bigint NOT NULL,
    assented text NOT NULL,
    idle text NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX approvals_newest ON approvals (created_at, id, status);
CREATE INDEX approvals_of_execution ON approvals (execution_id);
CREATE INDEX approvals_of_workflow ON approvals (workflow_id, named);
CREATE INDEX approvals_of_owner ON approvals (owner_id, status, id);
CREATE INDEX approvals_of_workflow_owner ON approvals (workflow_owner_id, status, id);
CREATE INDEX approvals_to_remind ON approvals (remind_at, id) WHERE remind_at IS NOT NULL;

-- The parts of an inbox are found, and counted, without what is in the others, however much that is.
CREATE INDEX approvals_open ON approvals (expires_at, id) WHERE status = 'PENDING';
CREATE INDEX approvals_waiting ON approvals (created_at, id) WHERE status = 'PENDING';
CREATE INDEX approvals_open_of_workflow ON approvals (workflow_id, owner_id) WHERE status = 'PENDING';
CREATE INDEX approvals_agreed ON approvals (expires_at, id) WHERE status = 'PENDING' AND assented <> '[]';
CREATE INDEX approvals_decided ON approvals (created_at, id) WHERE status <> 'PENDING';

-- What an approval holds beside its head: rows, columns, history, attachments, fields, answers. Lists read heads alone.
CREATE TABLE approval_details (
    id word PRIMARY KEY REFERENCES approvals ON DELETE CASCADE,
    body text NOT NULL
);

CREATE TABLE approval_approvers (
    approver word NOT NULL,
    approval_id word NOT NULL,
    PRIMARY KEY (approver, approval_id)
);
CREATE INDEX approval_approvers_of_approval ON approval_approvers (approval_id);

CREATE TABLE artifacts (
    id word PRIMARY KEY,
    execution_id word NOT NULL,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX artifacts_of_execution ON artifacts (execution_id, created_at, id);

CREATE TABLE callbacks (
    id word PRIMARY KEY,
    due_at bigint,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX callbacks_due ON callbacks (due_at, id) WHERE due_at IS NOT NULL;

CREATE TABLE webhooks (
    id word PRIMARY KEY,
    owner_id word NOT NULL,
    workflow_id word NOT NULL,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX webhooks_newest ON webhooks (created_at, id);
CREATE INDEX webhooks_of_owner ON webhooks (owner_id, created_at, id);
CREATE INDEX webhooks_of_workflow ON webhooks (workflow_id, created_at, id);

-- A count is the sum over its slots: each writer adds to one of its own, so that none waits for another.
CREATE TABLE webhook_tallies (
    webhook_id word NOT NULL,
    date word NOT NULL,
    status bigint NOT NULL,
    slot bigint NOT NULL,
    count bigint NOT NULL,
    last_at bigint NOT NULL,
    PRIMARY KEY (webhook_id, date, status, slot)
) WITH (fillfactor = 50);

CREATE TABLE webhook_deliveries (
    webhook_id word NOT NULL,
    authenticated bigint NOT NULL,
    id word NOT NULL,
    at bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (webhook_id, authenticated, id)
);
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (at);

-- Keeps the newest 50 of a webhook with good credentials, and of the others. What another transaction is
-- just deleting is left to it.
CREATE FUNCTION webhook_deliveries_bounded() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN
        DELETE FROM webhook_deliveries d USING (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = new.webhook_id AND authenticated = new.authenticated AND id < (
                SELECT id FROM webhook_deliveries
                WHERE webhook_id = new.webhook_id AND authenticated = new.authenticated
                ORDER BY id DESC LIMIT 1 OFFSET 49)
            FOR UPDATE SKIP LOCKED) gone
        WHERE d.webhook_id = new.webhook_id AND d.authenticated = new.authenticated AND d.id = gone.id;
        RETURN NULL;
    END $$;
CREATE TRIGGER webhook_deliveries_bounded AFTER INSERT ON webhook_deliveries
    FOR EACH ROW EXECUTE FUNCTION webhook_deliveries_bounded();

CREATE TABLE triggers (
    id word PRIMARY KEY,
    workflow_id word NOT NULL,
    watches word,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX triggers_newest ON triggers (created_at, id);
CREATE INDEX triggers_of_workflow ON triggers (workflow_id, created_at, id);
CREATE INDEX triggers_watching ON triggers (watches, created_at, id) WHERE watches IS NOT NULL;

CREATE TABLE timers (
    id word PRIMARY KEY,
    trigger_id word NOT NULL,
    due_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX timers_due ON timers (due_at, id);
CREATE INDEX timers_of_trigger ON timers (trigger_id, due_at);

-- Messages to people, each due until it was sent, dropped or given up.
CREATE TABLE notices (
    id word PRIMARY KEY,
    execution_id word,
    channel word NOT NULL,
    recipient word NOT NULL,
    status word NOT NULL,
    due_at bigint,
    attempted_at bigint,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL
);
CREATE INDEX notices_due ON notices (due_at, id) WHERE due_at IS NOT NULL;
CREATE INDEX notices_waiting ON notices (channel, recipient) WHERE due_at IS NOT NULL;
CREATE INDEX notices_attempted ON notices (channel, recipient, attempted_at)
    WHERE attempted_at IS NOT NULL;
CREATE INDEX notices_of_execution ON notices (execution_id) WHERE execution_id IS NOT NULL;
CREATE INDEX notices_by_age ON notices (created_at, id);
CREATE INDEX notices_by_status ON notices (status, created_at, id);

CREATE TABLE replays (
    scope word NOT NULL,
    key word NOT NULL,
    created_at bigint NOT NULL,
    version bigint NOT NULL,
    body text NOT NULL,
    PRIMARY KEY (scope, key)
);
CREATE INDEX replays_by_age ON replays (created_at);

CREATE TABLE events (
    execution_id word NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    kind word NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (execution_id, number)
);

-- Output lines of executions that nobody followed: numbered apart from their events.
CREATE TABLE logs (
    execution_id word NOT NULL,
    number bigint NOT NULL,
    at bigint NOT NULL,
    kind word NOT NULL,
    data text NOT NULL,
    PRIMARY KEY (execution_id, number)
);

-- Processes that take executions, each as it announced itself.
CREATE TABLE nodes (
    id word PRIMARY KEY,
    version bigint NOT NULL,
    body text NOT NULL
);

-- Keys that sign links, all of them in one row.
CREATE TABLE signing_keys (
    id word PRIMARY KEY,
    version bigint NOT NULL,
    body text NOT NULL
);

-- Groups of people, all of them in one row.
CREATE TABLE people_groups (
    id word PRIMARY KEY,
    version bigint NOT NULL,
    body text NOT NULL
);

CREATE TABLE audit (
    number bigint PRIMARY KEY CHECK (number > 0),
    previous text NOT NULL,
    hash text NOT NULL,
    body text NOT NULL,
    record text,
    id word NOT NULL UNIQUE,
    at bigint NOT NULL,
    execution_id word
);
CREATE INDEX audit_by_age ON audit (at, id);
CREATE INDEX audit_of_execution ON audit (execution_id, number) WHERE execution_id IS NOT NULL;

-- One row, which every audited commit locks last. start: the last entry that retention deleted; end: the newest.
CREATE TABLE audit_chain (
    id text NOT NULL,
    start_number bigint NOT NULL,
    start_hash text NOT NULL,
    end_number bigint NOT NULL,
    end_hash text NOT NULL
) WITH (fillfactor = 10);
INSERT INTO audit_chain VALUES (replace(gen_random_uuid()::text, '-', ''),
    0, repeat('0', 64), 0, repeat('0', 64));

CREATE TABLE seal_keys (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, id text NOT NULL UNIQUE);

-- Which process does what needs to be done by one only, and until when.
CREATE TABLE duties (
    duty word PRIMARY KEY,
    holder text NOT NULL,
    until bigint NOT NULL
) WITH (fillfactor = 50);

-- What was admitted in each window of a quota.
CREATE TABLE quotas (
    subject word NOT NULL,
    kind word NOT NULL,
    begins bigint NOT NULL,
    ends bigint NOT NULL,
    admitted bigint NOT NULL,
    last_at bigint NOT NULL,
    PRIMARY KEY (subject, kind, begins)
) WITH (fillfactor = 50);
CREATE INDEX quotas_by_end ON quotas (ends);

-- Admits up to `wanted` in every window, or, where one is full, none; how many each has admitted then. The
-- commit does not wait for the disk: a power cut may forget the last moments of counts.
CREATE FUNCTION wfcore_take(
    who text, kinds text[], starts bigint[], stops bigint[], limits bigint[], wanted bigint, used_at bigint
) RETURNS TABLE (taken bigint, counts bigint[]) LANGUAGE plpgsql
    AS $$ DECLARE room bigint; BEGIN
        PERFORM set_config('synchronous_commit', 'off', true);
        INSERT INTO quotas SELECT who, w.kind, w.begins, w.ends, 0, 0
            FROM unnest(kinds, starts, stops) AS w (kind, begins, ends)
            WHERE NOT EXISTS (SELECT 1 FROM quotas q
                WHERE q.subject = who AND q.kind = w.kind AND q.begins = w.begins)
            ORDER BY 2, 3 ON CONFLICT DO NOTHING;
        PERFORM 1 FROM quotas q JOIN unnest(kinds, starts) AS w (kind, begins)
            ON q.kind = w.kind AND q.begins = w.begins
            WHERE q.subject = who ORDER BY q.kind, q.begins FOR UPDATE OF q;
        SELECT greatest(0, least(wanted, min(w.most - q.admitted))) INTO room
            FROM quotas q JOIN unnest(kinds, starts, limits) AS w (kind, begins, most)
            ON q.kind = w.kind AND q.begins = w.begins WHERE q.subject = who;
        UPDATE quotas q SET admitted = q.admitted + room, last_at = greatest(q.last_at, used_at)
            FROM unnest(kinds, starts) AS w (kind, begins)
            WHERE q.subject = who AND q.kind = w.kind AND q.begins = w.begins AND room > 0;
        RETURN QUERY SELECT room, array_agg(q.admitted ORDER BY w.place)
            FROM unnest(kinds, starts) WITH ORDINALITY AS w (kind, begins, place)
            JOIN quotas q ON q.kind = w.kind AND q.begins = w.begins WHERE q.subject = who;
    END $$;

-- How often a record was changed or deleted that every request asks for and hardly anybody changes: while
-- the number is the same, what a process has read of them still holds. A row, not a sequence, because it
-- has to appear together with the change; counted at the end of a transaction, so that it is locked last.
CREATE TABLE changes (number bigint NOT NULL) WITH (fillfactor = 10);
INSERT INTO changes VALUES (0);
CREATE FUNCTION count_change() RETURNS trigger LANGUAGE plpgsql
    AS $$ BEGIN UPDATE changes SET number = number + 1; RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER accounts_changed AFTER UPDATE OR DELETE ON accounts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER api_keys_changed AFTER UPDATE OR DELETE ON api_keys
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER workflows_changed AFTER UPDATE OR DELETE ON workflows
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_change();
CREATE CONSTRAINT TRIGGER webhooks_changed AFTER UPDATE OR DELETE ON webhooks
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION count_change();
