-- An execution that awaits an approval may be due, too: the time of a step around it is up.

DROP INDEX executions_claimable;
DROP INDEX executions_next_due;
CREATE INDEX executions_claimable ON executions (owner_id, due_at, id)
    WHERE worker IS NULL AND due_at IS NOT NULL
    AND status IN ('PENDING', 'RUNNING', 'AWAITING_APPROVAL') AND queued = 0;
CREATE INDEX executions_next_due ON executions (due_at)
    WHERE worker IS NULL AND due_at IS NOT NULL
    AND status IN ('PENDING', 'RUNNING', 'AWAITING_APPROVAL') AND queued = 0;
