package cluster

import (
	"slices"

	"courier/schemas"
)

// BatchAndShape is the part of a configuration that an alternative sets: the batch size, the number of
// workers (0 for a single one), and the CPUs of each.
type BatchAndShape struct {
	BatchSize, CPUs uint32
	Workers         uint32 `json:",omitempty"`
}

func batchAndShape(s *schemas.Setting) BatchAndShape {
	c := BatchAndShape{BatchSize: s.BatchSize, CPUs: s.CPUs}
	if s.Workers > 1 {
		c.Workers = s.Workers
	}
	return c
}

// Failure is a configuration whose last runs failed one after the other.
type Failure struct {
	BatchAndShape
	NodeType string `json:"node_type,omitempty"`
	Runs     int    `json:"runs"`             // in a row
	Reason   string `json:"reason,omitempty"` // of the last one
}

// Model holds the facts that events report about a model on a dataset. The slices are never changed
// in place, because questions share them.
type Model struct {
	Failures       []Failure       `json:"failures,omitempty"`       // by time, at most maxFailures
	Configurations []BatchAndShape `json:"configurations,omitempty"` // with an epoch, at most maxTried
	Ends           []EpochsEnd     `json:"ends,omitempty"`           // of its last jobs, at most maxEnds

	// StopsAtTarget reports whether the last job that reached its target accuracy stopped there, before its
	// last epoch; nil: none has reached it.
	StopsAtTarget *bool `json:"stops_at_target,omitempty"`

	// OwnBatchSize is the batch size in the last epoch of a job whose request did not know it; 0: unknown.
	OwnBatchSize uint32 `json:"own_batch_size,omitempty"`

	// OwnLoaders is the number of data loaders in the last epoch of a job that lists several; nil: none ran.
	OwnLoaders *uint32 `json:"own_loaders,omitempty"`

	// FirstReport is the number of epochs that the last job reported together at first, such as those of a
	// block of buffered output; 0: none ran.
	FirstReport uint32 `json:"first_report,omitempty"`

	LastUse uint64 `json:"last_use,omitempty"` // Cluster.uses at its last event
}

// EpochsEnd is the number of epochs after which a job without a target accuracy ended by itself.
type EpochsEnd struct {
	BatchSize, Done uint32
	Total           uint32 // that it was started with
}

// IsEarly reports whether the job ended before its last epoch.
func (e EpochsEnd) IsEarly() bool { return e.Done < e.Total }

// maxEnds bounds the ends of a model; the oldest are forgotten.
const maxEnds = 20

// usualEarlyEnds is the number of jobs of a model that ended early after which that is expected of it.
const usualEarlyEnds = 2

// StopsEarly reports whether jobs of the model may end by themselves before their last epoch.
func (m *Model) StopsEarly() bool {
	early := 0
	for _, e := range m.Ends {
		if e.IsEarly() {
			early++
		}
	}
	return early >= usualEarlyEnds
}

// maxTried bounds the configurations of a model; more do not make it explore faster.
const maxTried = 256

// maxFailures bounds the configurations of a model that failed; the oldest are forgotten.
const maxFailures = 32

// UsualFailure is the number of failures in a row after which a configuration is not advised.
const UsualFailure = 2

// ended records how a run of a configuration ended: a failure counts until a run succeeds.
func (m *Model) ended(c BatchAndShape, nodeType string, e *schemas.Ended) {
	isSame := func(f Failure) bool { return f.BatchAndShape == c && f.NodeType == nodeType }
	at := slices.IndexFunc(m.Failures, isSame)
	switch e.Outcome {
	case schemas.EventFinished:
		if at >= 0 {
			m.Failures = slices.Delete(slices.Clone(m.Failures), at, at+1)
		}
	case schemas.EventFailed:
		f := Failure{BatchAndShape: c, NodeType: nodeType}
		kept := slices.Clone(m.Failures)
		if at >= 0 {
			f = kept[at]
			kept = slices.Delete(kept, at, at+1)
		}
		f.Runs, f.Reason = f.Runs+1, e.Reason[:min(len(e.Reason), maxReasonBytes)]
		m.Failures = append(kept[max(0, len(kept)+1-maxFailures):], f)
	}
}

// stopped records after how many epochs a job ended by itself, or whether it stopped at its target accuracy.
func (m *Model) stopped(j *Job) {
	if !j.endedByItself() {
		return
	}
	if j.Request != nil && j.Request.TargetAccuracy > 0 {
		if j.reaches(j.BestAccuracy) {
			m.StopsAtTarget = new(j.EpochsDone < j.Setting.Epochs)
		}
		return
	}
	kept := slices.Clip(m.Ends[max(0, len(m.Ends)+1-maxEnds):])
	m.Ends = append(kept, EpochsEnd{j.Setting.BatchSize, j.EpochsDone, j.Setting.Epochs})
}

// add records the configuration of an epoch.
func (m *Model) add(s *schemas.Setting) {
	c := batchAndShape(s)
	if len(m.Configurations) < maxTried && !slices.Contains(m.Configurations, c) {
		m.Configurations = append(slices.Clip(m.Configurations), c)
	}
}

// maxModels bounds the models in memory. If there are more, the least recently used model is
// evicted. A cluster of 10,000 nodes trains hundreds of models. The limit protects against names
// that are generated for each job.
const maxModels = 1 << 12

// levelOf returns the level of the model and dataset that a job trains.
func levelOf(s *schemas.Setting) string { return schemas.ModelLevel(s.Model, s.Dataset) }
