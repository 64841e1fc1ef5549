-- Processes that take executions, each as it announced itself.

CREATE TABLE nodes (
    id word PRIMARY KEY,
    version bigint NOT NULL,
    body text NOT NULL
);
