-- Warnings of a rising loss: they do not depend on the SLO, so they are no warnings that it is at risk.

ALTER TABLE job_risk
    COMMENT COLUMN IF EXISTS cleared
        'True if the risk is over: the probability is above the confidence again, or the loss no longer rises.';

ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS cause
        'slow_epochs, io_wait, neighbours, foreign, late_start, regressor or diverging.';

CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.dataset AS dataset, s.user AS user,
    s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence,
    s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds,
        s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence),
        e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued',
            'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes),
        CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus,
        s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at,
        if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9,
        NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    toBool(state = 'finished' AND greatest(p.epochs_done, e.epochs_done) < e.epochs
        AND (s.slo_seconds = 0 OR response_seconds <= s.slo_seconds)) AS incomplete,
    if(state IN ('finished', 'failed') AND NOT incomplete AND s.slo_seconds > 0,
        toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1,
        NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at,
        min(l.started_at) AS first_started_at,
        argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus,
            argMax(l.epoch, (l.run, l.sequence)) AS epochs_done,
            argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds,
            sum(l.io_wait_seconds) AS io_wait_seconds,
            sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds,
            sum(l.concurrent_of_seconds) AS concurrent_of_seconds,
            sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at,
            arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch,
            NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds,
                0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '',
            argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch),
            argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds),
                sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at, epochs, epochs_done,
    duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a
    ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at,
    argMax(r.cause, sequence) AS cause FROM job_risk AS r
    WHERE NOT cleared AND r.cause != 'diverging' GROUP BY job_id) AS w
    ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT
    'One row for each submitted job.';
ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC; the SLO counts from here.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS decision
        'Answer to the request: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS advised_batch_size 'Advised batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds
        'Predicted time of start-up and all epochs in the answer.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO in the answer, 0 to 1.',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost.',
    COMMENT COLUMN IF EXISTS run 'Number of starts of the job.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes on which the job runs or was advised to run.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the last epoch; 0 if the job never started.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the job.',
    COMMENT COLUMN IF EXISTS epochs 'Requested epochs; 0 if Courier chooses them.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs of the last run.',
    COMMENT COLUMN IF EXISTS accuracy 'Last reported accuracy, 0 to 1.',
    COMMENT COLUMN IF EXISTS started_at
        'Time of the first start, UTC; NULL if the job never started.',
    COMMENT COLUMN IF EXISTS waited_seconds 'Time from the submission to the first start.',
    COMMENT COLUMN IF EXISTS ended 'Whether the job has ended.',
    COMMENT COLUMN IF EXISTS ended_at 'Time of the end, UTC; NULL if the job has not ended.',
    COMMENT COLUMN IF EXISTS end_reason 'Reason of the end in words.',
    COMMENT COLUMN IF EXISTS last_event_at 'Time of the last event of the job, UTC.',
    COMMENT COLUMN IF EXISTS run_seconds 'Duration of the last run.',
    COMMENT COLUMN IF EXISTS response_seconds 'Time from the submission to the end.',
    COMMENT COLUMN IF EXISTS incomplete
        'Whether the job finished, not after its deadline, with fewer epochs than it should have.',
    COMMENT COLUMN IF EXISTS met_slo
        'Whether the job met its SLO; NULL without an SLO, before the end, or if the job was cancelled, lost or incomplete.',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'Mean duration of an epoch.',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'Share of the processors of the nodes that waited for storage during the epochs, weighted by duration.',
    COMMENT COLUMN IF EXISTS neighbours 'Mean number of other jobs on the node during the epochs.',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of the processes of the job in its epochs.',
    COMMENT COLUMN IF EXISTS memory_bytes 'Largest resident memory at the end of an epoch.',
    COMMENT COLUMN IF EXISTS warned_at
        'First warning that the SLO is at risk, UTC; NULL if there was none.',
    COMMENT COLUMN IF EXISTS warned_cause
        'Cause of the last warning: slow_epochs, io_wait, neighbours, foreign, late_start or regressor.';
