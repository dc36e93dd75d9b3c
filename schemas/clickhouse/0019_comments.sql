-- Comments of views in plain words, one for each column.

ALTER TABLE advice MODIFY COMMENT
    'One row for each advice for a waiting or running job.';
ALTER TABLE advice
    COMMENT COLUMN IF EXISTS at 'Time of the advice, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS decision 'meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS action 'start, keep, change_batch_size or change_cpus.',
    COMMENT COLUMN IF EXISTS message 'The advice in a sentence.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS elapsed_seconds 'Time since the submission.',
    COMMENT COLUMN IF EXISTS epochs_done 'Epochs that had ended.',
    COMMENT COLUMN IF EXISTS concurrent_jobs
        'Jobs on the node, this one included, that the prediction assumed.',
    COMMENT COLUMN IF EXISTS batch_size 'Advised batch size.',
    COMMENT COLUMN IF EXISTS cpus 'Advised number of processes.',
    COMMENT COLUMN IF EXISTS epochs 'Remaining epochs.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time until the end.',
    COMMENT COLUMN IF EXISTS upper_bound_seconds
        'Upper bound of the time until the end, at the confidence.',
    COMMENT COLUMN IF EXISTS predicted_accuracy 'Predicted accuracy at the end, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS threshold
        'Minimum probability of a promise: the confidence, or less if it applies to the mean of all promises.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS regressors 'Digest of the regressor for each target.';

ALTER TABLE alternatives MODIFY COMMENT
    'One row for each alternative of each advice, including the answer to the request.';
ALTER TABLE alternatives
    COMMENT COLUMN IF EXISTS at 'Time of the advice, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS origin
        'request: the answer to a request; advice: a later one for a waiting or running job.',
    COMMENT COLUMN IF EXISTS decision
        'Decision of the advice: meets_slo, best_effort, exploring or weighted.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the alternative.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the alternative.',
    COMMENT COLUMN IF EXISTS epochs
        'Epochs of the alternative; of a running job, the remaining ones.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS predicted_accuracy
        'Predicted accuracy, 0 to 1; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS reason 'Reason why the alternative was or was not chosen.',
    COMMENT COLUMN IF EXISTS chosen_batch_size 'Batch size of the chosen alternative.',
    COMMENT COLUMN IF EXISTS chosen_accuracy 'Predicted accuracy of the chosen alternative.';

ALTER TABLE drifts MODIFY COMMENT
    'One row for each drift alarm and for each change of a correction.';
ALTER TABLE drifts
    COMMENT COLUMN IF EXISTS at 'Time of the event, UTC.',
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS model_digest 'SHA-256 of the regressor that was in use.',
    COMMENT COLUMN IF EXISTS state
        'State of a correction: active, replaced (by a fit) or withdrawn; empty for an alarm.',
    COMMENT COLUMN IF EXISTS scope 'all, node, node_type or model.',
    COMMENT COLUMN IF EXISTS drifted
        'Node, node type or model (with its batch sizes) that drifted, or all.',
    COMMENT COLUMN IF EXISTS since_at 'Start of the first job that shows the drift, UTC.',
    COMMENT COLUMN IF EXISTS ratio
        'Measured / predicted time since then; 1 when a correction ends.',
    COMMENT COLUMN IF EXISTS ratio_low 'Lower end of the 95 % interval of the ratio.',
    COMMENT COLUMN IF EXISTS ratio_high 'Upper end of the 95 % interval of the ratio.',
    COMMENT COLUMN IF EXISTS before_ratio 'Ratio before the drift.',
    COMMENT COLUMN IF EXISTS jobs 'Jobs in the scope since then.',
    COMMENT COLUMN IF EXISTS rest_ratio 'Measured / predicted time of all other jobs.',
    COMMENT COLUMN IF EXISTS rest_jobs 'Number of all other jobs.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of epochs within the upper bound since then.',
    COMMENT COLUMN IF EXISTS known_changes 'Other changes of the cluster at that time.',
    COMMENT COLUMN IF EXISTS message 'The drift in a sentence.';

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
        'Which of cpu, memory and io were measured by the cgroup; the others by the process tree.';

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
    COMMENT COLUMN IF EXISTS met_slo
        'Whether the job finished within its SLO; NULL without an SLO or before the end.',
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

ALTER TABLE moves MODIFY COMMENT
    'One row for each step of a change of a running job.';
