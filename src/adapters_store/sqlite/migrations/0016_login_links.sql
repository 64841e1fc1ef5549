-- Links that sign in once: only a hash of what stands in the link is kept.

CREATE TABLE login_links (
    id TEXT PRIMARY KEY,
    created_at INTEGER NOT NULL,
    version INTEGER NOT NULL,
    body TEXT NOT NULL
);
CREATE INDEX login_links_by_age ON login_links (created_at);
