-- Roll-ups for common queries, and views with descriptions of their columns.
--
-- Stop stores of the previous version while this runs: they do not know the roll-ups that it adds,
-- and would repeat a batch without repairing them.

-- Node samples: each for 90 days, minutes for 400 days, hours for five years.

ALTER TABLE node_minute ADD COLUMN IF NOT EXISTS cores SimpleAggregateFunction(max, UInt32);
ALTER TABLE node_minute MODIFY TTL minute + INTERVAL 400 DAY;

-- Filled by inserts into the minutes. For repeated batches see store/rollup.go.
CREATE TABLE IF NOT EXISTS node_hour (
    node LowCardinality(String),
    hour DateTime('UTC'),
    samples SimpleAggregateFunction(sum, UInt64),
    cpu_ratio AggregateFunction(avg, Nullable(Float64)),
    cpu_ratio_max SimpleAggregateFunction(max, Nullable(Float64)),
    io_wait_ratio AggregateFunction(avg, Nullable(Float64)),
    load_average AggregateFunction(avg, Nullable(Float64)),
    cores SimpleAggregateFunction(max, UInt32)
) ENGINE = AggregatingMergeTree ORDER BY (node, hour)
TTL hour + INTERVAL 5 YEAR
SETTINGS non_replicated_deduplication_window = 1000;

-- Existing minutes. The deduplication token makes the insert happen once; no other process inserts
-- minutes meanwhile.
INSERT INTO node_hour SETTINGS insert_deduplication_token = '0012/node_hour', max_threads = 1
SELECT m.node AS node, toStartOfHour(m.minute) AS hour, sum(m.samples) AS samples,
    avgMergeState(m.cpu_ratio) AS cpu_ratio, max(m.cpu_ratio_max) AS cpu_ratio_max,
    avgMergeState(m.io_wait_ratio) AS io_wait_ratio, avgMergeState(m.load_average) AS load_average, max(m.cores) AS cores
FROM node_minute AS m GROUP BY node, hour ORDER BY node, hour;

CREATE MATERIALIZED VIEW IF NOT EXISTS node_hour_view TO node_hour AS
SELECT m.node AS node, toStartOfHour(m.minute) AS hour, sum(m.samples) AS samples,
    avgMergeState(m.cpu_ratio) AS cpu_ratio, max(m.cpu_ratio_max) AS cpu_ratio_max,
    avgMergeState(m.io_wait_ratio) AS io_wait_ratio, avgMergeState(m.load_average) AS load_average, max(m.cores) AS cores
FROM node_minute AS m GROUP BY node, hour;

ALTER TABLE node_minute_view MODIFY QUERY
SELECT s.node AS node, toStartOfMinute(s.at) AS minute, toUInt64(count()) AS samples,
    avgState(s.cpu_ratio) AS cpu_ratio, max(s.cpu_ratio) AS cpu_ratio_max,
    avgState(s.io_wait_ratio) AS io_wait_ratio, avgState(s.load_average) AS load_average, max(s.cores) AS cores
FROM node_sample AS s GROUP BY node, minute;

-- Aggregates of the epochs of a run, so that the view of jobs does not read epochs. Shares are
-- stored as seconds of an epoch's duration, which can be summed, together with the seconds of the
-- epochs in which they were measured.
CREATE TABLE IF NOT EXISTS job_run (
    job_id String,
    run UInt32,
    sequence SimpleAggregateFunction(max, UInt64),
    last_at SimpleAggregateFunction(max, DateTime64(9, 'UTC')),
    epochs SimpleAggregateFunction(sum, UInt64),
    epoch_max SimpleAggregateFunction(max, UInt32),
    epoch AggregateFunction(argMax, UInt32, UInt64),
    batch_size AggregateFunction(argMax, UInt32, UInt64),
    cpus AggregateFunction(argMax, UInt32, UInt64),
    accuracy AggregateFunction(argMax, Nullable(Float64), UInt64),
    epoch_seconds SimpleAggregateFunction(sum, Float64),
    io_wait_seconds SimpleAggregateFunction(sum, Float64),
    io_wait_of_seconds SimpleAggregateFunction(sum, Float64),
    concurrent_job_seconds SimpleAggregateFunction(sum, Float64),
    concurrent_of_seconds SimpleAggregateFunction(sum, Float64),
    job_cpu_seconds SimpleAggregateFunction(sum, Nullable(Float64)),
    job_memory_bytes SimpleAggregateFunction(max, Nullable(Float64))
) ENGINE = AggregatingMergeTree ORDER BY (job_id, run)
SETTINGS non_replicated_deduplication_window = 1000;

