-- What a worker must be able to do to take an execution: a JSON array of words. Decision 173.

ALTER TABLE executions ADD COLUMN capabilities TEXT NOT NULL DEFAULT '[]';
UPDATE executions SET capabilities = coalesce(json_extract(body, '$.capabilities'), '[]')
    WHERE status NOT IN ('COMPLETED', 'FAILED', 'CANCELLED') AND json_valid(body);
