-- Every commit that changes anything counts a beat. `changes` counts how often a record was changed
-- or deleted that every request asks for and hardly anybody changes: while the number is the same,
-- what was read of them still holds. Counted by triggers, so that nobody who writes can forget it.

ALTER TABLE pulse ADD COLUMN changes INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER accounts_changed AFTER UPDATE ON accounts
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER accounts_deleted AFTER DELETE ON accounts
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER api_keys_changed AFTER UPDATE ON api_keys
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER api_keys_deleted AFTER DELETE ON api_keys
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER workflows_changed AFTER UPDATE ON workflows
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER workflows_deleted AFTER DELETE ON workflows
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER webhooks_changed AFTER UPDATE ON webhooks
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
CREATE TRIGGER webhooks_deleted AFTER DELETE ON webhooks
    BEGIN UPDATE pulse SET beats = beats + 1, changes = changes + 1; END;
