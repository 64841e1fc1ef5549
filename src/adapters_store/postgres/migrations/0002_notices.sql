-- Notices: what people are told, each due until it was sent, dropped or given up.

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