INSERT INTO job_run SETTINGS insert_deduplication_token = '0012/job_run', max_threads = 1
SELECT e.job_id AS job_id, e.run AS run, max(e.sequence) AS sequence, max(e.at) AS last_at, toUInt64(count()) AS epochs, max(e.epoch) AS epoch_max,
    argMaxState(e.epoch, e.sequence) AS epoch, argMaxState(e.batch_size, e.sequence) AS batch_size, argMaxState(e.cpus, e.sequence) AS cpus,
    argMaxState(e.accuracy, e.sequence) AS accuracy, sum(e.duration_seconds) AS epoch_seconds,
    sum(ifNull(e.node_io_wait_ratio, 0) * e.duration_seconds) AS io_wait_seconds, sumIf(e.duration_seconds, e.node_io_wait_ratio IS NOT NULL) AS io_wait_of_seconds,
    sum(ifNull(e.concurrent_jobs, 0) * e.duration_seconds) AS concurrent_job_seconds, sumIf(e.duration_seconds, e.concurrent_jobs IS NOT NULL) AS concurrent_of_seconds,
    sum(e.job_cpu_seconds) AS job_cpu_seconds, max(e.job_memory_bytes) AS job_memory_bytes
FROM job_epoch AS e GROUP BY job_id, run ORDER BY job_id, run;

CREATE MATERIALIZED VIEW IF NOT EXISTS job_run_view TO job_run AS
SELECT e.job_id AS job_id, e.run AS run, max(e.sequence) AS sequence, max(e.at) AS last_at, toUInt64(count()) AS epochs, max(e.epoch) AS epoch_max,
    argMaxState(e.epoch, e.sequence) AS epoch, argMaxState(e.batch_size, e.sequence) AS batch_size, argMaxState(e.cpus, e.sequence) AS cpus,
    argMaxState(e.accuracy, e.sequence) AS accuracy, sum(e.duration_seconds) AS epoch_seconds,
    sum(ifNull(e.node_io_wait_ratio, 0) * e.duration_seconds) AS io_wait_seconds, sumIf(e.duration_seconds, e.node_io_wait_ratio IS NOT NULL) AS io_wait_of_seconds,
    sum(ifNull(e.concurrent_jobs, 0) * e.duration_seconds) AS concurrent_job_seconds, sumIf(e.duration_seconds, e.concurrent_jobs IS NOT NULL) AS concurrent_of_seconds,
    sum(e.job_cpu_seconds) AS job_cpu_seconds, max(e.job_memory_bytes) AS job_memory_bytes
FROM job_epoch AS e GROUP BY job_id, run;

-- One row per submitted job. An end is valid until the next start, and "lost" only until the job's
-- next event.
CREATE OR REPLACE VIEW jobs AS
SELECT s.job_id AS job_id, s.model AS model, s.user AS user, s.at AS submitted_at, s.slo_seconds AS slo_seconds, s.confidence AS confidence, s.decision AS decision,
    s.batch_size AS advised_batch_size, s.predicted_seconds AS predicted_seconds, s.predicted_accuracy AS predicted_accuracy, s.probability AS probability,
    multiIf(e.job_id != '' AND e.run >= p.run AND (e.outcome != 'lost' OR e.sequence > p.sequence), e.outcome, p.run > 0, 'running',
        s.verdict = 'refused', 'refused', s.verdict = 'queued' AND a.job_id = '', 'queued', 'submitted') AS state,
    p.run AS run, if(p.started_nodes != '', splitByChar(',', p.started_nodes), CAST(s.nodes, 'Array(String)')) AS nodes, p.batch_size AS batch_size, p.cpus AS cpus, s.epochs AS epochs, p.epochs_done AS epochs_done, p.accuracy AS accuracy,
    if(p.run > 0, p.first_started_at, NULL) AS started_at, if(p.run > 0, dateDiff('nanosecond', s.at, p.first_started_at) / 1e9, NULL) AS waited_seconds,
    toBool(state NOT IN ('submitted', 'queued', 'refused', 'running')) AS ended,
    if(ended, e.at, NULL) AS ended_at, if(ended, e.reason, '') AS end_reason,
    greatest(s.at, p.last_at, if(ended, e.at, s.at)) AS last_event_at,
    if(ended, e.duration_seconds, NULL) AS run_seconds,
    if(ended, dateDiff('nanosecond', s.at, e.at) / 1e9, NULL) AS response_seconds,
    if(ended AND s.slo_seconds > 0, toBool(state = 'finished' AND response_seconds <= s.slo_seconds), NULL) AS met_slo,
    if(p.epochs > 0, p.epoch_seconds / p.epochs, NULL) AS mean_epoch_seconds,
    if(p.io_wait_of_seconds > 0, p.io_wait_seconds / p.io_wait_of_seconds, NULL) AS io_wait_ratio,
    if(p.concurrent_of_seconds > 0, p.concurrent_job_seconds / p.concurrent_of_seconds - 1, NULL) AS neighbours,
    p.job_cpu_seconds AS cpu_seconds, p.job_memory_bytes AS memory_bytes,
    if(w.job_id != '', w.warned_at, NULL) AS warned_at, w.cause AS warned_cause
