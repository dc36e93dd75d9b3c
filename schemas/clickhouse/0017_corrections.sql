-- Drift corrections: their scope, ratio and state. The end of a correction is a row of its own.

ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS state LowCardinality(String);
ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS dataset LowCardinality(String) AFTER model;
ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS node_type LowCardinality(String);
ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS batch_size_from UInt32;
ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS batch_size_to UInt32;
ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS ratio_low Nullable(Float64);
ALTER TABLE regressor_drift ADD COLUMN IF NOT EXISTS ratio_high Nullable(Float64);

CREATE OR REPLACE VIEW drifts AS
SELECT at, target, model_digest, state, scope,
    concat(multiIf(scope = 'node', node, scope = 'model', model, scope = 'node_type', node_type, 'all'),
        if(scope = 'model' AND dataset != '', concat(' on ', dataset), ''),
        if(scope = 'model' AND node_type != '', concat(' on ', node_type), ''),
        if(batch_size_from > 0, concat(', batch size from ', toString(batch_size_from)), ''),
        if(batch_size_to > 0, concat(', batch size to ', toString(batch_size_to)), '')) AS drifted,
    since_at, ratio, ratio_low, ratio_high, before_ratio, jobs, rest_ratio, rest_jobs,
    coverage_ratio, known_changes, message
FROM regressor_drift;

ALTER TABLE drifts MODIFY COMMENT 'One line for each alarm that jobs no longer are as predicted, and for what becomes of each correction';
ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS state 'of a correction: active, replaced (a fit has learned it) or withdrawn; empty: an alarm',
    COMMENT COLUMN IF EXISTS scope 'all, node, node_type or model',
    COMMENT COLUMN IF EXISTS drifted 'the node, the type of nodes or the model, with its batch sizes, or all',
    COMMENT COLUMN IF EXISTS since_at 'begin of the first job that shows it',
    COMMENT COLUMN IF EXISTS ratio 'measured / predicted since then; 1 when a correction ends',
    COMMENT COLUMN IF EXISTS ratio_low 'least of its 95 % interval',
    COMMENT COLUMN IF EXISTS ratio_high 'most of its 95 % interval',
    COMMENT COLUMN IF EXISTS before_ratio 'what that was before',
    COMMENT COLUMN IF EXISTS jobs 'of what drifted, since then',
    COMMENT COLUMN IF EXISTS rest_ratio 'measured / predicted of all other jobs',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of epochs within the bound since then',
    COMMENT COLUMN IF EXISTS known_changes 'what else changed then';

-- The view regressor_life has the same columns. Only the begin or change of a correction counts as
-- a drift.
CREATE OR REPLACE VIEW regressor_life AS
SELECT at, target, 'trained' AS kind, model_digest, family, toNullable(examples) AS examples, toNullable(settings) AS settings,
    toNullable(median_absolute_ratio) AS median_absolute_ratio, r2, toNullable(fit_seconds) AS fit_seconds, '' AS decided_by, reason, rival,
    NULL::Nullable(UInt32) AS judged_jobs, NULL::Nullable(UInt32) AS judged_settings, NULL::Nullable(Float64) AS judged_level,
    NULL::Nullable(Float64) AS loss, NULL::Nullable(Float64) AS rival_loss, NULL::Nullable(Float64) AS loss_difference_low, NULL::Nullable(Float64) AS loss_difference_high,
    NULL::Nullable(Float64) AS coverage_ratio, NULL::Nullable(Float64) AS rival_coverage_ratio, NULL::Nullable(Float64) AS drift_ratio, '' AS drifted, event_id, sequence
FROM regressor_trained
UNION ALL
SELECT at, target, 'promoted', model_digest, family, toNullable(examples), toNullable(settings),
    toNullable(median_absolute_ratio), r2, toNullable(fit_seconds), decided_by, reason, rival,
    nullIf(judged_jobs, 0), nullIf(judged_settings, 0), nullIf(judged_level, 0),
    loss, rival_loss, loss_difference_low, loss_difference_high,
    coverage_ratio, rival_coverage_ratio, NULL, '', event_id, sequence
