package simulate

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"courier/schemas"
)

// World is a cluster and the jobs that come to it. What rules must not know, the
// laws and the noise, stands here and nowhere in what they see.
type World struct {
	Source string `json:"source,omitempty"` // where the figures come from, for people
	Nodes  []Node `json:"nodes"`
	// Load is the share of all cores that jobs would hold if all were accepted,
	// each ran alone, and batch sizes and CPUs were drawn evenly; 0.01 to 4.
	// Contention comes on top of it.
	Load          float64  `json:"load"`
	Noise         Noise    `json:"noise"`
	SLO           SLORange `json:"slo"`
	SampleSeconds float64  `json:"sample_seconds"` // between two samples of a node, 1 to 20: after 30 s of silence a node is no place for a job
	WarmUp        WarmUp   `json:"warm_up"`
	Drift         []Drift  `json:"drift"` // in no order; those of one node multiply
	Families      []Family `json:"families"`
}

// Node is a machine.
type Node struct {
	Name  string `json:"name"`
	Cores uint32 `json:"cores"` // logical processors
}

// Noise is what no rule can know. Times are multiplied by the exponential of
// normal numbers with these standard deviations: one per run, one per epoch, so
// that an epoch varies by the root of the sum of their squares.
type Noise struct {
	RunRatio   float64 `json:"run_ratio"`   // 0 to 1
	EpochRatio float64 `json:"epoch_ratio"` // 0 to 1
	Accuracy   float64 `json:"accuracy"`    // standard deviation of a measured accuracy around the true one, 0 to 1
}

// SLORange is where SLOs are drawn from, evenly, in fastest possible times of
// the job: alone on a node, with its fastest candidate, without noise.
type SLORange struct {
	LeastRatio float64 `json:"least_ratio"` // above 0
	MostRatio  float64 `json:"most_ratio"`
}

// WarmUp is the history before the first judged submission: a factorial design
// of all families, batch sizes and CPUs with each of these numbers of jobs at
// once on a node. Neighbours come from the same design.
type WarmUp struct {
	JobsAtOnce []int `json:"jobs_at_once"` // at least 1
}

// Drift makes nodes slower or faster from some time on.
type Drift struct {
	AfterSeconds float64 `json:"after_seconds"` // since the first judged second
	Factor       float64 `json:"factor"`        // on the seconds of an epoch, 0.01 to 100
	Node         string  `json:"node"`          // its name; empty: all nodes
}

// Family is a kind of job.
type Family struct {
	Model           string      `json:"model"`
	Share           float64     `json:"share"` // of all submissions, relative to the others'
	TrainingSamples uint64      `json:"training_samples"`
	Epochs          []int       `json:"epochs"`          // each job draws one
	BatchSizes      []int       `json:"batch_sizes"`     // candidates of every job
	CPUs            [][]int     `json:"cpus"`            // each job draws one list of candidates
	StartupSeconds  float64     `json:"startup_seconds"` // from the start to the first epoch's begin, before noise; no neighbour changes it
	EpochSeconds    TimeLaw     `json:"epoch_seconds"`
	Accuracy        AccuracyLaw `json:"accuracy"`
}

//go:embed world.json
var defaultWorld []byte

// DefaultWorld returns the world of the published figures.
func DefaultWorld() *World {
	w, err := ParseWorld(defaultWorld)
	if err != nil {
		panic(fmt.Sprintf("world.json: %v", err)) // a programmer's mistake, and a test reads it
	}
	return w
}

// maxWorldBytes bounds a file that claims to be a world.
const maxWorldBytes = 1 << 20

// ParseWorld reads a world strictly. The error is a *schemas.Error with
// CodeInvalid that names the wrong field.
func ParseWorld(data []byte) (*World, error) {
	if len(data) > maxWorldBytes {
		return nil, schemas.Invalid("", "%d bytes are more than the %d of the largest world",
			len(data), maxWorldBytes)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	var w World
	if err := d.Decode(&w); err != nil {
		return nil, worldError(err)
	}
	if len(bytes.TrimSpace(data[d.InputOffset():])) > 0 {
		return nil, schemas.Invalid("", "more than one JSON value")
	}
	if err := w.validate(); err != nil {
		return nil, err
	}
	return &w, nil
}

// worldError names the field where encoding/json knows it.
func worldError(err error) error {
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &kind):
		return schemas.Invalid(kind.Field, "a JSON %s does not fit, want %s", kind.Value, kind.Type)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return schemas.Invalid("", "the JSON ends too early")
	}
	return schemas.Invalid("", "%v", err)
}
