-- Lists of what failed, of what has not ended, or of what one source started are found without the others,
-- however many there are. What has ended never changes: its entries are written once.

CREATE INDEX executions_ended_badly_of_owner
    ON executions (owner_id, accepted_at, id, status, workflow_id, trigger_source)
    WHERE status IN ('FAILED', 'CANCELLED');
CREATE INDEX executions_ended_badly_of_workflow
    ON executions (workflow_id, accepted_at, id, status, owner_id, trigger_source)
    WHERE status IN ('FAILED', 'CANCELLED');
CREATE INDEX executions_unfinished_of_owner
    ON executions (owner_id, accepted_at, id, status, workflow_id, trigger_source)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
CREATE INDEX executions_by_source ON executions (owner_id, trigger_source, accepted_at, id);