FROM regressor_promoted
UNION ALL
SELECT e.at, e.target, 'rejected', e.model_digest, ifNull(f.family, ''), if(f.event_id = '', NULL, f.examples), if(f.event_id = '', NULL, f.settings),
    if(f.event_id = '', NULL, f.median_absolute_ratio), f.r2, if(f.event_id = '', NULL, f.fit_seconds), '', e.reason, e.rival,
    nullIf(e.judged_jobs, 0), nullIf(e.judged_settings, 0), nullIf(e.judged_level, 0),
    e.loss, e.rival_loss, e.loss_difference_low, e.loss_difference_high,
    e.coverage_ratio, e.rival_coverage_ratio, NULL, '', e.event_id, e.sequence
FROM regressor_rejected AS e
LEFT JOIN (SELECT * FROM regressor_trained ORDER BY sequence DESC LIMIT 1 BY target, model_digest) AS f ON f.target = e.target AND f.model_digest = e.model_digest
SETTINGS join_use_nulls = 0
UNION ALL
SELECT at, target, if(state IN ('replaced', 'withdrawn'), 'drift_end', 'drift'), model_digest, '', NULL, NULL,
    NULL, NULL, NULL, '', message, '',
    NULL, NULL, NULL,
    NULL, NULL, NULL, NULL,
    NULL, NULL, toNullable(ratio),
    concat(multiIf(scope = 'node', node, scope = 'model', model, scope = 'node_type', node_type, 'all'),
        if(scope = 'model' AND dataset != '', concat(' on ', dataset), ''),
        if(scope = 'model' AND node_type != '', concat(' on ', node_type), ''),
        if(batch_size_from > 0, concat(', batch size from ', toString(batch_size_from)), ''),
        if(batch_size_to > 0, concat(', batch size to ', toString(batch_size_to)), '')), event_id, sequence
FROM regressor_drift;

ALTER TABLE regressor_life MODIFY COMMENT 'One line for each event of a regressor';
ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected, drift or drift_end',
    COMMENT COLUMN IF EXISTS median_absolute_ratio 'median of |error| / truth, out of fold',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS rival 'digest of what it was judged against',
    COMMENT COLUMN IF EXISTS judged_jobs 'it was judged on',
    COMMENT COLUMN IF EXISTS loss 'pinball loss on those jobs',
    COMMENT COLUMN IF EXISTS rival_loss 'of its rival on the same',
    COMMENT COLUMN IF EXISTS coverage_ratio 'share of judged jobs within its bound',
    COMMENT COLUMN IF EXISTS drift_ratio 'measured / predicted',
    COMMENT COLUMN IF EXISTS drifted 'the node, the type of nodes or the model, with its batch sizes, or all';

CREATE OR REPLACE VIEW regressors AS
SELECT l.target AS target, l.model_digest AS model_digest,
    multiIf(l.model_digest = c.model_digest, 'in_use', countIf(l.kind = 'promoted') > 0, 'former', countIf(l.kind = 'rejected') > 0, 'rejected', 'challenger') AS state,
    argMaxIf(l.family, l.sequence, l.family != '') AS family, if(countIf(l.kind IN ('trained', 'promoted')) > 0, minIf(l.at, l.kind IN ('trained', 'promoted')), NULL) AS trained_at,
    if(countIf(l.kind = 'promoted') > 0, maxIf(l.at, l.kind = 'promoted'), NULL) AS promoted_at, countIf(l.kind = 'promoted') AS promotions,
    argMax(l.examples, l.sequence) AS examples, argMax(l.settings, l.sequence) AS settings, argMax(l.median_absolute_ratio, l.sequence) AS median_absolute_ratio,
    argMax(l.coverage_ratio, l.sequence) AS coverage_ratio, argMax(l.judged_jobs, l.sequence) AS judged_jobs,
    countIf(l.kind = 'drift') AS drifts, argMaxIf(l.decided_by, l.sequence, l.decided_by != '') AS decided_by,
    argMaxIf(l.reason, l.sequence, l.kind NOT IN ('drift', 'drift_end')) AS reason
FROM regressor_life AS l
LEFT JOIN (SELECT target, argMax(model_digest, sequence) AS model_digest FROM regressor_promoted GROUP BY target) AS c ON c.target = l.target
GROUP BY l.target, l.model_digest, c.model_digest HAVING countIf(l.kind NOT IN ('drift', 'drift_end')) > 0
SETTINGS join_use_nulls = 0;

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
    COMMENT COLUMN IF EXISTS drifts 'alarms and corrections while it was in use',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request',
    COMMENT COLUMN IF EXISTS reason 'of what was last decided';
