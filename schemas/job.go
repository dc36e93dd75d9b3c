package schemas

import (
	"encoding/json"
	"fmt"
	"math"
	"time"
)

// JobStamp is what every event of a job begins with.
type JobStamp struct {
	Stamp
	JobID string `json:"job_id" ch:"job_id"` // [a-z0-9_-]{1,64}
	Run   uint32 `json:"run" ch:"run"`       // counts starts of the same job from 1; 0 before the first
}

func (s *JobStamp) validate() error {
	if err := s.Stamp.validate(); err != nil {
		return err
	}
	return validateToken("job_id", s.JobID)
}

// Setting is what the owner of a job fixes, repeated on its events so that each
// can be understood alone.
type Setting struct {
	Model           string   `json:"model" ch:"model"`                                 // name of what is trained
	Dataset         string   `json:"dataset,omitempty" ch:"dataset"`                   // name of its training data; "" is a dataset of its own
	BatchSize       uint32   `json:"batch_size" ch:"batch_size"`                       // samples in one iteration
	CPUs            uint32   `json:"cpus" ch:"cpus"`                                   // processes of the job, over all its nodes
	Epochs          uint32   `json:"epochs" ch:"epochs"`                               // epochs it will run
	TrainingSamples uint64   `json:"training_samples,omitempty" ch:"training_samples"` // samples in one epoch; 0 if unknown
	Nodes           []string `json:"nodes" ch:"nodes"`                                 // nodes it runs on
}

func (s *Setting) validate() error {
	if s.Model == "" {
		return Invalid("model", "is missing")
	}
	if err := validateText("model", s.Model); err != nil {
		return err
	}
	if err := validateText("dataset", s.Dataset); err != nil {
		return err
	}
	if s.BatchSize < 1 || s.BatchSize > MaxBatchSize {
		return Invalid("batch_size", "%d is not between 1 and %d", s.BatchSize, MaxBatchSize)
	}
	if s.CPUs < 1 || s.CPUs > MaxCPUs {
		return Invalid("cpus", "%d is not between 1 and %d", s.CPUs, MaxCPUs)
	}
	if s.Epochs > MaxEpochs {
		return Invalid("epochs", "%d is more than %d", s.Epochs, MaxEpochs)
	}
	if len(s.Nodes) == 0 {
		return Invalid("nodes", "is missing: the nodes that the job runs on")
	}
	return validateNodes(s.Nodes)
}

// Submitted is job.<id>.submitted: a request and the advice that answered it.
type Submitted struct {
	JobStamp
	Request JobRequest `json:"request"` // as it was understood, defaults filled in
	Advice  Advice     `json:"advice"`  // the reply

	// Written is the advice as JSON, if it was written already: it is not written again.
	Written json.RawMessage `json:"-"`
}

// splice writes the event around the advice that was written before; Marshal
// calls it, because json.Marshal would read those bytes twice more.
func (e *Submitted) splice() ([]byte, error) {
	head, err := json.Marshal(struct {
		*JobStamp
		Request *JobRequest `json:"request"`
	}{&e.JobStamp, &e.Request})
	if err != nil {
		return nil, err
	}
	head = append(head[:len(head)-1], `,"advice":`...)
	return append(append(head, e.Written...), '}'), nil
}

// Subject implements Event.
func (e *Submitted) Subject() string { return JobSubject(e.JobID, EventSubmitted) }

// Validate implements Event.
func (e *Submitted) Validate() error {
	if err := e.JobStamp.validate(); err != nil {
		return err
	}
	if err := e.Request.Validate(); err != nil {
		return err
	}
	return e.Advice.Validate()
}

// Started is job.<id>.started: the runner has started the job's command.
type Started struct {
	JobStamp
	Setting
	NodeCores        uint32   `json:"node_cores" ch:"node_cores"`               // logical processors of its node (of the smallest, if several)
	HeartbeatSeconds float64  `json:"heartbeat_seconds" ch:"heartbeat_seconds"` // promised interval of job.<id>.alive; 0: this client sends none
	Command          string   `json:"command,omitempty" ch:"command"`           // name of the program, without arguments
	User             string   `json:"user,omitempty" ch:"user"`                 // who runs it
	Moves            []string `json:"moves,omitempty" ch:"moves"`               // that the runner can do, "batch_size"; others are advice only

	NodesCores                    []uint32  `json:"nodes_cores,omitempty" ch:"nodes_cores"`                                             // logical processors of each of its nodes, in their order; 0 if unknown
	NodesCPUModel                 []string  `json:"nodes_cpu_model,omitempty" ch:"nodes_cpu_model"`                                     // CPU model of each; "" if unknown
	NodesSpeedOperationsPerSecond []float64 `json:"nodes_speed_operations_per_second,omitempty" ch:"nodes_speed_operations_per_second"` // speed of each, as in its samples; 0 if unknown
}