FROM job_submitted AS s
LEFT JOIN (
    SELECT l.job_id AS job_id, max(l.run) AS run, max(l.sequence) AS sequence, max(l.at) AS last_at, min(l.started_at) AS first_started_at, argMaxIf(l.started_nodes, l.run, l.started_nodes != '') AS started_nodes,
        argMax(l.batch_size, l.sequence) AS batch_size, argMax(l.cpus, l.sequence) AS cpus, argMax(l.epoch, (l.run, l.sequence)) AS epochs_done, argMax(l.accuracy, l.sequence) AS accuracy,
        sum(l.epochs) AS epochs, sum(l.epoch_seconds) AS epoch_seconds, sum(l.io_wait_seconds) AS io_wait_seconds, sum(l.io_wait_of_seconds) AS io_wait_of_seconds,
        sum(l.concurrent_job_seconds) AS concurrent_job_seconds, sum(l.concurrent_of_seconds) AS concurrent_of_seconds, sum(l.job_cpu_seconds) AS job_cpu_seconds, max(l.job_memory_bytes) AS job_memory_bytes
    FROM (
        SELECT job_id, run, sequence, at, at AS started_at, arrayStringConcat(nodes, ',') AS started_nodes, batch_size, cpus, 0 AS epoch, NULL AS accuracy, 0 AS epochs, 0. AS epoch_seconds,
            0. AS io_wait_seconds, 0. AS io_wait_of_seconds, 0. AS concurrent_job_seconds, 0. AS concurrent_of_seconds, NULL AS job_cpu_seconds, NULL AS job_memory_bytes
        FROM job_started
        UNION ALL
        SELECT r.job_id, r.run, max(r.sequence), max(r.last_at), max(r.last_at), '', argMaxMerge(r.batch_size), argMaxMerge(r.cpus), argMaxMerge(r.epoch), argMaxMerge(r.accuracy), sum(r.epochs), sum(r.epoch_seconds),
            sum(r.io_wait_seconds), sum(r.io_wait_of_seconds), sum(r.concurrent_job_seconds), sum(r.concurrent_of_seconds), sum(r.job_cpu_seconds), max(r.job_memory_bytes)
        FROM job_run AS r GROUP BY r.job_id, r.run
    ) AS l GROUP BY job_id
) AS p ON p.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, outcome, reason, sequence, at, duration_seconds FROM job_ended ORDER BY sequence DESC LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT DISTINCT job_id FROM job_advice WHERE action = 'start') AS a ON a.job_id = s.job_id
LEFT JOIN (SELECT job_id, min(at) AS warned_at, argMax(cause, sequence) AS cause FROM job_risk WHERE NOT cleared GROUP BY job_id) AS w ON w.job_id = s.job_id
SETTINGS join_use_nulls = 0;

