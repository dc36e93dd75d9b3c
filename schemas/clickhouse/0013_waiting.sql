-- Pressure and IO wait of a job, from its cgroup if it has one, and full pressure of a node.

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_wait_seconds Nullable(Float64);
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cpu_pressure_ratio Nullable(Float64);
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cpu_full_pressure_ratio Nullable(Float64);
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_pressure_ratio Nullable(Float64);
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_io_full_pressure_ratio Nullable(Float64);
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_memory_pressure_ratio Nullable(Float64);
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_memory_full_pressure_ratio Nullable(Float64);
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS job_cgroup_figures Array(LowCardinality(String));

ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS io_full_pressure_ratio Nullable(Float64);
ALTER TABLE node_sample ADD COLUMN IF NOT EXISTS memory_full_pressure_ratio Nullable(Float64);

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, batch_size, cpus, nodes, duration_seconds, loss, accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes, job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio, job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT 'One line for each epoch of a job';
ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'its end, UTC',
    COMMENT COLUMN IF EXISTS run 'counts starts of the job from 1',
    COMMENT COLUMN IF EXISTS epoch 'its number, from 1',
    COMMENT COLUMN IF EXISTS duration_seconds 'with its validation',
    COMMENT COLUMN IF EXISTS accuracy 'on the validation set, 0 to 1',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'on its node meanwhile, this one included, time-weighted',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'busy share of the node\'s processors meanwhile',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio 'share of the node\'s processors that waited for disks meanwhile',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of its processes',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'resident memory at its end',
    COMMENT COLUMN IF EXISTS job_read_bytes 'read from storage',
    COMMENT COLUMN IF EXISTS job_written_bytes 'written to storage',
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds 'that its threads waited for storage, summed; NULL: the kernel does not tell',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio 'share of the time in which some task of the job waited for a CPU',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio 'in which some task of the job waited for storage',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio 'in which all of them that had work waited for storage',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio 'in which some task of the job waited for memory',
    COMMENT COLUMN IF EXISTS job_cgroup_figures 'which of cpu, memory and io its cgroup told; the others are of its process tree';
