package schemas

import (
	"slices"
	"time"
)

// Features describes a job and its load as a regressor learns from them.
type Features struct {
	BatchSize  uint32 // samples per iteration
	CPUs       uint32 // processes of the job
	Load       Load   // this job included
	EpochsDone uint32 // epochs after which the target holds
}

// Span is the period in which a started job ran.
type Span struct {
	JobID string
	Nodes []string
	CPUs  uint32
	From  time.Time
	Until time.Time // zero: the job still runs

	Hardware []Hardware // of the nodes, in their order; missing entries are unknown
	Foreign  []Foreign  // foreign load of the nodes, in their order, for LoadNow
	Usage    Usage      // of the epochs so far
}

// hardware returns the hardware of the node with index i.
func (s *Span) hardware(i int) (h Hardware) {
	if i < len(s.Hardware) {
		h = s.Hardware[i]
	}
	return h
}

// runsOn reports whether the span's job runs on the node.
func (s *Span) runsOn(node string) bool { return slices.Contains(s.Nodes, node) }

// overlap returns how much of the span lies between from and until.
func (s *Span) overlap(from, until time.Time) time.Duration {
	if s.From.After(from) {
		from = s.From
	}
	if !s.Until.IsZero() && s.Until.Before(until) {
		until = s.Until
	}
	return max(0, until.Sub(from))
}

// LoadBetween returns the time-weighted load of the job self between from and until, computed from
// the spans of the other jobs, and the node with that load. For a job on several nodes it is the
// most loaded node. The foreign load is unknown; ForeignDuring returns it for an epoch.
func LoadBetween(self Span, spans []Span, from, until time.Time) (Load, Hardware) {
	return self.highestLoad(func(node string) Load {
		return loadOn(node, self, spans, from, until)
	})
}

// highestLoad returns the load of the job's most loaded node, and that node.
func (s *Span) highestLoad(loadOn func(node string) Load) (highest Load, on Hardware) {
	for i, node := range s.Nodes {
		l, h := loadOn(node), s.hardware(i)
		if i == 0 || MoreLoaded(l.Processes, h, highest.Processes, on) {
			highest, on = l, h
		}
	}
	if on.Cores > 0 {
		highest.ProcessesPerCore = highest.Processes / float64(on.Cores)
	}
	return highest, on
}

// loadOn returns the time-weighted load of the job self on one of its nodes.
func loadOn(node string, self Span, spans []Span, from, until time.Time) Load {
	l := Load{ConcurrentJobs: 1, Processes: float64(self.CPUs)}
	whole := until.Sub(from)
	if whole <= 0 {
		return l
	}
	for i := range spans {
		s := &spans[i]
		if s.JobID == self.JobID || !s.runsOn(node) {
			continue
		}
		share := float64(s.overlap(from, until)) / float64(whole)
		l.ConcurrentJobs += share
		l.Processes += share * float64(s.CPUs)
	}
	return l
}

// LoadNow returns the load that the job self has, or would have, together with the jobs whose spans
// have no end. It also returns the hardware of the node with that load. The foreign load is taken
// from self.
func LoadNow(self Span, spans []Span) (Load, Hardware) {
	return self.highestLoad(func(node string) Load {
		l := Load{ConcurrentJobs: 1, Processes: float64(self.CPUs)}
		if i := slices.Index(self.Nodes, node); i < len(self.Foreign) {
			self.Foreign[i].Set(&l)
		}
		for i := range spans {
			s := &spans[i]
			if s.JobID != self.JobID && s.Until.IsZero() && s.runsOn(node) {
				l.ConcurrentJobs++
				l.Processes += float64(s.CPUs)
			}
		}
		return l
	})
}
