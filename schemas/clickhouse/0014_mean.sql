-- The promised probability where the confidence applies to the mean of all promises.

ALTER TABLE job_submitted ADD COLUMN IF NOT EXISTS threshold Float64 DEFAULT confidence;
ALTER TABLE job_advice ADD COLUMN IF NOT EXISTS threshold Float64 DEFAULT confidence;

CREATE OR REPLACE VIEW promises AS
SELECT s.job_id AS job_id, s.user AS user, s.model AS model, if(a.job_id != '', a.decision, s.decision) AS decision, s.at AS submitted_at, s.confidence AS confidence,
    if(a.job_id != '', a.probability, s.probability) AS probability, if(a.job_id != '', a.threshold, s.threshold) AS threshold, s.slo_seconds AS slo_seconds,
    if(a.job_id != '', a.elapsed_seconds + a.predicted_seconds, s.predicted_seconds) AS predicted_seconds,
    dateDiff('nanosecond', s.at, if(l.epoch >= e.epochs AND e.epochs > 0, l.at, e.at)) / 1e9 AS response_seconds,
    toBool(e.outcome = 'finished' AND response_seconds <= s.slo_seconds) AS kept,
    if(a.job_id != '', a.batch_size, s.batch_size) AS batch_size, e.cpus AS cpus, e.nodes AS nodes,
    if(a.job_id != '', a.at, s.at) AS promised_at
FROM job_submitted AS s
LEFT JOIN (SELECT job_id, at, decision, batch_size, cpus, probability, threshold, elapsed_seconds, predicted_seconds FROM job_advice WHERE action = 'start' ORDER BY sequence LIMIT 1 BY job_id) AS a ON a.job_id = s.job_id
INNER JOIN (SELECT job_id, run, outcome, at, epochs, batch_size, cpus, nodes FROM job_ended WHERE outcome IN ('finished', 'failed') ORDER BY sequence LIMIT 1 BY job_id) AS e ON e.job_id = s.job_id
LEFT JOIN (SELECT job_id, run, max(epoch_max) AS epoch, max(last_at) AS at FROM job_run GROUP BY job_id, run) AS l ON l.job_id = s.job_id AND l.run = e.run
LEFT JOIN (SELECT job_id, run, argMin(from_batch_size, sequence) AS batch_size FROM job_moved WHERE outcome = 'carried_out' GROUP BY job_id, run) AS m ON m.job_id = s.job_id AND m.run = e.run
WHERE s.slo_seconds > 0 AND (a.job_id != '' OR s.verdict IN ('', 'admitted'))
    AND if(m.batch_size > 0, m.batch_size, e.batch_size) = if(a.job_id != '', a.batch_size, s.batch_size) AND e.cpus = if(a.job_id != '', a.cpus, s.cpus)
SETTINGS join_use_nulls = 0;

ALTER TABLE promises MODIFY COMMENT 'One line for each job with an SLO that began as advised and ended by itself: what was promised, and what came';
ALTER TABLE promises
    COMMENT COLUMN IF EXISTS decision 'meets_slo: promised; anything else is no promise',
    COMMENT COLUMN IF EXISTS confidence 'asked for, 0 to 1',
    COMMENT COLUMN IF EXISTS probability 'of keeping the SLO, as promised, 0 to 1',
    COMMENT COLUMN IF EXISTS predicted_seconds 'from the request to the end, as promised',
    COMMENT COLUMN IF EXISTS response_seconds 'from the request to the end of the last epoch, as measured',
    COMMENT COLUMN IF EXISTS kept 'finished within the SLO',
    COMMENT COLUMN IF EXISTS batch_size 'as promised',
    COMMENT COLUMN IF EXISTS promised_at 'of the answer, or of the advice that ended its waiting',
    COMMENT COLUMN IF EXISTS threshold 'least probability that was promised then: the confidence, or less where that is the mean of all promises';

CREATE OR REPLACE VIEW advice AS
SELECT at, job_id, decision, action, message, model, slo_seconds, elapsed_seconds, epochs_done, concurrent_jobs,
    batch_size, cpus, epochs, predicted_seconds, upper_bound_seconds, predicted_accuracy, probability, confidence, threshold, nodes, regressors
FROM job_advice;

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
    COMMENT COLUMN IF EXISTS regressors 'target to digest of the regressor that said so',
    COMMENT COLUMN IF EXISTS threshold 'least probability that was promised then: the confidence, or less where that is the mean of all promises';