ALTER TABLE moves
    COMMENT COLUMN IF EXISTS at 'Time of the step, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS move 'Identity of the change.',
    COMMENT COLUMN IF EXISTS outcome 'carried_out, kept, undone or refused.',
    COMMENT COLUMN IF EXISTS means 'control: between epochs; restart: the job was started again.',
    COMMENT COLUMN IF EXISTS from_batch_size 'Batch size before the change.',
    COMMENT COLUMN IF EXISTS to_batch_size 'Batch size after the change.',
    COMMENT COLUMN IF EXISTS epoch 'First epoch with the new batch size; 0 if there is none.',
    COMMENT COLUMN IF EXISTS before_epoch_seconds 'Measured epoch time before the change.',
    COMMENT COLUMN IF EXISTS predicted_epoch_seconds 'Predicted epoch time with the change.',
    COMMENT COLUMN IF EXISTS unmoved_epoch_seconds 'Predicted epoch time without the change.',
    COMMENT COLUMN IF EXISTS after_epoch_seconds 'Measured epoch time after the change.',
    COMMENT COLUMN IF EXISTS epochs_measured 'Epochs that were measured after the change.',
    COMMENT COLUMN IF EXISTS gain_ratio 'Measured gain / predicted gain.',
    COMMENT COLUMN IF EXISTS reason 'Reason why the change was refused or undone.';

ALTER TABLE node_load MODIFY COMMENT
    'One row for each node and minute, kept for 400 days.';
ALTER TABLE node_load
    COMMENT COLUMN IF EXISTS node 'Name of the node.',
    COMMENT COLUMN IF EXISTS minute 'Start of the minute, UTC.',
    COMMENT COLUMN IF EXISTS samples 'Number of samples.',
    COMMENT COLUMN IF EXISTS cpu_ratio 'Mean busy share of the processors, 0 to 1.',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'Largest busy share of a sample.',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'Mean share of the processors that waited for storage.',
    COMMENT COLUMN IF EXISTS load_average 'Mean load average.',
    COMMENT COLUMN IF EXISTS cores 'Logical processors; NULL if the number is unknown.';

ALTER TABLE node_load_hourly MODIFY COMMENT
    'One row for each node and hour, kept for five years.';
ALTER TABLE node_load_hourly
    COMMENT COLUMN IF EXISTS node 'Name of the node.',
    COMMENT COLUMN IF EXISTS hour 'Start of the hour, UTC.',
    COMMENT COLUMN IF EXISTS samples 'Number of samples.',
    COMMENT COLUMN IF EXISTS cpu_ratio 'Mean busy share of the processors, 0 to 1.',
    COMMENT COLUMN IF EXISTS cpu_ratio_max 'Largest busy share of a sample.',
    COMMENT COLUMN IF EXISTS io_wait_ratio 'Mean share of the processors that waited for storage.',
    COMMENT COLUMN IF EXISTS load_average 'Mean load average.',
    COMMENT COLUMN IF EXISTS cores 'Logical processors; NULL if the number is unknown.';

ALTER TABLE promises MODIFY COMMENT
    'One row for each job with an SLO that started as advised and finished or failed: the promise and its result.';
ALTER TABLE promises
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS user 'User who submitted the job.',
    COMMENT COLUMN IF EXISTS model 'Model that is trained.',
    COMMENT COLUMN IF EXISTS dataset
        'Dataset on which the model is trained; empty if none was named.',
    COMMENT COLUMN IF EXISTS decision 'meets_slo for a promise; any other value is no promise.',
    COMMENT COLUMN IF EXISTS submitted_at 'Time of the submission, UTC.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS probability
        'Probability of meeting the SLO when it was promised, 0 to 1.',
    COMMENT COLUMN IF EXISTS threshold
        'Minimum probability of a promise: the confidence, or less if it applies to the mean of all promises.',
    COMMENT COLUMN IF EXISTS slo_seconds 'SLO, from the submission; 0 if there is none.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time from the submission to the end.',
    COMMENT COLUMN IF EXISTS response_seconds
        'Measured time from the submission to the end of the last epoch.',
    COMMENT COLUMN IF EXISTS kept 'Whether the job finished within its SLO.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of the promise.',
    COMMENT COLUMN IF EXISTS cpus 'Processes of the promise.',
    COMMENT COLUMN IF EXISTS nodes 'Nodes of the job.',
    COMMENT COLUMN IF EXISTS promised_at
        'Time of the answer, or of the advice that ended the wait, UTC.';

ALTER TABLE regressor_life MODIFY COMMENT
    'One row for each event of a regressor.';
