-- The metric behind an accuracy as the job printed it: a percentage, an error rate, or a loss.

ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS metric LowCardinality(String) AFTER accuracy;
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS metric_value Nullable(Float64) AFTER metric;
ALTER TABLE job_epoch
    COMMENT COLUMN IF EXISTS metric
        'Name of the printed metric behind accuracy, or of a loss on held-out data without one.',
    COMMENT COLUMN IF EXISTS metric_value 'Value of metric as printed, such as 91.5 for 91.5 %.';

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, dataset, batch_size, cpus, nodes, duration_seconds, loss,
    accuracy, metric, metric_value, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes,
        job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio,
        job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT
    'One row for each epoch of a job.';
ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS at 'End of the epoch, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS epoch 'Number of the epoch, from 1.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS batch_size 'Samples per iteration.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS duration_seconds 'Duration of the epoch with its validation.',
    COMMENT COLUMN IF EXISTS loss 'Loss that the job reported.',
    COMMENT COLUMN IF EXISTS accuracy 'Accuracy on the validation set, 0 to 1.',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'Time-weighted number of jobs on the node, this one included.',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'Busy share of the processors of the node.',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio
        'Share of the processors of the node that waited for storage.',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of the processes of the job.',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'Resident memory of the job at the end of the epoch.',
    COMMENT COLUMN IF EXISTS job_read_bytes 'Bytes read from storage.',
    COMMENT COLUMN IF EXISTS job_written_bytes 'Bytes written to storage.',
    COMMENT COLUMN IF EXISTS training_samples 'Samples of the training set.',
    COMMENT COLUMN IF EXISTS node_cores 'Logical processors of the node.',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds
        'Sum over threads of the time that they waited for storage; NULL if the kernel does not measure it.',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio
        'Share of the time in which at least one task of the job waited for a CPU.',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio
        'Share of the time in which at least one task of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio
        'Share of the time in which all runnable tasks of the job waited for storage.',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio
        'Share of the time in which at least one task of the job waited for memory.',
    COMMENT COLUMN IF EXISTS job_cgroup_figures
        'Which of cpu, memory and io were measured by the cgroup; the others by the process tree.',
    COMMENT COLUMN IF EXISTS metric
        'Name of the printed metric behind accuracy, or of a loss on held-out data without one.',
    COMMENT COLUMN IF EXISTS metric_value 'Value of metric as printed, such as 91.5 for 91.5 %.';
