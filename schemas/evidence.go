package schemas

import "time"

// Evidence says what the figures of an alternative rest on: runs of the model itself on the
// dataset itself, as others are no evidence. A part of which nothing is known is absent, as the whole is where a
// regressor of another method answered. An advice for a running job has none.
type Evidence struct {
	// Of the epoch time.
	Time *TimeEvidence `json:"time,omitempty"`
	// Of the start-up; absent if none was ever measured: the predicted time contains none.
	Startup *StartupEvidence `json:"startup,omitempty"`
	// Of the accuracy; absent if none was ever measured.
	Accuracy *AccuracyEvidence `json:"accuracy,omitempty"`
}

// TimeEvidence says what a predicted time rests on. Only timed runs count.
type TimeEvidence struct {
	// "measured": the configuration ran; "interpolated": batch sizes around it did;
	// "extrapolated": nothing near it did, no guarantee; "never run": nothing on such a node did.
	Support string `json:"support"`
	// Runs with this batch size, these CPUs and this load on such a node.
	ConfigurationRuns uint32 `json:"configuration_runs"`
	// Runs of the model on the dataset on such a node.
	NodeTypeRuns uint32 `json:"node_type_runs"`
	// Runs of the model on the dataset.
	ModelRuns uint32 `json:"model_runs"`
	// Type of node whose runs count; absent where nothing is known of a node but its name.
	NodeType string `json:"node_type,omitempty"`

	// Why nothing can be promised: there are no runs of this "model", "node_type",
	// "cpus", "load" or "batch_size"; the batch sizes that ran are too far apart ("neighbours")
	// or too few ("configurations"), or their runs differ too much ("agreement").
	Lacks string `json:"lacks,omitempty"`
	// What ran instead: least CPUs, batch size or jobs at once, or how many configurations.
	RanLow uint32 `json:"ran_low,omitempty"`
	// The largest of them.
	RanHigh uint32 `json:"ran_high,omitempty"`

	// What corrections of drift multiply the epoch time by; absent if none is active.
	CorrectionRatio float64 `json:"correction_ratio,omitempty"`
	// The shifts among them. What they leave of the ratio are slow changes and what is the
	// configuration's own.
	Corrections []DriftFactor `json:"corrections,omitempty"`
	// Measured to predicted time of ended jobs like it, by which bound and probability are
	// shifted; absent if it is 1.
	OutcomeRatio float64 `json:"outcome_ratio,omitempty"`
}

// DriftFactor is a shift of the times of a scope that predictions are corrected by.
type DriftFactor struct {
	// What shifted: "all", "node_type", "model", "model_on_node_type", or "batch_size_from" or
	// "batch_size_to" of the model.
	Scope string `json:"scope"`
	// Batch size from which or up to which the last two hold.
	BatchSize uint32 `json:"batch_size,omitempty"`
	// Ratio of measured to predicted time.
	Ratio float64 `json:"ratio"`
	// Runs in the scope since the shift.
	Runs uint32 `json:"runs"`
	// When the first of them began.
	SinceAt time.Time `json:"since_at,omitzero"`
}

// StartupEvidence says what the start-up that a predicted time contains rests on.
type StartupEvidence struct {
	// Its median, contained in the predicted time.
	Seconds float64 `json:"seconds"`
	// Runs of the model on the dataset on such a node; 0 if it is that of other nodes.
	NodeTypeRuns uint32 `json:"node_type_runs"`
	// Runs of the model on the dataset.
	ModelRuns uint32 `json:"model_runs"`
}

// AccuracyEvidence says what a predicted accuracy rests on. Only runs that showed it count.
type AccuracyEvidence struct {
	// "measured": the batch size ran; "interpolated": those around it did; "extrapolated": none
	// near it did, and nothing is known.
	Support string `json:"support"`
	// Runs with this batch size.
	BatchSizeRuns uint32 `json:"batch_size_runs"`
	// Runs of the model on the dataset.
	ModelRuns uint32 `json:"model_runs"`
	// Epochs of the longest of them: later the accuracy is taken as it was then.
	LongestEpochs uint32 `json:"longest_epochs"`
	// Highest accuracy that any of them reached, 0 to 1.
	HighestAccuracy float64 `json:"highest_accuracy"`
	// Epoch from which the accuracy is known, where it is not after so few.
	KnownFromEpoch uint32 `json:"known_from_epoch,omitempty"`
}
