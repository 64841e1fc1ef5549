-- Named approvers, in lower case, from whom nothing is awaited now, such as those of an earlier stage. An approval
-- of before has none until its next change.
ALTER TABLE approvals ADD COLUMN idle TEXT NOT NULL DEFAULT '[]';
