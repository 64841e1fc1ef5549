-- When each account was last given a place, by any worker: accounts take turns, and the last free
-- place is kept while more than one of them has work. Written by the claim that gives the place.

CREATE TABLE served (
    owner_id TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX served_lately ON served (at);
