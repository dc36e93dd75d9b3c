package tune

import (
	"cmp"
	"slices"

	"courier/policy/cost"
)

// trialState is what is known about a trial.
type trialState struct {
	number      int
	values      []string // of the parameters
	completed   int      // stages
	entered     int      // stages in which it has started
	cpus        int      // of its last segment
	done        int      // its last epoch; lower again if the command started from the beginning
	spentEpochs int      // with repeated ones
	last        TrialEpoch
	losses      []*float64 // at the end of each completed stage
	accuracies  []*float64
	seconds     float64 // of all segments
	coreSeconds float64
	isRunning   bool
	reason      string // why it is out; empty: it is not
}

// isOut reports whether the trial takes no further part.
func (t *trialState) isOut() bool { return t.reason != "" }

// activeSegment is a segment that has not ended.
type activeSegment struct {
	Segment
	startedAt float64 // elapsed seconds
	epochs    []TrialEpoch
}

// isComplete reports whether the segment has reported all of its epochs.
func (a *activeSegment) isComplete() bool {
	n := len(a.epochs)
	return n > 0 && a.epochs[n-1].Number >= a.Epochs
}

// tuningState follows from the design and the lines of the record alone.
type tuningState struct {
	design  Options
	stages  []cost.Stage
	trials  []trialState
	active  map[int]*activeSegment
	speed   speedModel
	plan    []StagePlan // by stage; of each, the last one before it started
	spans   []stageSpan
	elapsed float64 // seconds
	spent   float64 // core-seconds
	probed  float64 // core-seconds of probes
	lastID  int
	hasPlan bool // one on measured times that keeps the bound

	objective  string // ObjectiveAccuracy or ObjectiveLoss; empty: not known yet
	continues  bool   // the command continues from a checkpoint
	failed     int    // trials that failed
	firstError string
}

// stageSpan is what a stage took.
type stageSpan struct {
	started     float64 // elapsed seconds
	ended       float64
	hasStarted  bool
	trials      int
	coreSeconds float64
}

func newState(d Options) *tuningState {
	s := &tuningState{
		design: d,
		stages: stagesOf(d.Trials, d.Eta, d.Epochs),
		active: map[int]*activeSegment{},
	}
	s.spans, s.plan = make([]stageSpan, len(s.stages)), make([]StagePlan, len(s.stages))
	for i, values := range d.Space.Draw(d.Seed, d.Trials) {
		s.trials = append(s.trials, trialState{number: i + 1, values: values})
	}
	if d.Objective != ObjectiveAuto {
		s.objective = d.Objective
	}
	s.continues = usesProgress(d.Command)
	return s
}

// apply adds a line of the record.
func (s *tuningState) apply(l *recordLine) {
	if l.Kind == kindOpen {
		s.endLost()
	}
	s.elapsed = max(s.elapsed, l.Elapsed)
	switch l.Kind {
	case kindStart:
		s.start(l.Segment)
	case kindEpoch:
		if a := s.active[l.ID]; a != nil {
			s.addEpoch(a, l.Epoch)
		}
	case kindEnd:
		if a := s.active[l.ID]; a != nil {
			s.end(a, l.Ending)
		}
	case kindPlan:
		s.hasPlan = s.hasPlan || !l.Exceeds
		for _, p := range l.Stages {
			if p.Stage >= 0 && p.Stage < len(s.plan) {
				s.plan[p.Stage] = p
			}
		}
	}
}

// endLost ends the segments of a process that was killed, at its last sign of life. A segment with all
// of its epochs is done.
func (s *tuningState) endLost() {
	for _, a := range s.running() {
		e := Ending{Outcome: OutcomeStopped, Seconds: max(0, s.elapsed-a.startedAt), HasStartInEpoch: true}
		if a.isComplete() {
			e.Outcome = OutcomeDone
		}
		s.end(a, &e)
	}
}

// trial returns a trial by its number; nil if there is none.
func (s *tuningState) trial(number int) *trialState {
	if number < 1 || number > len(s.trials) {
		return nil
	}
	return &s.trials[number-1]
}

// running returns the active segments in the order of their starts.
func (s *tuningState) running() []*activeSegment {
	var all []*activeSegment
	for _, a := range s.active {
		all = append(all, a)
	}
	slices.SortFunc(all, func(a, b *activeSegment) int { return cmp.Compare(a.ID, b.ID) })
	return all
}

