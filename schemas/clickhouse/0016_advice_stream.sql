-- Advice has had a stream of its own since JOB became too large for it: the
-- sequence of a row counts in the stream that its row names.

ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS stream LowCardinality(String) DEFAULT 'JOB';
