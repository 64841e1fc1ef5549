-- Executions of one lane run at once up to the limit of their workflow. `queued` is the store's
-- own: 1 while an execution waits for a place in its lane. Who may come in is counted from the
-- rows of the lane, by the claim that finds the lane marked in `lane_checks`.

ALTER TABLE executions ADD COLUMN lane TEXT;
ALTER TABLE executions ADD COLUMN queued INTEGER NOT NULL DEFAULT 0;

DROP INDEX executions_claimable;
DROP INDEX executions_next_due;
CREATE INDEX executions_claimable ON executions (owner_id, due_at, id)
    WHERE worker IS NULL AND due_at IS NOT NULL AND status IN ('PENDING', 'RUNNING')
    AND queued = 0;
CREATE INDEX executions_next_due ON executions (due_at)
    WHERE worker IS NULL AND due_at IS NOT NULL AND status IN ('PENDING', 'RUNNING')
    AND queued = 0;
CREATE INDEX executions_in_lane ON executions (lane, queued, due_at, id)
    WHERE lane IS NOT NULL AND status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');

CREATE TABLE lane_limits (
    workflow_id TEXT PRIMARY KEY,
    at_once INTEGER NOT NULL
) WITHOUT ROWID;

CREATE TABLE lane_checks (
    number INTEGER PRIMARY KEY,
    lane TEXT NOT NULL UNIQUE
);
