-- CPU model and speed, which distinguish nodes: in the samples and, because these are deleted after
-- some days, for each node of a job at its start.

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS cpu_model LowCardinality(String);
ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS speed_operations_per_second Nullable(Float64);

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_cores Array(UInt32);
ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_cpu_model Array(LowCardinality(String));
ALTER TABLE job_started ADD COLUMN IF NOT EXISTS nodes_speed_operations_per_second Array(Float64);
