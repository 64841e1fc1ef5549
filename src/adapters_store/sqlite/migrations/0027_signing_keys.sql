-- Keys that sign links, all of them in one row.

CREATE TABLE signing_keys (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
