-- One row per event of a regressor: trained, promoted, rejected, or drift. A value that the event
-- does not have is NULL, or '' for text. A rejection has the examples and the error of its fit.
CREATE VIEW IF NOT EXISTS regressor_life AS
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
SELECT at, target, 'drift', model_digest, '', NULL, NULL,
    NULL, NULL, NULL, '', message, '',
    NULL, NULL, NULL,
    NULL, NULL, NULL, NULL,
    NULL, NULL, toNullable(ratio), multiIf(scope = 'node', node, scope = 'model', model, 'all'), event_id, sequence
FROM regressor_drift;