ALTER TABLE regressor_life
    COMMENT COLUMN IF EXISTS at 'Time of the event, UTC.',
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS kind 'trained, promoted, rejected, drift or drift_end.',
    COMMENT COLUMN IF EXISTS model_digest
        'SHA-256 of the regressor file, as courier regressor show takes it.',
    COMMENT COLUMN IF EXISTS family 'Family of the regressor.',
    COMMENT COLUMN IF EXISTS examples 'Examples of the fit.',
    COMMENT COLUMN IF EXISTS settings 'Distinct configurations among the examples.',
    COMMENT COLUMN IF EXISTS median_absolute_ratio
        'Median of |error| / truth on held-out examples.',
    COMMENT COLUMN IF EXISTS r2 'Coefficient of determination on held-out examples.',
    COMMENT COLUMN IF EXISTS fit_seconds 'Duration of the fit.',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request.',
    COMMENT COLUMN IF EXISTS reason 'Reason of the event in words.',
    COMMENT COLUMN IF EXISTS rival 'Digest of the regressor with which it was compared.',
    COMMENT COLUMN IF EXISTS judged_jobs 'Jobs of the comparison.',
    COMMENT COLUMN IF EXISTS judged_settings 'Distinct configurations of the comparison.',
    COMMENT COLUMN IF EXISTS judged_level 'Significance level of the comparison.',
    COMMENT COLUMN IF EXISTS loss 'Pinball loss on the jobs of the comparison.',
    COMMENT COLUMN IF EXISTS rival_loss 'Pinball loss of the other regressor on the same jobs.',
    COMMENT COLUMN IF EXISTS loss_difference_low
        'Lower end of the interval of the difference in loss.',
    COMMENT COLUMN IF EXISTS loss_difference_high
        'Upper end of the interval of the difference in loss.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of the compared jobs within the upper bound.',
    COMMENT COLUMN IF EXISTS rival_coverage_ratio 'The same share for the other regressor.',
    COMMENT COLUMN IF EXISTS drift_ratio 'Measured / predicted time.',
    COMMENT COLUMN IF EXISTS drifted
        'Node, node type or model (with its batch sizes) that drifted, or all.',
    COMMENT COLUMN IF EXISTS event_id 'Identity of the event.',
    COMMENT COLUMN IF EXISTS sequence 'Sequence of the event in its stream.';

ALTER TABLE regressors MODIFY COMMENT
    'One row for each regressor that was fitted for a target.';
ALTER TABLE regressors
    COMMENT COLUMN IF EXISTS target 'Predicted quantity: epoch_time, startup_time or accuracy.',
    COMMENT COLUMN IF EXISTS model_digest
        'SHA-256 of the regressor file, as courier regressor show takes it.',
    COMMENT COLUMN IF EXISTS state 'in_use, former, rejected or challenger.',
    COMMENT COLUMN IF EXISTS family 'Family of the regressor.',
    COMMENT COLUMN IF EXISTS trained_at 'Time of the fit, UTC; NULL if it is unknown.',
    COMMENT COLUMN IF EXISTS promoted_at 'Time of the last promotion, UTC.',
    COMMENT COLUMN IF EXISTS promotions 'Number of promotions.',
    COMMENT COLUMN IF EXISTS examples 'Examples of the fit.',
    COMMENT COLUMN IF EXISTS settings 'Distinct configurations among the examples.',
    COMMENT COLUMN IF EXISTS median_absolute_ratio
        'Median of |error| / truth on held-out examples.',
    COMMENT COLUMN IF EXISTS coverage_ratio 'Share of the compared jobs within the upper bound.',
    COMMENT COLUMN IF EXISTS judged_jobs 'Jobs of the comparison.',
    COMMENT COLUMN IF EXISTS drifts 'Alarms and corrections while it was in use.',
    COMMENT COLUMN IF EXISTS decided_by 'first, growth, test, rollback or request.',
    COMMENT COLUMN IF EXISTS reason 'Reason of the last decision in words.';

ALTER TABLE warnings MODIFY COMMENT
    'One row for each warning that an SLO is at risk, and for each time that a warning ended.';
ALTER TABLE warnings
    COMMENT COLUMN IF EXISTS at 'Time of the warning, UTC.',
    COMMENT COLUMN IF EXISTS job_id 'Name of the job.',
    COMMENT COLUMN IF EXISTS run 'Number of the start of the job, from 1.',
    COMMENT COLUMN IF EXISTS cleared 'Whether the risk has passed.',
    COMMENT COLUMN IF EXISTS cause
        'slow_epochs, io_wait, neighbours, foreign, late_start or regressor.',
    COMMENT COLUMN IF EXISTS probability 'Probability of meeting the SLO without a change, 0 to 1.',
    COMMENT COLUMN IF EXISTS confidence 'Requested probability of meeting the SLO, 0 to 1.',
    COMMENT COLUMN IF EXISTS predicted_seconds 'Predicted time until the end.',
    COMMENT COLUMN IF EXISTS left_seconds 'Time that the SLO leaves; negative if it is over.',
    COMMENT COLUMN IF EXISTS action 'Change that would meet the SLO.',
    COMMENT COLUMN IF EXISTS batch_size 'Batch size of that change.',
    COMMENT COLUMN IF EXISTS saved_probability 'Probability of meeting the SLO with that change.',
    COMMENT COLUMN IF EXISTS accuracy_loss 'Accuracy that the change costs; negative if it gains.',
    COMMENT COLUMN IF EXISTS message 'The warning in a sentence.';
