package schemas

// Change is one change of the contract.
type Change struct {
	Date   string // day of the change, YYYY-MM-DD
	What   string // what was added
	Reason string
}

// History lists every change of the contract, oldest first. Fields are added,
// never renamed, retyped or reused.
func History() []Change {
	return []Change{
		{"2026-11-21", "job.submit, job.predict, job.status, job.list, job.cancel; job events submitted, started, epoch, finished, failed, cancelled, lost, advice, alive; node samples; regressor.train, promoted, rejected; dead letters", "first contract: the pipeline from a node's sample to an answered request"},
		{"2026-11-21", "max_epochs and target_accuracy of a job request; mean_seconds and cpu_seconds of an alternative; probabilities of an effect; target startup_time; job event risk", "advice by probability, at job level, with epochs to choose"},
		{"2026-11-21", "job event moved; moves of started", "a running job takes another batch size at its next epoch, and the log tells what that brought"},
		{"2026-11-21", "cause_sequence in the reply to job.submit and job.predict", "an answer can be made again from the log alone"},
		{"2026-11-21", "menu, probes, relatives and admission of an advice; states queued and refused", "ways out, admission policies, and what is guessed of an unknown model"},
		{"2026-11-21", "request job.score", "how often promises held, by confidence, user, model and decision, and whether probabilities are honest"},
		{"2026-11-21", "regressor event drift", "what drifted, since when, by how much, and which node or model explains most of it"},
		{"2026-11-21", "validation_samples of an epoch", "accuracies that the validation set cannot tell apart are a tie"},
		{"2026-11-21", "regressor events trained and fitting; requests regressor.promote, regressor.rollback, regressor.list; how promoted and rejected regressors were judged; promote of regressor.train", "challengers are judged on jobs that nobody has learnt from, and can be rolled back"},
		{"2026-11-21", "coverage_ratio of a drift", "how badly promises would have held"},
		{"2026-11-21", "cpu_model and speed_operations_per_second of a node sample; nodes_cores, nodes_cpu_model and nodes_speed_operations_per_second of started", "regressors tell unlike nodes apart, from the log of jobs alone"},
		{"2026-11-21", "origin_bytes of a dead letter; event replayed of dead letters", "what could not be understood is published again once it can be, and the log says so"},
		{"2026-11-21", "job_io_wait_seconds, job_…_pressure_ratio, job_…_full_pressure_ratio and job_cgroup_figures of an epoch; io_full_pressure_ratio and memory_full_pressure_ratio of a node sample", "what a job itself waits for, from its cgroup where it has one of its own"},
		{"2026-11-21", "node samples as an array of several of a node", "a message costs the server more than what it carries"},
		{"2026-11-21", "subjects person.<person>.job.submit, .job.cancel and .job.<id>.started, epoch, finished, failed, cancelled, moved, alive; the code forbidden; the reply told", "where NATS knows its users, nobody speaks for the jobs of another"},
		{"2026-11-22", "promise of a job request; threshold of an advice", "a confidence may be that of each promise, or the mean of all"},
		{"2026-11-22", "speed_operations_per_second of a node sample is the best so far, no longer what was measured at the collector's start", "whatever disturbs a measurement makes it slower"},
		{
			"2026-11-22",
			"job event admitted; job.<id>.advice is stored in the stream ADVICE, no longer in JOB",
			"predictions were most of the bytes of JOB and are not part of the cluster state; old ones in JOB stay readable",
		},
		{
			"2026-11-22",
			"relatives of an advice and predicted_seconds of its probes are not set any more",
			"figures taken from other models predict nothing of one that never ran",
		},
		{
			"2026-11-22",
			"state, dataset, node_type, batch_size_from, batch_size_to, ratio_low and ratio_high of a drift; its scope node_type",
			"predictions of the jobs in scope are corrected, and the log tells when that begins, changes and ends",
		},
		{
			"2026-11-22",
			"dataset of started, epoch, finished, failed, cancelled, advice, drift, a job's status and a line of the score",
			"a model on another dataset is something else: its runs are no evidence",
		},
	}
}
