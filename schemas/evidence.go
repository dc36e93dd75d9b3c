package schemas

import "time"

// Evidence describes the measurements behind the figures of an alternative. Only runs of the same
// model on the same dataset count. A part without measurements is absent. The whole is absent if a
// regressor of another family answered, and in advice for a running job.
type Evidence struct {
	// Measurements behind the epoch time.
	Time *TimeEvidence `json:"time,omitempty"`
	// Measurements of the start-up; absent if there are none: the predicted time excludes it.
	Startup *StartupEvidence `json:"startup,omitempty"`
	// Measurements behind the accuracy; absent if there are none.
	Accuracy *AccuracyEvidence `json:"accuracy,omitempty"`
}

// TimeEvidence describes the measurements behind a predicted time. Only timed runs count.
type TimeEvidence struct {
	// "measured": the configuration was run; "interpolated": batch sizes around it were run;
	// "extrapolated": no similar configuration was run, no promise; "never run": nothing was run
	// on such a node.
	Support string `json:"support"`
	// Runs with this batch size, CPUs and load on such a node.
	ConfigurationRuns uint32 `json:"configuration_runs"`
	// Runs of the model on the dataset on such a node.
	NodeTypeRuns uint32 `json:"node_type_runs"`
	// Runs of the model on the dataset.
	ModelRuns uint32 `json:"model_runs"`
	// Type of node whose runs count; absent if only the node's name is known.
	NodeType string `json:"node_type,omitempty"`

	// Shifts of the epoch time by drift, which the prediction multiplies.
	Corrections []DriftFactor `json:"corrections,omitempty"`
}

// DriftFactor is a correction of predicted times in a scope.
type DriftFactor struct {
	// Scope of the shift: "all", "node_type", "model", "model_on_node_type", or "batch_size_from"
	// or "batch_size_to" of the model.
	Scope string `json:"scope"`
	// Minimum or maximum batch size of the last two scopes.
	BatchSize uint32 `json:"batch_size,omitempty"`
	// Measured divided by predicted time.
	Ratio float64 `json:"ratio"`
	// Runs in the scope since the shift.
	Runs uint32 `json:"runs"`
	// Start of the first of these runs.
	SinceAt time.Time `json:"since_at,omitzero"`
}

// StartupEvidence describes the measurements behind the start-up time in a predicted time.
type StartupEvidence struct {
	// Median of the start-up time, included in the predicted time.
	Seconds float64 `json:"seconds"`
	// Runs of the model on the dataset on such a node; 0 if the value is from other nodes.
	NodeTypeRuns uint32 `json:"node_type_runs"`
	// Runs of the model on the dataset.
	ModelRuns uint32 `json:"model_runs"`
}

// AccuracyEvidence describes the measurements behind a predicted accuracy. Only runs that reported
// an accuracy count.
type AccuracyEvidence struct {
	// "measured": the batch size was run; "interpolated": batch sizes around it were run, or others for
	// more epochs; "extrapolated": no similar batch size was run, and the accuracy is unknown.
	Support string `json:"support"`
	// Runs with this batch size.
	BatchSizeRuns uint32 `json:"batch_size_runs"`
	// Runs of the model on the dataset.
	ModelRuns uint32 `json:"model_runs"`
	// Last epoch that runs show: of this batch size, of both next to it, or of any.
	LongestEpochs uint32 `json:"longest_epochs"`
	// Highest accuracy of any run, 0 to 1.
	HighestAccuracy float64 `json:"highest_accuracy"`
	// First epoch with a known accuracy, if the requested number of epochs is smaller.
	KnownFromEpoch uint32 `json:"known_from_epoch,omitempty"`
}
