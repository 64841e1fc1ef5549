-- What has ended never changes, so a redrive is found from its own side. The index holds redrives alone:
-- every other execution is written as before.

ALTER TABLE executions ADD COLUMN redrive_of TEXT;
UPDATE executions SET redrive_of = json_extract(body, '$.redrive_of')
    WHERE instr(body, '"redrive_of"') AND json_valid(body);
CREATE INDEX executions_redrives ON executions (redrive_of, accepted_at, id) WHERE redrive_of IS NOT NULL;
