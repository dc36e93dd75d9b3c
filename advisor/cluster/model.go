package cluster

import (
	"slices"

	"courier/schemas"
)

// BatchAndCPUs is the part of a configuration that an alternative sets.
type BatchAndCPUs struct{ BatchSize, CPUs uint32 }

// Model holds the facts that events report about a model on a dataset. The slice is never changed
// in place, because questions share it.
type Model struct {
	Configurations []BatchAndCPUs `json:"configurations,omitempty"` // with an epoch, at most maxTried
	EarlyEnds      int            `json:"early_ends,omitempty"`     // of jobs that finished with fewer epochs
}

// maxTried bounds the configurations of a model; more do not make it explore faster.
const maxTried = 256

// add records the configuration of an epoch.
func (m *Model) add(s *schemas.Setting) {
	c := BatchAndCPUs{s.BatchSize, s.CPUs}
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
