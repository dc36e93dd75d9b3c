-- The dataset, because runs of a model on another dataset are no evidence. Its column follows the
-- model in every table and view.

ALTER TABLE job_started ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;
ALTER TABLE job_epoch ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;
ALTER TABLE job_ended ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;
ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;

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
    if(ended AND s.slo_seconds > 0,
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
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at,
    duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e
    ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a
    ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at,
    argMax(cause, sequence) AS cause FROM job_risk WHERE NOT cleared GROUP BY job_id) AS w
    ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

ALTER TABLE jobs MODIFY COMMENT 'One line for each submitted job';
ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'its name',
    COMMENT COLUMN IF EXISTS model 'what is trained',
    COMMENT COLUMN IF EXISTS dataset 'on which; empty: none was named',
    COMMENT COLUMN IF EXISTS user 'who submitted it',
    COMMENT COLUMN IF EXISTS submitted_at 'UTC; the SLO counts from here',
    COMMENT COLUMN IF EXISTS slo_seconds '0: it has none',
    COMMENT COLUMN IF EXISTS confidence 'of keeping the SLO, as asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted',
    COMMENT COLUMN IF EXISTS advised_batch_size '0: none was advised',
    COMMENT COLUMN IF EXISTS predicted_seconds 'start-up and all epochs, as answered',
    COMMENT COLUMN IF EXISTS predicted_accuracy '0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as answered, 0 to 1',
    COMMENT COLUMN IF EXISTS state
        'submitted, queued, refused, running, finished, failed, cancelled or lost',
    COMMENT COLUMN IF EXISTS run 'how often it was started',
    COMMENT COLUMN IF EXISTS nodes 'where it runs, or was advised to',
    COMMENT COLUMN IF EXISTS batch_size
        'with which it trains, or trained last; 0: it never started',
    COMMENT COLUMN IF EXISTS cpus 'processes',
    COMMENT COLUMN IF EXISTS epochs 'asked for; 0: chosen by Courier',
    COMMENT COLUMN IF EXISTS epochs_done 'in its last run',
    COMMENT COLUMN IF EXISTS accuracy 'last one told, 0 to 1',
    COMMENT COLUMN IF EXISTS started_at 'first start; NULL: never',
    COMMENT COLUMN IF EXISTS waited_seconds 'from the request to the first start',
    COMMENT COLUMN IF EXISTS ended 'nothing more is expected of it',
    COMMENT COLUMN IF EXISTS ended_at 'NULL: it has not',
    COMMENT COLUMN IF EXISTS end_reason 'why it ended, in words',
    COMMENT COLUMN IF EXISTS last_event_at 'last sign of it in the log',
    COMMENT COLUMN IF EXISTS run_seconds 'of its last run',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end',
    COMMENT COLUMN IF EXISTS met_slo 'finished within the SLO; NULL: no SLO, or not ended',
    COMMENT COLUMN IF EXISTS mean_epoch_seconds 'mean duration of its epochs',
    COMMENT COLUMN IF EXISTS io_wait_ratio
        'share of its nodes\' processors that waited for disks during its epochs, weighted by duration',
    COMMENT COLUMN IF EXISTS neighbours 'mean number of other jobs beside it during its epochs',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of its processes in its epochs',
    COMMENT COLUMN IF EXISTS memory_bytes 'largest resident memory at an epoch\'s end',
    COMMENT COLUMN IF EXISTS warned_at 'first warning that the SLO is at risk; NULL: none',
    COMMENT COLUMN IF EXISTS warned_cause
        'cause of the last warning: slow_epochs, io_wait, neighbours, late_start or regressor';

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, s.dataset AS dataset,
    if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at,
    s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability,
        if(a.job_id != '', a.threshold, s.threshold) AS threshold, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds,
        s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at,
        if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, threshold, elapsed_seconds,
    predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id)
    AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus,
    nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence
    LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch,
    max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id
    AND l.run = e.run
