-- What an ended execution has spent, in 10^-12 USD; -1 where a price is unknown, NULL for nothing. Decision 196.
-- Of those of before, the newest week: a list looks no further back. Bodies of step results are never sealed.

ALTER TABLE executions ADD COLUMN cost bigint;
UPDATE executions e SET cost = found.cost FROM (
    SELECT s.execution_id, CASE WHEN count(*) > count(s.body::jsonb #>> '{usage,cost_usd}') THEN -1
        ELSE nullif(round(sum((s.body::jsonb #>> '{usage,cost_usd}')::numeric) * 1e12), 0)::bigint END AS cost
    FROM step_results s JOIN executions r ON r.id = s.execution_id
    WHERE r.status IN ('COMPLETED', 'FAILED', 'CANCELLED')
    AND r.accepted_at > (SELECT max(accepted_at) FROM executions) - 691200000
    AND jsonb_typeof(s.body::jsonb -> 'usage') = 'object' AND (s.body::jsonb ->> 'started_at')::bigint >= r.accepted_at
    GROUP BY s.execution_id) found
    WHERE e.id = found.execution_id;
CREATE INDEX executions_costs ON executions (workflow_id, accepted_at, cost, owner_id) WHERE cost IS NOT NULL;
