package schemas

import (
	"cmp"
	"fmt"
	"time"
)

// Setting holds the properties of a job that its owner determines. They are repeated in its events,
// so that each event can be interpreted alone.
type Setting struct {
	// Name of the model that is trained.
	Model string `json:"model" ch:"model"`
	// Name of the training data; "" is a dataset of its own.
	Dataset string `json:"dataset,omitempty" ch:"dataset"`
	// Samples per iteration; 0 if unknown.
	BatchSize uint32 `json:"batch_size" ch:"batch_size"`
	// CPUs of each worker of the job, on all its nodes.
	CPUs uint32 `json:"cpus" ch:"cpus"`
	// Number of workers of the job; absent or 0 for a single one.
	Workers uint32 `json:"workers,omitempty" ch:"workers"`
	// Number of data loaders of each worker; absent or 0 for none, or if the command sets its own.
	Loaders uint32 `json:"loaders,omitempty" ch:"loaders"`
	// Total epochs of the run.
	Epochs uint32 `json:"epochs" ch:"epochs"`
	// Samples per epoch; 0 if unknown.
	TrainingSamples uint64 `json:"training_samples,omitempty" ch:"training_samples"`
	// Nodes on which the job runs.
	Nodes []string `json:"nodes" ch:"nodes"`
}

// Processes returns the number of CPUs that all workers occupy on the nodes of the job.
func (s *Setting) Processes() uint32 { return Processes(s.Workers, s.CPUs) }

// Processes returns the CPUs of a number of workers, 0 for a single one.
func Processes(workers, cpus uint32) uint32 { return max(workers, 1) * cpus }

// IsShape reports whether the job runs with a number of workers, 0 for a single one, and CPUs of each.
func (s *Setting) IsShape(workers, cpus uint32) bool {
	return IsSameWorkers(s.Workers, workers) && s.CPUs == cpus
}

// IsSameWorkers reports whether two numbers of workers, each 0 or 1 for a single one, are the same.
func IsSameWorkers(a, b uint32) bool { return max(a, 1) == max(b, 1) }

// LearnedModel returns the model under which runs with these workers are learned and predicted. Runs with
// different numbers of workers belong to different models: a step averages the batches of all workers, so
// both the time and the accuracy after an epoch change with their number.
func (s *Setting) LearnedModel() string {
	if s.Workers <= 1 {
		return s.Model
	}
	return fmt.Sprintf("%s (%d workers)", s.Model, s.Workers)
}

// TimedModel returns the model under which the times of these runs are learned and predicted: the learned
// one with these loaders, because the accuracy does not depend on them.
func TimedModel(model string, loaders uint32) string {
	if loaders == 0 {
		return model
	}
	return fmt.Sprintf("%s (%s)", model, FormatCount(uint64(loaders), "loader"))
}

func (s *Setting) validate() error {
	if len(s.Nodes) == 0 {
		return Invalid("nodes", "missing; want the nodes on which the job runs")
	}
	return cmp.Or(
		required("model", s.Model, "the name of the model"),
		validateText("model", s.Model),
		validateText("dataset", s.Dataset),
		validateRange("batch_size", s.BatchSize, 0, MaxBatchSize),
		validateRange("cpus", s.CPUs, 1, MaxCPUs),
		validateRange("workers", s.Workers, 0, MaxWorkers),
		validateRange("epochs", s.Epochs, 0, MaxEpochs),
		validateNodes(s.Nodes),
	)
}

// Started is job.<id>.started: the runner has started the job's command.
type Started struct {
	JobStamp
	Setting
	// Logical processors of the node; for several nodes, of the smallest one.
	NodeCores uint32 `json:"node_cores" ch:"node_cores"`
	// Promised interval of job.<id>.alive; 0 if the client sends no heartbeats.
	HeartbeatSeconds float64 `json:"heartbeat_seconds" ch:"heartbeat_seconds"`
	// Time limit of the batch system, from the start; absent if there is none.
	LimitSeconds float64 `json:"limit_seconds,omitempty" ch:"limit_seconds"`
	// Name of the program, without arguments.
	Command string `json:"command,omitempty" ch:"command"`
	// User who runs the job.
	User string `json:"user,omitempty" ch:"user"`
	// Moves that the runner can carry out, "batch_size" and "cpus"; all others are advice only.
	Moves []string `json:"moves,omitempty" ch:"moves"`

	// Logical processors of each node, in their order; 0 if unknown.
	NodesCores []uint32 `json:"nodes_cores,omitempty" ch:"nodes_cores"`
	// CPU model of each node; "" if unknown.
	NodesCPUModel []string `json:"nodes_cpu_model,omitempty" ch:"nodes_cpu_model"`
	// Speed of each node, as in its samples; 0 if unknown.
	NodesSpeedOperationsPerSecond []float64 `json:"nodes_speed_operations_per_second,omitempty" ch:"nodes_speed_operations_per_second"`
}

