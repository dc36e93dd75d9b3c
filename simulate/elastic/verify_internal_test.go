package elastic

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"courier/policy"
)

// Verified is what a schedule reaches under the rules.
type Verified struct {
	Kept         map[string]bool // jobs that complete all iterations by their deadline
	Moments      int
	HeldSeconds  float64 // GPUs times time
	PauseSeconds float64 // GPUs times pauses; a part of HeldSeconds
}

// Verify is a second implementation of the rules: it checks a schedule against a trace and computes what
// it reaches. It reads nothing but its arguments.
func Verify(trace []TraceJob, rates Throughputs, o Options, schedule []Stretch) (*Verified, error) {
	jobs := map[string]*TraceJob{}
	for i := range trace {
		jobs[trace[i].ID] = &trace[i]
	}
	byJob := map[string][]Stretch{}
	for _, s := range schedule {
		if err := checkStretch(jobs[s.Job], rates, s, o.AllowBatchChange); err != nil {
			return nil, fmt.Errorf("job %q at %s: %w", s.Job, s.Start, err)
		}
		byJob[s.Job] = append(byJob[s.Job], s)
	}
	for id, stretches := range byJob {
		joined, err := join(stretches)
		if err != nil {
			return nil, fmt.Errorf("job %q: %w", id, err)
		}
		byJob[id] = joined
	}
	if err := checkCapacity(byJob, o.GPUs); err != nil {
		return nil, err
	}
	moments, err := momentsOf(byJob, o.Slot)
	if err != nil {
		return nil, err
	}

	v := &Verified{Kept: map[string]bool{}, Moments: len(moments)}
	for i := range trace { // in the order of the trace: sums of floats are the same each time
		job := &trace[i]
		if stretches := byJob[job.ID]; len(stretches) > 0 {
			v.run(job, rates[job.Model][stretches[0].BatchSize], o.pause(), moments, stretches)
		}
	}
	return v, nil
}

func checkStretch(job *TraceJob, rates Throughputs, s Stretch, allowBatchChange bool) error {
	switch {
	case job == nil:
		return fmt.Errorf("the trace has no such job")
	case s.End <= s.Start:
		return fmt.Errorf("the stretch ends at %s", s.End)
	case s.Start < job.Submitted:
		return fmt.Errorf("the job is submitted at %s", job.Submitted)
	case s.BatchSize != job.BatchSize && !allowBatchChange:
		return fmt.Errorf("batch size %d instead of %d", s.BatchSize, job.BatchSize)
	case rates[job.Model][s.BatchSize].Rate(s.GPUs) <= 0:
		return fmt.Errorf("%d GPUs at batch size %d are not profiled", s.GPUs, s.BatchSize)
	}
	return nil
}

// join orders the stretches of a job and merges touching ones with the same number of GPUs.
func join(stretches []Stretch) ([]Stretch, error) {
	sortSchedule(stretches)
	joined := stretches[:1]
	for _, s := range stretches[1:] {
		last := &joined[len(joined)-1]
		switch {
		case s.Start < last.End:
			return nil, fmt.Errorf("stretches overlap at %s", s.Start)
		case s.BatchSize != last.BatchSize:
			return nil, fmt.Errorf("the batch size changes at %s", s.Start)
		case s.Start == last.End && s.GPUs == last.GPUs:
			last.End = s.End
		default:
			joined = append(joined, s)
		}
	}
	return joined, nil
}

func checkCapacity(byJob map[string][]Stretch, capacity int) error {
	type change struct {
		at   time.Duration
		gpus int
	}
	var changes []change
	for _, stretches := range byJob {
		for _, s := range stretches {
			changes = append(changes, change{s.Start, s.GPUs}, change{s.End, -s.GPUs})
		}
	}
	slices.SortFunc(changes, func(a, b change) int { // ends before starts
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.gpus, b.gpus))
	})
	held := 0
	for _, c := range changes {
		if held += c.gpus; held > capacity {
			return fmt.Errorf("%d of %d GPUs are held at %s", held, capacity, c.at)
		}
	}
	return nil
}

// momentsOf returns the times at which a stretch starts.
func momentsOf(byJob map[string][]Stretch, slot time.Duration) ([]time.Duration, error) {
	var moments []time.Duration
	for _, stretches := range byJob {
		for _, s := range stretches {
			moments = append(moments, s.Start)
		}
	}
	slices.Sort(moments)
	moments = slices.Compact(moments)
	for i := 1; i < len(moments); i++ {
		if moments[i]-moments[i-1] < slot {
			return nil, fmt.Errorf("moments at %s and %s, slot %s", moments[i-1], moments[i], slot)
		}
	}
	return moments, nil
}

func (v *Verified) run(job *TraceJob, curve policy.Curve, pause policy.Pause,
	moments []time.Duration, stretches []Stretch) {
	need := job.Iterations * float64(job.BatchSize) / float64(stretches[0].BatchSize)
	left, tolerance := need, 1e-9*need+1e-6 // the rounding error that sums of iterations may have
	kept, isDone := false, false
	for _, s := range stretches {
		v.HeldSeconds += float64(s.GPUs) * (s.End - s.Start).Seconds()
		first, _ := slices.BinarySearch(moments, s.Start)
		for i := first; i < len(moments) && moments[i] < s.End; i++ {
			at, until := moments[i], s.End
			if pause.Charge == policy.ChargeChanged || pause.Charge == policy.ChargeNone {
				if i > first {
					break
				}
			} else if i+1 < len(moments) {
				until = min(until, moments[i+1])
			}
			wait := pause.Seconds(s.GPUs, i == first, pause.Restarts(i))
			wait = min(wait, (until - at).Seconds())
			v.PauseSeconds += float64(s.GPUs) * wait

			done := ((until - at).Seconds() - wait) * curve.Rate(s.GPUs)
			if !isDone && done >= left-tolerance {
				isDone = true
				end := at.Seconds() + wait + max(0, left)/curve.Rate(s.GPUs)
				kept = end <= job.Deadline.Seconds()+1e-6
			}
			left -= done
		}
	}
	if kept {
		v.Kept[job.ID] = true
	}
}
