-- Executions that have not ended are found without the others, however many there are.
CREATE INDEX executions_unfinished ON executions (id)
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED');
