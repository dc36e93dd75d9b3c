package decide

import (
	"math"
	"slices"

	"courier/advisor/cluster"
	"courier/regress/evidence"
	"courier/schemas"
)

// stopsOf returns how earlier jobs of the model ended, if the job may stop early like them. A job with a
// target accuracy stops at its target.
func stopsOf(q *schemas.JobRequest, m *cluster.Model) []cluster.EpochsEnd {
	if q.TargetAccuracy > 0 || !q.MayStopEarly && !m.StopsEarly() {
		return nil
	}
	return m.Ends
}

// setStop sets whether a job ends as soon as it has reached its target accuracy: Courier chooses its epochs, and
// the last such job of the model did not run on.
func (q *Question) setStop(r *schemas.JobRequest, m *cluster.Model) {
	known := m.StopsAtTarget
	if r.MayStopEarly {
		known = new(true)
	}
	q.StopsAtTarget = r.TargetAccuracy > 0 && r.Epochs == 0 && (known == nil || *known)
	q.IsKnownToStop = q.StopsAtTarget && known != nil
}

// The deviation of the logarithm of the epoch at which a model stops, before it is measured, and its
// weight in jobs.
const (
	priorStopDeviation = 0.25
	stopWeight         = 2.0
)

// stopLevel is the share of jobs that stop before a late stop.
const stopLevel = 0.95

// stopsAt reports whether the job stops when it reaches its target: it has not yet, and reports its accuracy.
func (p *problem) stopsAt(passage *evidence.Passage) bool {
	m := p.Self
	return p.StopsAtTarget && passage.Known() && passage.By(int(p.EpochsDone())) < 1 &&
		(m == nil || m.EpochsDone == 0 || m.BestAccuracy != nil)
}

// lastEpochs returns the median of the last epoch of a job that has done some of its epochs and may stop by
// itself before they are over, and a late one: both are its last epoch if it does not stop.
func (c *candidate) lastEpochs(done, epochs uint32) (median, late uint32) {
	if !c.ends.Known() || epochs <= done {
		return epochs, epochs
	}
	stops, most := c.ends.After(int(done)), int(epochs)
	return uint32(stops.Epochs(0.5/stops.Reach, most)), uint32(stops.Epochs(stopLevel/stops.Reach, most))
}

// stopEpoch returns the distribution of the epoch at which jobs stop by themselves: of those with the
// batch size if some of them did, otherwise of all. A job that ran all of its epochs counts if these
// were as many as others needed; else it says nothing.
func stopEpoch(ends []cluster.EpochsEnd, batch uint32) (a evidence.Passage) {
	own := slices.DeleteFunc(slices.Clone(ends), func(e cluster.EpochsEnd) bool { return e.BatchSize != batch })
	if slices.ContainsFunc(own, cluster.EpochsEnd.IsEarly) {
		ends = own
	}
	var early, logs []float64
	for _, e := range ends {
		if e.IsEarly() {
			early = append(early, float64(e.Done))
		}
	}
	if len(early) == 0 {
		return a
	}
	slices.Sort(early)
	mean, squares := 0.0, 0.0
	for _, e := range ends {
		if e.IsEarly() || float64(e.Done) >= early[len(early)/2] {
			logs = append(logs, math.Log(float64(e.Done)))
			mean += logs[len(logs)-1]
		}
	}
	n := float64(len(logs))
	mean /= n
	for _, y := range logs {
		squares += (y - mean) * (y - mean)
	}
	const prior = priorStopDeviation * priorStopDeviation
	a.Reach, a.Location, a.Degrees = 1, mean, stopWeight+n-1
	a.Scale = math.Sqrt((stopWeight*prior + squares) / a.Degrees * (1 + 1/n))
	return a
}