-- A promise is the answer to a request, or the advice that ended the job's queueing time. One row
-- per promise whose job started as advised and ended by itself, with the promised and the measured
-- values. A job that Courier moved to another batch size keeps its promise. The SLO applies from
-- the request to the end of the last epoch.
CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at, s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds, s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at, if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, elapsed_seconds, predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id) AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus, nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch, max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id AND l.run = e.run
LEFT JOIN (SELECT job_id, run, argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out' GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size, s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

CREATE OR REPLACE VIEW epochs AS
SELECT at, job_id, run, epoch, model, batch_size, cpus, nodes, duration_seconds, loss, accuracy, concurrent_jobs,
    node_cpu_ratio, node_io_wait_ratio, job_cpu_seconds, job_memory_bytes, job_read_bytes, job_written_bytes, training_samples, node_cores
FROM job_epoch;

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, slo_seconds, elapsed_seconds, epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability, confidence, nodes, regressors
FROM job_advice;

CREATE OR REPLACE VIEW alternatives AS
SELECT at, job_id, 'request' AS origin, decision, model, slo_seconds, alternative.batch_size AS batch_size, alternative.cpus AS cpus,
    alternative.epochs AS epochs, alternative.predicted_seconds AS predicted_seconds,
    alternative.predicted_accuracy AS predicted_accuracy, alternative.probability AS probability, alternative.reason AS reason,
    s.batch_size AS chosen_batch_size, s.predicted_accuracy AS chosen_accuracy
FROM job_submitted AS s ARRAY JOIN alternatives AS alternative
UNION ALL
SELECT at, job_id, 'advice', decision, model, slo_seconds, alternative.batch_size, alternative.cpus,
    alternative.epochs, alternative.predicted_seconds,
    alternative.predicted_accuracy, alternative.probability, alternative.reason,
    a.batch_size, a.predicted_accuracy
FROM job_advice AS a ARRAY JOIN alternatives AS alternative;

CREATE VIEW IF NOT EXISTS warnings AS
SELECT at, job_id, run, cleared, cause, probability, confidence, predicted_seconds, left_seconds, action, batch_size, saved_probability, accuracy_loss, message
FROM job_risk;

CREATE VIEW IF NOT EXISTS moves AS
SELECT at, job_id, run, move, outcome, means, from_batch_size, to_batch_size, epoch, before_epoch_seconds, predicted_epoch_seconds, unmoved_epoch_seconds, after_epoch_seconds,
    epochs_measured, gain_ratio, reason
FROM job_moved;

CREATE VIEW IF NOT EXISTS drifts AS
SELECT at, target, model_digest, scope, multiIf(scope = 'node', node, scope = 'model', model, 'all') AS drifted, since_at, ratio, before_ratio, jobs, rest_ratio, rest_jobs,
    coverage_ratio, known_changes, message
FROM regressor_drift;

CREATE OR REPLACE VIEW node_load AS
SELECT m.node AS node, m.minute AS minute, sum(m.samples) AS samples, avgMerge(m.cpu_ratio) AS cpu_ratio,
    max(m.cpu_ratio_max) AS cpu_ratio_max, avgMerge(m.io_wait_ratio) AS io_wait_ratio, avgMerge(m.load_average) AS load_average, nullIf(max(m.cores), 0) AS cores
FROM node_minute AS m GROUP BY node, minute;

CREATE VIEW IF NOT EXISTS node_load_hourly AS
SELECT h.node AS node, h.hour AS hour, sum(h.samples) AS samples, avgMerge(h.cpu_ratio) AS cpu_ratio,
    max(h.cpu_ratio_max) AS cpu_ratio_max, avgMerge(h.io_wait_ratio) AS io_wait_ratio, avgMerge(h.load_average) AS load_average, nullIf(max(h.cores), 0) AS cores
FROM node_hour AS h GROUP BY node, hour;

-- One row per fitted regressor.
CREATE VIEW IF NOT EXISTS regressors AS
SELECT l.target AS target, l.model_digest AS model_digest,
    multiIf(l.model_digest = c.model_digest, 'in_use', countIf(l.kind = 'promoted') > 0, 'former', countIf(l.kind = 'rejected') > 0, 'rejected', 'challenger') AS state,
    argMaxIf(l.family, l.sequence, l.family != '') AS family, if(countIf(l.kind IN ('trained', 'promoted')) > 0, minIf(l.at, l.kind IN ('trained', 'promoted')), NULL) AS trained_at,
    if(countIf(l.kind = 'promoted') > 0, maxIf(l.at, l.kind = 'promoted'), NULL) AS promoted_at, countIf(l.kind = 'promoted') AS promotions,
    argMax(l.examples, l.sequence) AS examples, argMax(l.settings, l.sequence) AS settings, argMax(l.median_absolute_ratio, l.sequence) AS median_absolute_ratio,
    argMax(l.coverage_ratio, l.sequence) AS coverage_ratio, argMax(l.judged_jobs, l.sequence) AS judged_jobs,
    countIf(l.kind = 'drift') AS drifts, argMaxIf(l.decided_by, l.sequence, l.decided_by != '') AS decided_by, argMaxIf(l.reason, l.sequence, l.kind != 'drift') AS reason
FROM regressor_life AS l
LEFT JOIN (SELECT target, argMax(model_digest, sequence) AS model_digest FROM regressor_promoted GROUP BY target) AS c ON c.target = l.target
GROUP BY l.target, l.model_digest, c.model_digest HAVING countIf(l.kind != 'drift') > 0
SETTINGS join_use_nulls = 0;

-- Descriptions of the views and their columns, which DESCRIBE prints.

ALTER TABLE jobs MODIFY COMMENT 'One line for each submitted job';
ALTER TABLE jobs
    COMMENT COLUMN IF EXISTS job_id 'its name',
    COMMENT COLUMN IF EXISTS model 'what is trained',
    COMMENT COLUMN IF EXISTS user 'who submitted it',
    COMMENT COLUMN IF EXISTS submitted_at 'UTC; the SLO counts from here',
    COMMENT COLUMN IF EXISTS slo_seconds '0: it has none',
    COMMENT COLUMN IF EXISTS confidence 'of keeping the SLO, as asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted',
    COMMENT COLUMN IF EXISTS advised_batch_size '0: none was advised',
    COMMENT COLUMN IF EXISTS predicted_seconds 'start-up and all epochs, as answered',
    COMMENT COLUMN IF EXISTS predicted_accuracy '0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as answered, 0 to 1',
    COMMENT COLUMN IF EXISTS state 'submitted, queued, refused, running, finished, failed, cancelled or lost',
    COMMENT COLUMN IF EXISTS run 'how often it was started',
    COMMENT COLUMN IF EXISTS nodes 'where it runs, or was advised to',
    COMMENT COLUMN IF EXISTS batch_size 'with which it trains, or trained last; 0: it never started',
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
    COMMENT COLUMN IF EXISTS io_wait_ratio 'share of its nodes\' processors that waited for disks during its epochs, weighted by duration',
    COMMENT COLUMN IF EXISTS neighbours 'mean number of other jobs beside it during its epochs',
    COMMENT COLUMN IF EXISTS cpu_seconds 'CPU time of its processes in its epochs',
    COMMENT COLUMN IF EXISTS memory_bytes 'largest resident memory at an epoch\'s end',
    COMMENT COLUMN IF EXISTS warned_at 'first warning that the SLO is at risk; NULL: none',
    COMMENT COLUMN IF EXISTS warned_cause 'cause of the last warning: slow_epochs, io_wait, neighbours, late_start or regressor';

ALTER TABLE promises MODIFY COMMENT 'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';
ALTER TABLE promises
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting';

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
    COMMENT COLUMN IF EXISTS node_cores 'logical processors of its node';

ALTER TABLE advice MODIFY COMMENT 'One line for each advice that a job got while it waited or ran';
ALTER TABLE advice
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
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so';

ALTER TABLE alternatives MODIFY COMMENT 'One line for each alternative of each answer and advice';
ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS origin 'request: of the answer to a request; advice: while it waited or ran',
    COMMENT COLUMN IF EXISTS epochs 'or those that remain',
    COMMENT COLUMN IF EXISTS predicted_seconds 'NULL: not known',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, 0 to 1',
    COMMENT COLUMN IF EXISTS reason 'why it was chosen or lost',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'predicted, of the one that was chosen';

ALTER TABLE warnings MODIFY COMMENT 'One line for each warning that an SLO is at risk, and each all-clear';
ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS cleared 'all clear',
    COMMENT COLUMN IF EXISTS cause 'slow_epochs, io_wait, neighbours, late_start or regressor',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO as it runs',
    COMMENT COLUMN IF EXISTS predicted_seconds 'that it still takes',
    COMMENT COLUMN IF EXISTS left_seconds 'that the SLO leaves; negative: it is over',
    COMMENT COLUMN IF EXISTS action 'what saves it',
    COMMENT COLUMN IF EXISTS saved_probability 'of keeping the SLO then',
    COMMENT COLUMN IF EXISTS accuracy_loss 'what that costs; negative is a gain';

ALTER TABLE moves MODIFY COMMENT 'One line for each step of a move of a running job';
ALTER TABLE moves
    COMMENT COLUMN IF EXISTS outcome 'carried_out, kept, undone or refused',
    COMMENT COLUMN IF EXISTS means 'control: between epochs; restart: started again',
    COMMENT COLUMN IF EXISTS epoch 'the first with the new batch size; 0: none',
    COMMENT COLUMN IF EXISTS before_epoch_seconds 'measured before',
    COMMENT COLUMN IF EXISTS predicted_epoch_seconds 'with the move',
    COMMENT COLUMN IF EXISTS unmoved_epoch_seconds 'predicted without it',
    COMMENT COLUMN IF EXISTS after_epoch_seconds 'measured after',
    COMMENT COLUMN IF EXISTS gain_ratio 'measured gain / predicted gain',
    COMMENT COLUMN IF EXISTS reason 'why it was refused or undone';

ALTER TABLE drifts MODIFY COMMENT 'One line for each alarm that jobs no longer are as predicted';
ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS scope 'all, node or model',
    COMMENT COLUMN IF EXISTS drifted 'the node or model, or all',
    COMMENT COLUMN IF EXISTS since_at 'begin of the first job that shows it',
    COMMENT COLUMN IF EXISTS ratio 'measured / predicted since then',
    COMMENT COLUMN IF EXISTS before_ratio 'what that was before',
    COMMENT COLUMN IF EXISTS jobs 'of what drifted, since then',
    COMMENT COLUMN IF EXISTS rest_ratio 'measured / predicted of all other jobs',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of epochs within the bound since then',
    COMMENT COLUMN IF EXISTS known_changes 'what else changed then';

ALTER TABLE node_load MODIFY COMMENT 'One line for each node and minute, kept for 400 days';
ALTER TABLE node_load
    COMMENT COLUMN IF EXISTS minute 'its begin, UTC',
    COMMENT COLUMN IF EXISTS samples 'that came',
    COMMENT COLUMN IF EXISTS cpu_ratio 'mean busy share of the processors, 0 to 1',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'busiest sample',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'mean share of the processors that waited for disks',
    COMMENT COLUMN IF EXISTS load_average 'mean',
    COMMENT COLUMN IF EXISTS cores 'logical processors; NULL: not told';

ALTER TABLE node_load_hourly MODIFY COMMENT 'One line for each node and hour, kept for five years';
ALTER TABLE node_load_hourly
    COMMENT COLUMN IF EXISTS hour 'its begin, UTC',
    COMMENT COLUMN IF EXISTS samples 'that came',
    COMMENT COLUMN IF EXISTS cpu_ratio 'mean busy share of the processors, 0 to 1',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'busiest sample',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'mean share of the processors that waited for disks',
    COMMENT COLUMN IF EXISTS load_average 'mean',
    COMMENT COLUMN IF EXISTS cores 'logical processors; NULL: not told';

ALTER TABLE regressors MODIFY COMMENT 'One line for each regressor that was fitted for a target';
ALTER TABLE regressors
    COMMENT COLUMN IF EXISTS target 'epoch_time, startup_time or accuracy',
    COMMENT COLUMN IF EXISTS model_digest 'sha256; what courier regressor show takes',
    COMMENT COLUMN IF EXISTS state 'in_use, former, rejected or challenger',
    COMMENT COLUMN IF EXISTS trained_at 'NULL: nobody told',
    COMMENT COLUMN IF EXISTS promoted_at 'last time that it was put in use',
    COMMENT COLUMN IF EXISTS promotions 'how often',
    COMMENT COLUMN IF EXISTS examples 'it was fitted on',
    COMMENT COLUMN IF EXISTS settings 'distinct ones among them',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS drifts 'alarms while it was in use',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS reason 'of what was last decided';

ALTER TABLE regressor_life MODIFY COMMENT 'One line for each event of a regressor';
ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected or drift',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS rival 'digest of what it was judged against',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS loss 'pinball loss on those jobs',
    COMMENT COLUMN IF EXISTS rival_loss 'of its rival on the same',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS drift_ratio 'measured / predicted',
    COMMENT COLUMN IF EXISTS drifted 'the node or model, or all';