// Hardware returns the hardware of each node of the job, or nil if the event has none.
func (e *Started) Hardware() []Hardware {
	if len(e.NodesCores)+len(e.NodesCPUModel)+len(e.NodesSpeedOperationsPerSecond) == 0 {
		return nil
	}
	all := make([]Hardware, len(e.Nodes))
	for i := range all {
		if i < len(e.NodesCores) {
			all[i].Cores = e.NodesCores[i]
		}
		if i < len(e.NodesCPUModel) {
			all[i].CPUModel = e.NodesCPUModel[i]
		}
		if i < len(e.NodesSpeedOperationsPerSecond) {
			all[i].Speed = e.NodesSpeedOperationsPerSecond[i]
		}
	}
	return all
}

// SetHardware sets the hardware of each node of the job.
func (e *Started) SetHardware(all []Hardware) {
	e.NodesCores, e.NodesCPUModel, e.NodesSpeedOperationsPerSecond = nil, nil, nil
	for _, h := range all {
		e.NodesCores = append(e.NodesCores, h.Cores)
		e.NodesCPUModel = append(e.NodesCPUModel, h.CPUModel)
		e.NodesSpeedOperationsPerSecond = append(e.NodesSpeedOperationsPerSecond, h.Speed)
	}
}

// validateHardware checks the hardware of the nodes.
func (e *Started) validateHardware() error {
	for _, list := range []struct {
		field   string
		entries int
	}{
		{"nodes_cores", len(e.NodesCores)},
		{"nodes_cpu_model", len(e.NodesCPUModel)},
		{"nodes_speed_operations_per_second", len(e.NodesSpeedOperationsPerSecond)},
	} {
		if list.entries != 0 && list.entries != len(e.Nodes) {
			return Invalid(list.field, "%d entries for %d nodes", list.entries, len(e.Nodes))
		}
	}
	for _, h := range e.Hardware() {
		err := cmp.Or(
			validateRange("nodes_cores", h.Cores, 0, MaxCPUs),
			validateText("nodes_cpu_model", h.CPUModel),
			validateRange("nodes_speed_operations_per_second", h.Speed, 0, maxSpeed),
		)
		if err != nil {
			return err
		}
	}
	return nil
}

// MaxLimitSeconds is the maximum time limit of a batch system: ten years.
const MaxLimitSeconds = 10 * 366 * 24 * 3600.0

// StartedID returns the identity of a started event.
func StartedID(job string, run uint32) string { return fmt.Sprintf("%s/%d/started", job, run) }

// Subject implements Event.
func (e *Started) Subject() string { return JobSubject(e.JobID, EventStarted) }

// Validate implements Event.
func (e *Started) Validate() error {
	return cmp.Or(
		e.JobStamp.validate(),
		validateRange("heartbeat_seconds", e.HeartbeatSeconds, 0, 3600),
		validateRange("limit_seconds", e.LimitSeconds, 0, MaxLimitSeconds),
		e.Setting.validate(),
		e.validateHardware(),
	)
}

// Sources of an epoch's duration.
const (
	DurationReported = "reported" // a number in the job's output
	DurationArrival  = "arrival"  // time between output lines, by the runner's monotonic clock
)

