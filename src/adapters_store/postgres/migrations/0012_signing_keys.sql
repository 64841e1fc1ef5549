-- Keys that sign links, all of them in one row.

CREATE TABLE signing_keys (
    id word PRIMARY KEY,
    version bigint NOT NULL,
    body text NOT NULL
);