// Hardware returns what the event tells of each node of the job, nil where it
// tells nothing.
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

// SetHardware tells of each node of the job what is known of it.
func (e *Started) SetHardware(all []Hardware) {
	e.NodesCores, e.NodesCPUModel, e.NodesSpeedOperationsPerSecond = nil, nil, nil
	for _, h := range all {
		e.NodesCores = append(e.NodesCores, h.Cores)
		e.NodesCPUModel = append(e.NodesCPUModel, h.CPUModel)
		e.NodesSpeedOperationsPerSecond = append(e.NodesSpeedOperationsPerSecond, h.Speed)
	}
}

// validateHardware holds the lists of what is known of nodes against the nodes.
func (e *Started) validateHardware() error {
	for _, list := range []struct {
		field   string
		entries int
	}{{"nodes_cores", len(e.NodesCores)}, {"nodes_cpu_model", len(e.NodesCPUModel)}, {"nodes_speed_operations_per_second", len(e.NodesSpeedOperationsPerSecond)}} {
		if list.entries != 0 && list.entries != len(e.Nodes) {
			return Invalid(list.field, "%d entries for %d nodes", list.entries, len(e.Nodes))
		}
	}
	for _, h := range e.Hardware() {
		if h.Cores > MaxCPUs {
			return Invalid("nodes_cores", "%d is more than %d", h.Cores, MaxCPUs)
		}
		if err := validateText("nodes_cpu_model", h.CPUModel); err != nil {
			return err
		}
		if !(h.Speed >= 0 && h.Speed <= maxSpeed) {
			return Invalid("nodes_speed_operations_per_second", "%v is not between 0 and %g", h.Speed, float64(maxSpeed))
		}
	}
	return nil
}

// StartedID returns the identity of a started event.
func StartedID(job string, run uint32) string { return fmt.Sprintf("%s/%d/started", job, run) }

// Subject implements Event.
func (e *Started) Subject() string { return JobSubject(e.JobID, EventStarted) }

// Validate implements Event.
func (e *Started) Validate() error {
	if err := e.JobStamp.validate(); err != nil {
		return err
	}
	if !(e.HeartbeatSeconds >= 0 && e.HeartbeatSeconds <= 3600) {
		return Invalid("heartbeat_seconds", "%v is not between 0 and 3600", e.HeartbeatSeconds)
	}
	if err := e.Setting.validate(); err != nil {
		return err
	}
	return e.validateHardware()
}

// Ways in which an epoch's duration was learnt.
const (
	DurationReported = "reported" // a number in the job's own output
	DurationArrival  = "arrival"  // time between lines, by the runner's monotonic clock
)