// Epoch is job.<id>.epoch: the end of one pass over the data. Unmeasured values are absent.
type Epoch struct {
	JobStamp
	Setting
	// Number of the epoch, from 1.
	Epoch uint32 `json:"epoch" ch:"epoch"`
	// Duration of the epoch with its validation.
	DurationSeconds float64 `json:"duration_seconds" ch:"duration_seconds"`
	// "reported" or "arrival"
	DurationSource string `json:"duration_source" ch:"duration_source"`
	// Epochs that the job reported together with this one and whose events follow.
	FollowingEpochs uint32 `json:"following_epochs,omitempty" ch:"following_epochs"`
	// Logical processors of the node.
	NodeCores uint32 `json:"node_cores" ch:"node_cores"`

	// Training loss.
	Loss *float64 `json:"loss,omitempty" ch:"loss"`
	// Accuracy on the validation set, 0 to 1.
	Accuracy *float64 `json:"accuracy,omitempty" ch:"accuracy"`
	// Name of the printed metric behind Accuracy, or of a loss on held-out data without one, in
	// lower-case words; empty if it is unknown.
	Metric string `json:"metric,omitempty" ch:"metric"`
	// Value of Metric as printed: 91.5 for 91.5 %, 0.08 for an error of 0.08.
	MetricValue *float64 `json:"metric_value,omitempty" ch:"metric_value"`

	// Time-weighted number of jobs on the node during the epoch, this one included, as known to
	// the runner.
	ConcurrentJobs *float64 `json:"concurrent_jobs,omitempty" ch:"concurrent_jobs"`
	// Busy share of the node's processors during the epoch, 0 to 1.
	NodeCPURatio *float64 `json:"node_cpu_ratio,omitempty" ch:"node_cpu_ratio"`
	// IO-wait share of the node's processors during the epoch, 0 to 1.
	NodeIOWaitRatio *float64 `json:"node_io_wait_ratio,omitempty" ch:"node_io_wait_ratio"`
	// One-minute load average at the end of the epoch.
	NodeLoadAverage *float64 `json:"node_load_average,omitempty" ch:"node_load_average"`

	// The figures of the job are from its cgroup if that counts them, else from its process tree.

	// CPU time of the job in the epoch.
	JobCPUSeconds *float64 `json:"job_cpu_seconds,omitempty" ch:"job_cpu_seconds"`
	// Resident memory at the end. Shared pages count once per process in a process tree and once
	// in a cgroup.
	JobMemoryBytes *float64 `json:"job_memory_bytes,omitempty" ch:"job_memory_bytes"`
	// Bytes read from storage in the epoch.
	JobReadBytes *float64 `json:"job_read_bytes,omitempty" ch:"job_read_bytes"`
	// Bytes written to storage in the epoch.
	JobWrittenBytes *float64 `json:"job_written_bytes,omitempty" ch:"job_written_bytes"`

	// Number of samples in the validation set; 0 if unknown.
	ValidationSamples uint64 `json:"validation_samples,omitempty" ch:"validation_samples"`

	// Share of time in which at least one task of the job's cgroup waited for a CPU (PSI), 0 to 1;
	// without a cgroup, the time that its threads waited, divided by that of the epoch.
	JobCPUPressureRatio *float64 `json:"job_cpu_pressure_ratio,omitempty" ch:"job_cpu_pressure_ratio"`
	// Share of time in which at least one task of the cgroup waited for IO, 0 to 1.
	JobIOPressureRatio *float64 `json:"job_io_pressure_ratio,omitempty" ch:"job_io_pressure_ratio"`
	// Share of time in which all tasks of the cgroup with work waited for IO, 0 to 1.
	JobIOFullPressureRatio *float64 `json:"job_io_full_pressure_ratio,omitempty" ch:"job_io_full_pressure_ratio"`
	// Share of time in which at least one task of the cgroup waited for memory, 0 to 1.
	JobMemoryPressureRatio *float64 `json:"job_memory_pressure_ratio,omitempty" ch:"job_memory_pressure_ratio"`
	// Share of time in which all tasks of the cgroup with work waited for memory, 0 to 1.
	JobMemoryFullPressureRatio *float64 `json:"job_memory_full_pressure_ratio,omitempty" ch:"job_memory_full_pressure_ratio"`

	Phases
}

// EpochID returns the identity of an epoch event.
func EpochID(job string, run, epoch uint32) string {
	return fmt.Sprintf("%s/%d/%d", job, run, epoch)
}

// maxBurstRatio is the ratio of used to granted CPU time above which an epoch of an elastic job used
// CPUs that nobody else needed. The rest is the noise of the measurement.
const maxBurstRatio = 1.1

// IsBurst reports whether the epoch used more CPUs than it was granted. The duration of such an epoch of an
// elastic job says nothing about an epoch with the granted CPUs.
func (e *Epoch) IsBurst() bool {
	used := e.JobCPUSeconds
	return used != nil && *used > maxBurstRatio*float64(e.Processes())*e.DurationSeconds
}

// Duration returns the duration of the epoch.
func (e *Epoch) Duration() time.Duration {
	return time.Duration(e.DurationSeconds * float64(time.Second))
}

// Subject implements Event.
func (e *Epoch) Subject() string { return JobSubject(e.JobID, EventEpoch) }

