package tune

import (
	"cmp"
	"slices"

	"courier/tune/halving"
)

// trialState is what is known about a trial.
type trialState struct {
	RankedTrial            // without its rank
	values      []string   // of the parameters
	entered     int        // stages in which it has started
	cpus        int        // of its last segment
	figures     []*float64 // that rank it, at the end of each completed stage
	isRunning   bool
}

// isOut reports whether the trial takes no further part.
func (t *trialState) isOut() bool { return t.Reason != "" }

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
	stages  []halving.Stage
	trials  []trialState
	active  map[int]*activeSegment
	speed   speedModel
	rows    []stageState
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

// stageState is a stage with its last plan before it started.
type stageState struct {
	StageRow
	started    float64 // elapsed seconds
	hasStarted bool
}

func newState(d Options) *tuningState {
	s := &tuningState{
		stages: stagesOf(d.Trials, d.Eta, d.Epochs),
		active: map[int]*activeSegment{},
	}
	for i, stage := range s.stages {
		row := StageRow{Stage: i + 1, Epochs: stage.Epochs, PlannedTrials: stage.Trials}
		s.rows = append(s.rows, stageState{StageRow: row})
	}
	for i, values := range d.Space.Draw(d.Seed, d.Trials) {
		t := trialState{RankedTrial: RankedTrial{Trial: i + 1, Parameters: map[string]string{}}, values: values}
		for k, p := range d.Space {
			t.Parameters[p.Name] = values[k]
		}
		s.trials = append(s.trials, t)
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
			if p.Stage >= 0 && p.Stage < len(s.rows) {
				row := &s.rows[p.Stage]
				row.CPUs, row.PlannedTrials = p.CPUs, p.Trials
				row.PredictedSeconds, row.PredictedCoreSeconds = p.Seconds, p.CoreSeconds
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
	row := &s.rows[g.Stage]
	if !row.hasStarted {
		row.started, row.hasStarted = s.elapsed, true
	}
	if t.entered <= g.Stage {
		t.entered = g.Stage + 1
		row.Trials++
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
	t.SpentEpochs++
	if a.IsProbe {
		return
	}
	if isFirst && a.From > 0 {
		s.continues = e.Number > a.From
	}
	t.Epochs = e.Number
	// A figure that is not reported with each epoch stays.
	t.Loss, t.Accuracy = cmp.Or(e.Loss, t.Loss), cmp.Or(e.Accuracy, t.Accuracy)
}

// best returns the trial with the best last figure; nil if none has one.
func (s *tuningState) best() *trialState {
	var best *trialState
	for i := range s.trials {
		t := &s.trials[i]
		isWorse := best != nil && s.compareTrials(&t.RankedTrial, &best.RankedTrial) > 0
		if !t.isOut() && s.figure(&t.RankedTrial) != nil && !isWorse {
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
	t.Seconds += max(0, e.Seconds)
	t.CoreSeconds += coreSeconds
	if a.IsProbe {
		s.probed += coreSeconds
		return
	}
	t.isRunning = false
	row := &s.rows[a.Stage]
	row.Seconds = s.elapsed - row.started
	row.CoreSeconds += coreSeconds
	switch e.Outcome {
	case OutcomeDone:
		t.Stage = max(t.Stage, a.Stage+1)
		for len(t.figures) < t.Stage {
			t.figures = append(t.figures, s.figure(&t.RankedTrial))
		}
		if t.Epochs == 0 {
			s.drop(t, "no epoch was recognized in its output")
		} else if s.figure(&t.RankedTrial) == nil {
			s.drop(t, "it reported no "+cmp.Or(s.objective, "loss or accuracy"))
		}
	case OutcomeFailed:
		s.drop(t, cmp.Or(e.Reason, "it failed"))
	}
}

// drop takes a trial out.
func (s *tuningState) drop(t *trialState, reason string) {
	t.Reason = reason
	s.failed++
	s.firstError = cmp.Or(s.firstError, reason)
}

// figure returns the figure by which trials are ranked.
func (s *tuningState) figure(t *RankedTrial) *float64 {
	if s.objective == ObjectiveLoss {
		return t.Loss
	}
	return t.Accuracy
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
func (s *tuningState) compareTrials(a, b *RankedTrial) int {
	return cmp.Or(s.compare(s.figure(a), s.figure(b)), cmp.Compare(b.Epochs, a.Epochs),
		cmp.Compare(a.Trial, b.Trial))
}

// top returns the best trials that have completed a stage, by their figures at its end, also those
// that failed later.
func (s *tuningState) top(stage, count int) []*trialState {
	var ended []*trialState
	for i := range s.trials {
		if t := &s.trials[i]; t.Stage > stage && t.figures[stage] != nil {
			ended = append(ended, t)
		}
	}
	slices.SortStableFunc(ended, func(a, b *trialState) int { return s.compare(a.figures[stage], b.figures[stage]) })
	return ended[:min(count, len(ended))]
}