// Epoch is job.<id>.epoch: one pass over the data, at its end. What was not
// measured is absent.
type Epoch struct {
	JobStamp
	Setting
	Epoch           uint32  `json:"epoch" ch:"epoch"`                       // its number, from 1
	DurationSeconds float64 `json:"duration_seconds" ch:"duration_seconds"` // of the epoch with its validation
	DurationSource  string  `json:"duration_source" ch:"duration_source"`   // "reported" or "arrival"
	NodeCores       uint32  `json:"node_cores" ch:"node_cores"`             // logical processors of its node

	Loss     *float64 `json:"loss,omitempty" ch:"loss"`         // training loss
	Accuracy *float64 `json:"accuracy,omitempty" ch:"accuracy"` // on the validation set, 0 to 1

	ConcurrentJobs  *float64 `json:"concurrent_jobs,omitempty" ch:"concurrent_jobs"`       // jobs on the node meanwhile, this one included, time-weighted, as the runner knew
	NodeCPURatio    *float64 `json:"node_cpu_ratio,omitempty" ch:"node_cpu_ratio"`         // busy share of the node's processors meanwhile, 0 to 1
	NodeIOWaitRatio *float64 `json:"node_io_wait_ratio,omitempty" ch:"node_io_wait_ratio"` // IO-wait share of the node's processors meanwhile, 0 to 1
	NodeLoadAverage *float64 `json:"node_load_average,omitempty" ch:"node_load_average"`   // one-minute load average at the end

	// Of the job's cgroup where JobCgroupFigures names them, else of its process tree.
	JobCPUSeconds   *float64 `json:"job_cpu_seconds,omitempty" ch:"job_cpu_seconds"`     // CPU time in the epoch
	JobMemoryBytes  *float64 `json:"job_memory_bytes,omitempty" ch:"job_memory_bytes"`   // resident memory at the end; pages that processes share count in each of a tree, and once in a cgroup
	JobReadBytes    *float64 `json:"job_read_bytes,omitempty" ch:"job_read_bytes"`       // read from storage in the epoch
	JobWrittenBytes *float64 `json:"job_written_bytes,omitempty" ch:"job_written_bytes"` // written to storage in the epoch

	ValidationSamples uint64 `json:"validation_samples,omitempty" ch:"validation_samples"` // samples that the accuracy is of; 0 if unknown

	JobIOWaitSeconds           *float64 `json:"job_io_wait_seconds,omitempty" ch:"job_io_wait_seconds"`                       // time that its threads waited for storage in the epoch, summed (delay accounting); absent also if one of them ended
	JobCPUPressureRatio        *float64 `json:"job_cpu_pressure_ratio,omitempty" ch:"job_cpu_pressure_ratio"`                 // share of the time in which some task of its cgroup waited for a CPU (PSI), 0 to 1
	JobCPUFullPressureRatio    *float64 `json:"job_cpu_full_pressure_ratio,omitempty" ch:"job_cpu_full_pressure_ratio"`       // in which all of them that had work did
	JobIOPressureRatio         *float64 `json:"job_io_pressure_ratio,omitempty" ch:"job_io_pressure_ratio"`                   // the same for IO
	JobIOFullPressureRatio     *float64 `json:"job_io_full_pressure_ratio,omitempty" ch:"job_io_full_pressure_ratio"`         //
	JobMemoryPressureRatio     *float64 `json:"job_memory_pressure_ratio,omitempty" ch:"job_memory_pressure_ratio"`           // the same for memory
	JobMemoryFullPressureRatio *float64 `json:"job_memory_full_pressure_ratio,omitempty" ch:"job_memory_full_pressure_ratio"` //
	JobCgroupFigures           []string `json:"job_cgroup_figures,omitempty" ch:"job_cgroup_figures"`                         // which of cpu, memory and io its cgroup told
}

// Figures of a job that its cgroup may tell, in JobCgroupFigures.
const (
	FigureCPU    = "cpu"
	FigureMemory = "memory"
	FigureIO     = "io"
)

// EpochID returns the identity of an epoch event.
func EpochID(job string, run, epoch uint32) string { return fmt.Sprintf("%s/%d/%d", job, run, epoch) }

// Subject implements Event.
func (e *Epoch) Subject() string { return JobSubject(e.JobID, EventEpoch) }

// Validate implements Event.
func (e *Epoch) Validate() error {
	if err := e.JobStamp.validate(); err != nil {
		return err
	}
	if e.Epoch < 1 || e.Epoch > MaxEpochs {
		return Invalid("epoch", "%d is not between 1 and %d", e.Epoch, MaxEpochs)
	}
	if !(e.DurationSeconds > 0 && e.DurationSeconds <= MaxSLO.Seconds()) {
		return Invalid("duration_seconds", "%v is not above 0 and at most a year", e.DurationSeconds)
	}
	if e.DurationSource != DurationReported && e.DurationSource != DurationArrival {
		return Invalid("duration_source", "%q is neither %q nor %q", clip(e.DurationSource), DurationReported, DurationArrival)
	}
	if err := validateRatio("accuracy", e.Accuracy); err != nil {
		return err
	}
	if err := validateRatio("node_io_wait_ratio", e.NodeIOWaitRatio); err != nil {
		return err
	}
	if err := validateRatio("node_cpu_ratio", e.NodeCPURatio); err != nil {
		return err
	}
	if err := e.validatePressure(); err != nil {
		return err
	}
	return e.Setting.validate()
}

