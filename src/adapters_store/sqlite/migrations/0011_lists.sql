-- Lists are narrowed by what started an execution; and of approvals, to those that wait for a decision.
-- The indexes of lists hold every column that a filter looks at: rows are read of the page alone.

ALTER TABLE executions ADD COLUMN trigger_source TEXT NOT NULL DEFAULT '';
UPDATE executions
    SET trigger_source = coalesce(json_extract(body, '$.trigger_source'), '') WHERE json_valid(body);

DROP INDEX executions_newest;
DROP INDEX executions_of_owner;
DROP INDEX executions_of_workflow;
CREATE INDEX executions_newest ON executions (accepted_at, id, status, trigger_source);
CREATE INDEX executions_of_owner ON executions (owner_id, accepted_at, id, status, trigger_source);
CREATE INDEX executions_of_workflow
    ON executions (workflow_id, accepted_at, id, status, owner_id, trigger_source);

CREATE INDEX approvals_waiting ON approvals (created_at, id) WHERE status = 'PENDING';
