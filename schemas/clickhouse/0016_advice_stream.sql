-- Advice has its own stream. The column stream names the stream to which a row's sequence belongs.
-- Older rows belong to JOB.

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS stream LowCardinality(String) DEFAULT 'JOB';