func (s *tuningState) start(g *Segment) {
	t := s.trial(g.Trial)
	if t == nil || g.Stage < 0 || g.Stage >= len(s.stages) || g.CPUs < 1 || s.active[g.ID] != nil {
		return // of a damaged record
	}
	s.lastID = max(s.lastID, g.ID)
	s.active[g.ID] = &activeSegment{Segment: *g, startedAt: s.elapsed}
	if g.IsProbe {
		return
	}
	span := &s.spans[g.Stage]
	if !span.hasStarted {
		span.started, span.hasStarted = s.elapsed, true
	}
	if t.entered <= g.Stage {
		t.entered = g.Stage + 1
		span.trials++
	}
	t.cpus, t.isRunning = g.CPUs, true
}

func (s *tuningState) addEpoch(a *activeSegment, e *TrialEpoch) {
	isFirst := len(a.epochs) == 0
	a.epochs = append(a.epochs, *e)
	if s.objective == "" && (e.Accuracy != nil || e.Loss != nil) {
		s.objective = ObjectiveLoss
		if e.Accuracy != nil {
			s.objective = ObjectiveAccuracy
		}
	}
	t := s.trial(a.Trial)
	t.spentEpochs++
	if a.IsProbe {
		return
	}
	if isFirst && a.From > 0 {
		s.continues = e.Number > a.From
	}
	t.done = e.Number
	figures := *e // a figure that is not reported with each epoch stays
	figures.Loss, figures.Accuracy = cmp.Or(e.Loss, t.last.Loss), cmp.Or(e.Accuracy, t.last.Accuracy)
	t.last = figures
}

// best returns the trial with the best last figure; nil if none has one.
func (s *tuningState) best() *trialState {
	var best *trialState
	for i := range s.trials {
		t := &s.trials[i]
		if !t.isOut() && s.has(t) && (best == nil || s.compareTrials(t, best) < 0) {
			best = t
		}
	}
	return best
}

func (s *tuningState) end(a *activeSegment, e *Ending) {
	delete(s.active, a.ID)
	s.speed.add(a, e)
	t := s.trial(a.Trial)
	coreSeconds := float64(a.CPUs) * max(0, e.Seconds)
	s.spent += coreSeconds
	t.seconds += max(0, e.Seconds)
	t.coreSeconds += coreSeconds
	if a.IsProbe {
		s.probed += coreSeconds
		return
	}
	t.isRunning = false
	span := &s.spans[a.Stage]
	span.ended = max(span.ended, s.elapsed)
	span.coreSeconds += coreSeconds
	switch e.Outcome {
	case OutcomeDone:
		t.completed = max(t.completed, a.Stage+1)
		for len(t.losses) < t.completed {
			t.losses = append(t.losses, t.last.Loss)
			t.accuracies = append(t.accuracies, t.last.Accuracy)
		}
		if t.done == 0 {
			s.drop(t, "no epoch was recognized in its output")
		} else if !s.has(t) {
			s.drop(t, "it reported no "+cmp.Or(s.objective, "loss or accuracy"))
		}
	case OutcomeFailed:
		s.drop(t, cmp.Or(e.Reason, "it failed"))
	}
}

// drop takes a trial out.
func (s *tuningState) drop(t *trialState, reason string) {
	t.reason = reason
	s.failed++
	if s.firstError == "" {
		s.firstError = reason
	}
}

// has reports whether a trial has the figure by which trials are ranked.
func (s *tuningState) has(t *trialState) bool { return s.figure(t.last.Loss, t.last.Accuracy) != nil }

func (s *tuningState) figure(loss, accuracy *float64) *float64 {
	if s.objective == ObjectiveLoss {
		return loss
	}
	return accuracy
}

// compare orders two figures, the better one first. Unknown ones are last.
func (s *tuningState) compare(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	case s.objective == ObjectiveLoss:
		return cmp.Compare(*a, *b)
	}
	return cmp.Compare(*b, *a)
}

// compareTrials orders trials by their last figures, the better one first.
func (s *tuningState) compareTrials(a, b *trialState) int {
	return cmp.Or(
		s.compare(s.figure(a.last.Loss, a.last.Accuracy), s.figure(b.last.Loss, b.last.Accuracy)),
		cmp.Compare(b.done, a.done), cmp.Compare(a.number, b.number),
	)
}

// top returns the best trials that have completed a stage, by their figures at its end, also those
// that failed later.
func (s *tuningState) top(stage, count int) []*trialState {
	var ended []*trialState
	for i := range s.trials {
		t := &s.trials[i]
		if t.completed > stage && s.figure(t.losses[stage], t.accuracies[stage]) != nil {
			ended = append(ended, t)
		}
	}
	slices.SortFunc(ended, func(a, b *trialState) int {
		return cmp.Or(
			s.compare(s.figure(a.losses[stage], a.accuracies[stage]),
				s.figure(b.losses[stage], b.accuracies[stage])),
			cmp.Compare(a.number, b.number),
		)
	})
	return ended[:min(count, len(ended))]
}
