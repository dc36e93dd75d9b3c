package advisor

import (
	"cmp"
	"slices"

	"courier/schemas"
)

// model is what is known of a model on a dataset. The list is never changed in place, so that
// questions may keep it.
type model struct {
	described      Description
	configurations []Configuration // with an epoch, at most keptTried
}

// keptTried bounds the configurations of a model; more would not be learnt any sooner.
const keptTried = 256

// add notes the configuration of an epoch.
func (m *model) add(s *schemas.Setting) {
	c := Configuration{s.BatchSize, s.CPUs}
	if len(m.configurations) < keptTried && !slices.Contains(m.configurations, c) {
		m.configurations = append(slices.Clip(m.configurations), c)
	}
}

// Description is what requests and jobs report of a model. A zero is unknown.
type Description struct {
	Parameters        uint64 // weights of the network
	TrainingSamples   uint64 // in one epoch
	ValidationSamples uint64 // that its accuracies are measured on
}

// or fills in what is unknown.
func (d Description) or(other Description) Description {
	return Description{
		Parameters:        cmp.Or(d.Parameters, other.Parameters),
		TrainingSamples:   cmp.Or(d.TrainingSamples, other.TrainingSamples),
		ValidationSamples: cmp.Or(d.ValidationSamples, other.ValidationSamples),
	}
}

// mostModels bounds how many models are remembered; beyond it the least recently used is
// forgotten. A cluster of 10,000 nodes trains hundreds; names that are made up for each
// job come and go.
const mostModels = 1 << 12

// levelOf names what a job trains: its model and dataset.
func levelOf(s *schemas.Setting) string { return schemas.ModelLevel(s.Model, s.Dataset) }

// useModel returns the model of a level, which is made on first use, and notes that it is used
// now.
func (c *Cluster) useModel(level string) *model {
	m := c.models[level]
	if m == nil {
		m = &model{}
		c.models[level] = m
	}
	c.lastModels.use(level)
	return m
}

// forgetModels drops the least recently used models beyond the limit.
func (c *Cluster) forgetModels() {
	for len(c.models) > c.limits.models {
		name, ok := c.lastModels.oldest()
		if !ok {
			return
		}
		c.lastModels.remove(name)
		delete(c.models, name)
	}
}

// modelOf returns what is known of the model of a request on its dataset, the zero value if
// nothing is.
func (c *Cluster) modelOf(q *schemas.JobRequest) model {
	if m := c.models[schemas.ModelLevel(q.Model, q.Dataset)]; m != nil {
		return *m
	}
	return model{}
}

// describe notes what an event reports of the model of a level; zeros report nothing.
func (c *Cluster) describe(level string, reported Description) {
	m := c.useModel(level)
	m.described = reported.or(m.described)
}
