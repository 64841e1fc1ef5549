-- The last deliveries of each webhook. A trigger keeps the newest 50 of those with good credentials and
-- of the others, so that nobody who writes can forget it, and strangers push out nothing but strangers'.

CREATE TABLE webhook_deliveries (
    webhook_id TEXT NOT NULL,
    authenticated INTEGER NOT NULL,
    id TEXT NOT NULL,
    at INTEGER NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (webhook_id, authenticated, id)
) WITHOUT ROWID;
CREATE INDEX webhook_deliveries_by_age ON webhook_deliveries (at);

CREATE TRIGGER webhook_deliveries_bounded AFTER INSERT ON webhook_deliveries
    BEGIN DELETE FROM webhook_deliveries
        WHERE webhook_id = new.webhook_id AND authenticated = new.authenticated AND id < (
            SELECT id FROM webhook_deliveries
            WHERE webhook_id = new.webhook_id AND authenticated = new.authenticated
            ORDER BY id DESC LIMIT 1 OFFSET 49); END;
