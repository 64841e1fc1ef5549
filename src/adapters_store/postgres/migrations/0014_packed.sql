-- What SQLite packed before it was moved here, which stays so. Decision 232.
ALTER TABLE executions ADD COLUMN packed bytea;
