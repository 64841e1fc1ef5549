-- What lets somebody in is sealed (decision 257), so SQL finds the account in a column. Everybody signs in once more.

DROP TABLE sessions;
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    account_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX sessions_by_age ON sessions (created_at);
CREATE INDEX sessions_of_account ON sessions (account_id);
DELETE FROM login_links;
