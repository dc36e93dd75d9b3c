-- The time limit that a batch system such as Slurm sets for a job.

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS limit_seconds Float64 AFTER heartbeat_seconds;
ALTER TABLE job_started
    COMMENT COLUMN IF EXISTS limit_seconds
        'Time limit of the batch system, from the start of the job; 0 if there is none.';
