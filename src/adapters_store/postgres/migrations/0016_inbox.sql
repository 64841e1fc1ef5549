-- The parts of an inbox are found, and counted, without what is in the others, however much that is.
CREATE INDEX approvals_agreed ON approvals (expires_at, id) WHERE status = 'PENDING' AND assented <> '[]';
DROP INDEX approvals_of_owner;
CREATE INDEX approvals_of_owner ON approvals (owner_id, status, id);
DROP INDEX approvals_of_workflow_owner;
CREATE INDEX approvals_of_workflow_owner ON approvals (workflow_owner_id, status, id);
