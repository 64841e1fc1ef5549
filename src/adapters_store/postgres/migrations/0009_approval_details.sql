-- What an approval holds beside its head: rows, columns, history, attachments, fields, answers. Lists read heads alone.
-- An approval of before has all of it in its body until its next change: SQL cannot look into what is sealed.
CREATE TABLE approval_details (
    id word PRIMARY KEY REFERENCES approvals ON DELETE CASCADE,
    body text NOT NULL
);