func (e *Epoch) validatePressure() error {
	for _, r := range []struct {
		field string
		value *float64
	}{{"job_cpu_pressure_ratio", e.JobCPUPressureRatio}, {"job_cpu_full_pressure_ratio", e.JobCPUFullPressureRatio},
		{"job_io_pressure_ratio", e.JobIOPressureRatio}, {"job_io_full_pressure_ratio", e.JobIOFullPressureRatio},
		{"job_memory_pressure_ratio", e.JobMemoryPressureRatio}, {"job_memory_full_pressure_ratio", e.JobMemoryFullPressureRatio}} {
		if err := validateRatio(r.field, r.value); err != nil {
			return err
		}
	}
	for _, f := range e.JobCgroupFigures {
		if f != FigureCPU && f != FigureMemory && f != FigureIO {
			return Invalid("job_cgroup_figures", "%q is not one of %s, %s and %s", clip(f), FigureCPU, FigureMemory, FigureIO)
		}
	}
	return nil
}

// validateRatio accepts absence and a share from 0 to 1.
func validateRatio(field string, v *float64) error {
	if v != nil && !(*v >= 0 && *v <= 1) {
		return Invalid(field, "%v is not a share between 0 and 1", *v)
	}
	return nil
}

// Ended is job.<id>.finished, .failed, .cancelled or .lost: why a job no longer
// counts. Lost is undone by the job's next event; the others are final for the run.
type Ended struct {
	JobStamp
	Outcome         string   `json:"outcome" ch:"outcome"`                             // "finished", "failed", "cancelled" or "lost"
	Reason          string   `json:"reason,omitempty" ch:"reason"`                     // why, in words
	ExitCode        *int32   `json:"exit_code,omitempty" ch:"exit_code"`               // of the command; absent if it has none
	DurationSeconds float64  `json:"duration_seconds,omitempty" ch:"duration_seconds"` // since the run started, 0 if it never did
	StartupSeconds  *float64 `json:"startup_seconds,omitempty" ch:"startup_seconds"`   // from the start to the first epoch's begin
	EpochsDone      uint32   `json:"epochs_done" ch:"epochs_done"`                     // epochs seen in this run
	Accuracy        *float64 `json:"accuracy,omitempty" ch:"accuracy"`                 // of the last epoch
	Setting
}

// EndedID returns the identity of a finished, failed or cancelled event.
func EndedID(job string, run uint32, outcome string) string {
	return fmt.Sprintf("%s/%d/%s", job, run, outcome)
}

// LostID returns the identity of a lost event: last is the sequence of the last
// event that was heard, so that a job can be lost again and several advisors record it once.
func LostID(job string, last uint64) string { return fmt.Sprintf("%s/%d/lost", job, last) }

// Subject implements Event.
func (e *Ended) Subject() string { return JobSubject(e.JobID, e.Outcome) }

// Validate implements Event.
func (e *Ended) Validate() error {
	if err := e.JobStamp.validate(); err != nil {
		return err
	}
	switch e.Outcome {
	case EventFinished, EventFailed, EventCancelled, EventLost:
	default:
		return Invalid("outcome", "%q is not finished, failed, cancelled or lost", clip(e.Outcome))
	}
	if !(e.DurationSeconds >= 0 && e.DurationSeconds <= MaxSLO.Seconds()) {
		return Invalid("duration_seconds", "%v is not between 0 and a year", e.DurationSeconds)
	}
	if len(e.Reason) > 4<<10 {
		return Invalid("reason", "%d bytes are more than 4096", len(e.Reason))
	}
	if err := validateRatio("accuracy", e.Accuracy); err != nil {
		return err
	}
	if e.Outcome == EventFinished || e.Outcome == EventFailed {
		return e.Setting.validate()
	}
	return nil
}

// Alive is job.<id>.alive: the runner's heartbeat, over core NATS, not stored.
type Alive struct {
	JobStamp
}

// Heartbeat is how often a runner says that its job lives, and Silence how long
// it may be silent before the job is lost.
const (
	Heartbeat = 10 * time.Second
	Silence   = 3 * Heartbeat
)

// Subject implements Event.
func (e *Alive) Subject() string { return JobSubject(e.JobID, EventAlive) }

// Validate implements Event.
func (e *Alive) Validate() error { return e.JobStamp.validate() }

// finite reports whether v is absent or a finite number.
func finite(v *float64) bool { return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0) }
