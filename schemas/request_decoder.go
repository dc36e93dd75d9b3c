package schemas

import (
	"math"
	"slices"
)

// readJobRequest decodes a job request. It returns false if encoding/json has to decode it.
func readJobRequest(data []byte) (q JobRequest, ok bool) {
	r := jsonReader{data: data, ok: true}
	r.object(func(key []byte) { r.requestField(&q, key) })
	return q, r.atEnd()
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
	case "elastic":
		q.Elastic = r.boolean()
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
		q.SLO, r.ok = Duration(span), r.ok && err == nil && span != 0
	case "weights":
		q.Weights = r.weights(q.Weights)
	case "confidence":
		q.Confidence = r.float()
	case "promise":
		q.Promise = Promise(r.text())
	case "nodes":
		q.Nodes = r.texts()
	case "new_nodes":
		q.NewNodes = r.boolean()
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

// weights reads weights into w, which holds the values of an earlier key "weights", or is nil.
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

// counts reads an array of whole numbers. The capacity suffices for every valid request, so that
// reading takes one allocation.
func (r *jsonReader) counts() []int {
	counts := make([]int, 0, MaxCandidates)
	r.list(func() { counts = append(counts, r.count()) })
	return slices.Clone(counts)
}

// texts reads an array of strings.
func (r *jsonReader) texts() []string {
	texts := []string{}
	r.list(func() { texts = append(texts, string(r.text())) })
	return texts
}
