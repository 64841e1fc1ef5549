-- What waits for a decision is counted for each workflow without what is decided.
CREATE INDEX approvals_open_of_workflow ON approvals (workflow_id, owner_id) WHERE status = 'PENDING';
