-- Rows of a table WITHOUT ROWID are read whole to compare their keys, however large; an index holds keys only. Decision 262.
CREATE TABLE step_results_by_key (
    execution_id TEXT NOT NULL,
    position INTEGER NOT NULL,
    body TEXT NOT NULL,
    output TEXT NOT NULL,
    items TEXT,
    PRIMARY KEY (execution_id, position)
);
INSERT INTO step_results_by_key (execution_id, position, body, output, items)
    SELECT execution_id, position, body, output, items FROM step_results ORDER BY execution_id, position;
DROP TABLE step_results;
ALTER TABLE step_results_by_key RENAME TO step_results;
