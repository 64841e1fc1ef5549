-- All that an ended execution says, in one cell; its other rows are gone then. Decision 232.
ALTER TABLE executions ADD COLUMN packed BLOB;

-- Up to which end executions have been packed, those of before included.
CREATE TABLE packing_mark (completed_at INTEGER NOT NULL, id TEXT NOT NULL);
INSERT INTO packing_mark (completed_at, id) VALUES (0, '');
