-- Which process does what needs to be done by one only, and until when.
CREATE TABLE duties (
    duty word PRIMARY KEY,
    holder text NOT NULL,
    until bigint NOT NULL
) WITH (fillfactor = 50);
