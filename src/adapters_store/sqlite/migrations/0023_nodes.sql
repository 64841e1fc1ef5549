-- Processes that take executions, each as it announced itself.

CREATE TABLE nodes (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
