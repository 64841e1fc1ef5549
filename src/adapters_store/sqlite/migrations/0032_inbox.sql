-- The parts of an inbox are found, and counted, without what is in the others, however much that is.
DROP INDEX approvals_open;
CREATE INDEX approvals_open ON approvals (
    expires_at, id, named, owner_id, workflow_owner_id, workflow_id, allow_self_approval, assented, idle
) WHERE status = 'PENDING';
CREATE INDEX approvals_agreed ON approvals (expires_at, id) WHERE status = 'PENDING' AND assented <> '[]';
DROP INDEX approvals_of_owner;
CREATE INDEX approvals_of_owner ON approvals (owner_id, status, id);
DROP INDEX approvals_of_workflow_owner;
CREATE INDEX approvals_of_workflow_owner ON approvals (workflow_owner_id, status, id);