LEFT JOIN (SELECT job_id, run,
    argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out'
    GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size,
        s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

ALTER TABLE promises MODIFY COMMENT
    'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';
ALTER TABLE promises
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds
        'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting',
    COMMENT COLUMN IF EXISTS threshold
        'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, dataset, batch_size, cpus, nodes, duration_seconds, loss,
    accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes,
        job_written_bytes, training_samples, node_cores,
    job_io_wait_seconds, job_cpu_pressure_ratio, job_io_pressure_ratio, job_io_full_pressure_ratio,
        job_memory_pressure_ratio, job_cgroup_figures
FROM job_epoch;

ALTER TABLE epochs MODIFY COMMENT 'One line for each epoch of a job';
ALTER TABLE epochs
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS at 'its end, UTC',
    COMMENT COLUMN IF EXISTS run 'counts starts of the job from 1',
    COMMENT COLUMN IF EXISTS epoch 'its number, from 1',
    COMMENT COLUMN IF EXISTS duration_seconds 'with its validation',
    COMMENT COLUMN IF EXISTS accuracy 'on the validation set, 0 to 1',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'on its node meanwhile, this one included, time-weighted',
    COMMENT COLUMN IF EXISTS node_cpu_ratio 'busy share of the node\'s processors meanwhile',
    COMMENT COLUMN IF EXISTS node_io_wait_ratio
        'share of the node\'s processors that waited for disks meanwhile',
    COMMENT COLUMN IF EXISTS job_cpu_seconds 'CPU time of its processes',
    COMMENT COLUMN IF EXISTS job_memory_bytes 'resident memory at its end',
    COMMENT COLUMN IF EXISTS job_read_bytes 'read from storage',
    COMMENT COLUMN IF EXISTS job_written_bytes 'written to storage',
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node',
    COMMENT COLUMN IF EXISTS job_io_wait_seconds
        'that its threads waited for storage, summed; NULL: the kernel does not tell',
    COMMENT COLUMN IF EXISTS job_cpu_pressure_ratio
        'share of the time in which some task of the job waited for a CPU',
    COMMENT COLUMN IF EXISTS job_io_pressure_ratio
        'in which some task of the job waited for storage',
    COMMENT COLUMN IF EXISTS job_io_full_pressure_ratio
        'in which all of them that had work waited for storage',
    COMMENT COLUMN IF EXISTS job_memory_pressure_ratio
        'in which some task of the job waited for memory',
    COMMENT COLUMN IF EXISTS job_cgroup_figures
        'which of cpu, memory and io its cgroup told; the others are of its process tree';

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, dataset, slo_seconds, elapsed_seconds,
    epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy,
        probability, confidence, threshold, nodes, regressors
FROM job_advice;

ALTER TABLE advice MODIFY COMMENT 'One line for each advice that a job got while it waited or ran';
ALTER TABLE advice
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus',
    COMMENT COLUMN IF EXISTS message 'the advice in a sentence',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'since the request',
    COMMENT COLUMN IF EXISTS epochs_done 'so far',
    COMMENT COLUMN IF EXISTS concurrent_jobs 'assumed',
    COMMENT COLUMN IF EXISTS batch_size 'to run',
    COMMENT COLUMN IF EXISTS epochs 'that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that remain',
    COMMENT COLUMN IF EXISTS upper_bound_seconds 'that remain, with the confidence asked for',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so',
    COMMENT COLUMN IF EXISTS threshold
        'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW alternatives AS
SELECT at, job_id, 'request' AS origin, decision, model, dataset, slo_seconds,
    alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.epochs AS epochs, alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy, alternative.probability AS probability,
        alternative.reason AS reason,
    s.batch_size AS chosen_batch_size, s.predicted_accuracy AS chosen_accuracy
FROM job_submitted AS s ARRAY JOIN alternatives AS alternative
UNION ALL
SELECT at, job_id, 'advice', decision, model, dataset, slo_seconds, alternative.batch_size,
    alternative.cpus,
    alternative.epochs, alternative.predicted_seconds,
    alternative.predicted_accuracy, alternative.probability, alternative.reason,
    a.batch_size, a.predicted_accuracy
FROM job_advice AS a ARRAY JOIN alternatives AS alternative;

ALTER TABLE alternatives MODIFY COMMENT 'One line for each alternative of each answer and advice';
ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS dataset 'on which the model is trained; empty: none was named',
    COMMENT COLUMN IF EXISTS origin
        'request: of the answer to a request; advice: while it waited or ran',
    COMMENT COLUMN IF EXISTS epochs 'or those that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'NULL: not known',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS reason 'why it was chosen or lost',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'predicted, of the one that was chosen';
