-- Lists of what one source started of a workflow are found without the others. Decision 147.
CREATE INDEX executions_of_workflow_by_source ON executions (workflow_id, trigger_source, accepted_at, id);
