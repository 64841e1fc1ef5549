-- Cells may be sealed (decision 86), and SQL cannot look into them: what it asks for becomes columns.
-- `seal_keys` names the keys that something may be sealed with; the keys themselves are elsewhere.

CREATE TABLE seal_keys (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE);

ALTER TABLE step_results ADD COLUMN items TEXT;
UPDATE step_results SET items = json_extract(body, '$.items'), body = json_remove(body, '$.items')
    WHERE instr(body, '"items":') AND json_valid(body) AND json_type(body, '$.items') = 'array';

ALTER TABLE executions ADD COLUMN callback_url TEXT;
UPDATE executions
    SET callback_url = json_quote(json_extract(body, '$.callback_url')),
        body = json_remove(body, '$.callback_url')
    WHERE instr(body, '"callback_url":') AND json_valid(body);

ALTER TABLE approvals ADD COLUMN allow_self_approval INTEGER NOT NULL DEFAULT 1;
ALTER TABLE approvals ADD COLUMN assented TEXT NOT NULL DEFAULT '[]';
UPDATE approvals
    SET allow_self_approval = coalesce(json_extract(body, '$.allow_self_approval'), 1),
        assented = (SELECT json_group_array(json_extract(a.value, '$.account'))
            FROM json_each(body, '$.assents') a)
    WHERE json_valid(body);
