-- What of a workflow has not ended is counted without what has.
CREATE INDEX executions_unfinished_of_workflow ON executions (workflow_id, accepted_at, id)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
