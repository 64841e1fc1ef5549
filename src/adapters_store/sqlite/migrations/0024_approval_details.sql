-- What an approval holds beside its head: rows, columns, history, attachments, fields, answers. Lists read heads alone.
-- An approval of before has all of it in its body until its next change: SQL cannot look into what is sealed.
CREATE TABLE approval_details (
    id TEXT PRIMARY KEY,
    body TEXT NOT NULL
);
CREATE TRIGGER approval_details_go AFTER DELETE ON approvals BEGIN
    DELETE FROM approval_details WHERE id = old.id;
END;
