-- What an ended execution has spent, in 10^-12 USD; -1 where a price is unknown, NULL for nothing. Decision 196.
-- Of those of before, the newest week: a list looks no further back. Bodies of step results are never sealed.

ALTER TABLE executions ADD COLUMN cost INTEGER;
UPDATE executions SET cost = (
    SELECT CASE WHEN count(*) > count(usd) THEN -1 ELSE nullif(sum(CAST(round(usd * 1e12) AS INTEGER)), 0) END
    FROM (SELECT CAST(json_extract(s.body, '$.usage.cost_usd') AS REAL) AS usd FROM step_results s
        WHERE s.execution_id = executions.id AND CASE WHEN json_valid(s.body)
            THEN json_extract(s.body, '$.usage') IS NOT NULL
            AND json_extract(s.body, '$.started_at') >= executions.accepted_at END))
    WHERE status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    AND accepted_at > (SELECT max(accepted_at) FROM executions) - 691200000;
CREATE INDEX executions_costs ON executions (workflow_id, accepted_at, cost, owner_id) WHERE cost IS NOT NULL;
