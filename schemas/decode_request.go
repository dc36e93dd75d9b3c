package schemas

import (
	"math"
	"slices"
)

// readJobRequest returns a job request, or false if encoding/json is to look at it.
func readJobRequest(data []byte) (q JobRequest, ok bool) {
	r := jsonReader{data: data, ok: true}
	r.object(func(key []byte) { r.requestField(&q, key) })
	r.next()
	return q, r.ok && r.at == len(data)
}

// requestField reads one field of a job request.
func (r *jsonReader) requestField(q *JobRequest, key []byte) {
	switch string(key) {
	case "id":
		q.JobID = string(r.text())
	case "model":
		q.Model = string(r.text())
	case "dataset":
		q.Dataset = string(r.text())
	case "parameters":
		q.Parameters = r.integer(math.MaxUint64)
	case "layers":
		q.Layers = uint32(r.integer(math.MaxUint32))
	case "training_samples":
		q.TrainingSamples = r.integer(math.MaxUint64)
	case "cpus":
		if r.next() == '[' {
			q.CPUs = r.counts()
		} else {
			q.CPUs = CPUs{r.count()}
		}
	case "batch_sizes":
		q.BatchSizes = r.counts()
	case "epochs":
		q.Epochs = r.count()
	case "max_epochs":
		q.MaxEpochs = r.count()
	case "target_accuracy":
		q.TargetAccuracy = r.float()
	case "slo":
		span, err := ParseDuration(string(r.text()))
		q.SLO, r.ok = Duration(span), r.ok && err == nil
	case "weights":
		q.Weights = r.weights(q.Weights)
	case "confidence":
		q.Confidence = r.float()
	case "promise":
		q.Promise = Promise(r.text())
	case "nodes":
		q.Nodes = r.names()
	case "user":
		q.User = string(r.text())
	case "labels":
		if q.Labels == nil {
			q.Labels = map[string]string{}
		}
		r.object(func(key []byte) { q.Labels[string(key)] = string(r.text()) })
	default:
		r.ok = false
	}
}

// weights reads those, into the ones that came before, if any did.
func (r *jsonReader) weights(w *Weights) *Weights {
	if w == nil {
		w = &Weights{}
	}
	r.object(func(key []byte) {
		switch string(key) {
		case "accuracy":
			w.Accuracy = r.float()
		case "time":
			w.Time = r.float()
		default:
			r.ok = false
		}
	})
	return w
}

func (r *jsonReader) count() int { return int(r.integer(math.MaxInt)) }

// counts reads a list of them; as many as may be valid cost one allocation.
func (r *jsonReader) counts() []int {
	all := make([]int, 0, MaxCandidates)
	r.list(func() { all = append(all, r.count()) })
	return slices.Clone(all)
}

// names reads a list of texts.
func (r *jsonReader) names() []string {
	all := []string{}
	r.list(func() { all = append(all, string(r.text())) })
	return all
}

// object reads one whose fields are read by their keys.
func (r *jsonReader) object(field func(key []byte)) {
	r.take('{')
	for first := true; r.ok && r.next() != '}'; first = false {
		if !first {
			r.take(',')
		}
		key := r.text()
		if r.take(':'); r.ok {
			field(key)
		}
	}
	r.take('}')
}

// list reads one by its elements.
func (r *jsonReader) list(element func()) {
	r.take('[')
	for first := true; r.ok && r.next() != ']'; first = false {
		if !first {
			r.take(',')
		}
		element()
	}
	r.take(']')
}