// Validate implements Event.
func (e *Epoch) Validate() error {
	if e.DurationSeconds == 0 {
		return Invalid("duration_seconds", "missing or 0; want a time above 0")
	}
	return cmp.Or(
		e.JobStamp.validate(),
		validateRange("epoch", e.Epoch, 1, MaxEpochs),
		validateSeconds("duration_seconds", e.DurationSeconds),
		OneOf("duration_source", e.DurationSource, DurationReported, DurationArrival),
		validateLength("metric", len(e.Metric), MaxMetricLength),
		e.Setting.validate(),
		e.Phases.Validate(),
		validateRatios([]ratioField{
			{"accuracy", e.Accuracy},
			{"node_io_wait_ratio", e.NodeIOWaitRatio},
			{"node_cpu_ratio", e.NodeCPURatio},
			{"job_cpu_pressure_ratio", e.JobCPUPressureRatio},
			{"job_io_pressure_ratio", e.JobIOPressureRatio},
			{"job_io_full_pressure_ratio", e.JobIOFullPressureRatio},
			{"job_memory_pressure_ratio", e.JobMemoryPressureRatio},
			{"job_memory_full_pressure_ratio", e.JobMemoryFullPressureRatio},
		}...),
	)
}

// MaxMetricLength is the maximum length of the name of a metric in bytes.
const MaxMetricLength = 64

// Ended is job.<id>.finished, .failed, .cancelled or .lost: the end of a run. The job's next event
// reverses "lost", for example job.<id>.found, which records a heartbeat of the lost run; the other
// outcomes are final for the run.
type Ended struct {
	JobStamp
	// "finished", "failed", "cancelled", "lost" or "found"
	Outcome string `json:"outcome" ch:"outcome"`
	// Explanation of the outcome.
	Reason string `json:"reason,omitempty" ch:"reason"`
	// Exit code of the command; absent if it has none.
	ExitCode *int32 `json:"exit_code,omitempty" ch:"exit_code"`
	// Time since the start of the run; 0 if it never started.
	DurationSeconds float64 `json:"duration_seconds,omitempty" ch:"duration_seconds"`
	// Time from the start to the beginning of the first epoch.
	StartupSeconds *float64 `json:"startup_seconds,omitempty" ch:"startup_seconds"`
	// Epochs observed in this run.
	EpochsDone uint32 `json:"epochs_done" ch:"epochs_done"`
	// Accuracy of the last epoch.
	Accuracy *float64 `json:"accuracy,omitempty" ch:"accuracy"`
	// Last lines of the output, if the user lets the runner record them. The tables leave them out.
	Output string `json:"output,omitempty"`
	Setting
}

// EndedID returns the identity of a finished, failed or cancelled event.
func EndedID(job string, run uint32, outcome string) string {
	return fmt.Sprintf("%s/%d/%s", job, run, outcome)
}

// LostID returns the identity of a lost event. last is the sequence of the last received event, so
// that a job can be lost again and several advisors record one loss only once.
func LostID(job string, last uint64) string { return fmt.Sprintf("%s/%d/lost", job, last) }

// FoundID returns the identity of a found event. lost is the sequence of the lost event.
func FoundID(job string, lost uint64) string { return fmt.Sprintf("%s/%d/found", job, lost) }

// Subject implements Event.
func (e *Ended) Subject() string { return JobSubject(e.JobID, e.Outcome) }

// Validate implements Event.
func (e *Ended) Validate() error {
	err := cmp.Or(
		e.JobStamp.validate(),
		OneOf("outcome", e.Outcome, EventFinished, EventFailed, EventCancelled, EventLost, EventFound),
		validateSeconds("duration_seconds", e.DurationSeconds),
		validateLength("reason", len(e.Reason), maxReason),
		validateLength("output", len(e.Output), maxOutput),
		validateRatios(ratioField{"accuracy", e.Accuracy}),
	)
	if err == nil && (e.Outcome == EventFinished || e.Outcome == EventFailed) {
		return e.Setting.validate()
	}
	return err
}

// Alive is job.<id>.alive: the runner's heartbeat, sent over core NATS and not stored.
type Alive struct {
	JobStamp
	EpochProgress
	// The command has ended, or will not start; this is the last heartbeat.
	Ended bool `json:"ended,omitempty"`
}

// Heartbeat is the interval of a runner's heartbeats. A runner that could not send one for Silence stops
// its job, if that is wanted. LostAfter without a heartbeat the job is lost, and its CPUs are given to
// others: until then a job that is stopped has ended.
const (
	Heartbeat = 10 * time.Second
	Silence   = 3 * Heartbeat
	LostAfter = 2 * Silence
)

// Reservation is for how long the CPUs of an admitted job are reserved. It must have started by then.
const Reservation = time.Minute

// Subject implements Event.
func (e *Alive) Subject() string { return JobSubject(e.JobID, EventAlive) }

// Validate implements Event.
func (e *Alive) Validate() error { return cmp.Or(e.JobStamp.validate(), e.EpochProgress.validate()) }
