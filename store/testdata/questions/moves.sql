-- What did the moves of running jobs bring, and how much of what was predicted?
SELECT job_id, outcome, from_batch_size, to_batch_size, epoch, before_epoch_seconds, after_epoch_seconds,
    round(gain_ratio, 2) AS gain_ratio
FROM job_moved
ORDER BY at
