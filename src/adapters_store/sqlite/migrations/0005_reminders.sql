-- When the next reminder of an open approval is due.
ALTER TABLE approvals ADD COLUMN remind_at INTEGER;
CREATE INDEX approvals_to_remind ON approvals (remind_at, id) WHERE remind_at IS NOT NULL;
