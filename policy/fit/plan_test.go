package fit_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"courier/policy"
	"courier/policy/speed"
)

var now = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// job returns a job in a shape, with an hour of work left and the true model.
func job(id string, s speed.Shape) training {
	report := speed.StepReport{Shape: s, StepSeconds: truth.StepSeconds(s)}
	return training{ID: id, Training: policy.Training{
		Facts: facts, Requested: s, Shape: s, Model: speeds, Pause: 20 * time.Second,
		Window:           []speed.StepReport{report, report, report},
		RemainingSamples: 3600 * facts.Speed(s, truth.StepSeconds(s)),
	}}
}

// wasteful is a shape with more cores for each worker than it can use, and too few servers.
var wasteful = speed.Shape{Workers: 4, WorkerCores: 8, Servers: 1, ServerCores: 1}

func TestPlan_FollowsTheQueue(t *testing.T) {
	tests := map[string]struct {
		view clusterView
		want policy.Reason
	}{
		"free cores and no queue":           {clusterView{FreeCores: 100}, policy.ReasonGrow},
		"neither free cores nor a queue":    {clusterView{}, policy.ReasonExchange},
		"a queue":                           {clusterView{QueuedJobs: 1}, policy.ReasonShrink},
		"a queue that needs the free cores": {clusterView{QueuedJobs: 1, FreeCores: 100}, policy.ReasonShrink},
	}
	for name, test := range tests {
		s := wasteful
		if test.want == policy.ReasonGrow {
			s, _ = speeds.Fastest(12)
		}
		test.view.Jobs = []training{job("a", s)}
		moves, _ := planAt(&test.view, now, largest)
		if len(moves) != 1 || moves[0].Reason != test.want {
			t.Errorf("%s: moves %+v, want one to %s", name, moves, test.want)
		}
	}
}

func TestPlan_LeavesJobsAlone(t *testing.T) {
	for name, change := range map[string]func(j *training){
		"without a model":         func(j *training) { j.Model = nil },
		"with a short window":     func(j *training) { j.Window = j.Window[:2] },
		"that jump":               func(j *training) { j.Window[1].StepSeconds *= 2 },
		"that end soon":           func(j *training) { j.RemainingSamples /= 100 },
		"that rest":               func(j *training) { j.Record.RestUntil = now.Add(time.Second) },
		"whose window is not new": func(j *training) { j.Shape.Workers++ },
	} {
		v := &clusterView{QueuedJobs: 1, Jobs: []training{job("a", wasteful)}}
		change(&v.Jobs[0])
		if moves, _ := planAt(v, now, largest); len(moves) != 0 {
			t.Errorf("jobs %s: moves %+v, want none", name, moves)
		}
	}
}

// A job that gives up cores ends no later than in the requested shape, nor than its deadline.
func TestPlan_ShrinksWithinTheDeadline(t *testing.T) {
	v := &clusterView{QueuedJobs: 1, Jobs: []training{job("a", wasteful)}}
	moves, _ := planAt(v, now, largest)
	to := moves[0].To
	if ends := 20 + v.Jobs[0].RemainingSamples/facts.Speed(to, truth.StepSeconds(to)); ends > 3600 {
		t.Errorf("%v ends after %g s, want at most an hour", to, ends)
	}
	v.Jobs[0].Deadline = now.Add(10 * time.Second)
	if moves, _ := planAt(v, now, largest); len(moves) == 1 && moves[0].Reason == policy.ReasonShrink {
		t.Errorf("a job with a deadline in 10 s shrinks: %+v", moves)
	}
}

// A job may give up cores if its speed without them is known, but not if one window leaves it so
// uncertain that the job may end late.
func TestPlan_ShrinksOnlyIfTheEndIsAlmostCertain(t *testing.T) {
	r := reportOf(truth, wasteful)
	seen := []speed.ShapeTime{speed.NewShapeTime([]speed.StepReport{r, r, r})}
	for name, test := range map[string]struct {
		model *speed.Model
		want  []policy.Reason
	}{
		"known":   {speeds, []policy.Reason{policy.ReasonShrink}},
		"learned": {speed.Learn(facts, seen, nil, largest), nil},
	} {
		j := job("a", wasteful)
		j.Model = test.model
		j.DoneSamples, j.RemainingSamples = 0.6*j.RemainingSamples, 0.4*j.RemainingSamples
		j.Elapsed = 36 * time.Minute
		v := &clusterView{QueuedJobs: 1, Jobs: []training{j}}
		moves, _ := planAt(v, now, largest)
		var rules []policy.Reason
		for _, m := range moves {
			rules = append(rules, m.Reason)
		}
		if !slices.Equal(rules, test.want) {
			t.Errorf("%s model: moves %+v, want %v", name, moves, test.want)
		}
	}
}

func TestPlan_UndoesAMoveThatBroughtNothing(t *testing.T) {
	better := speed.Shape{Workers: 4, WorkerCores: 4, Servers: 4, ServerCores: 1}
	j := job("a", better)
	j.Requested = wasteful
	gain, _ := speeds.Gain(wasteful, better)
	j.Record.Trial = &policy.Trial{
		From: wasteful, StepSeconds: truth.StepSeconds(better) / 2, Reports: 3, Gain: gain,
	}
	v := &clusterView{FreeCores: 100, Jobs: []training{j}}
	moves, records := planAt(v, now, largest)
	if len(moves) != 1 || moves[0].Reason != policy.ReasonUndo || moves[0].To != wasteful {
		t.Fatalf("moves %+v, want back to %v", moves, wasteful)
	}
	record := records["a"]
	if record.Fruitless != 1 || len(record.Barred) != 1 || record.Barred[0].Shape != better {
		t.Errorf("record %+v, want one fruitless move and its shape barred", record)
	}

	// A second fruitless move makes the job rest.
	v.Jobs[0].Record.Fruitless = 1
	if _, records = planAt(v, now, largest); !records["a"].RestUntil.Equal(now.Add(300 * time.Second)) {
		t.Errorf("rests until %s, want 300 s", records["a"].RestUntil)
	}
	// A move that brought its gain is kept.
	v.Jobs[0].Record.Trial.StepSeconds = truth.StepSeconds(wasteful)
	if moves, _ = planAt(v, now, largest); len(moves) == 1 && moves[0].Reason == policy.ReasonUndo {
		t.Errorf("moves %+v, want no way back from a gain", moves)
	}
}

// Jobs that gave up cores and would end too late take them back although a queue waits.
func TestPlan_RestoresAJobThatWouldEndLate(t *testing.T) {
	j := job("a", speed.Shape{Workers: 2, WorkerCores: 2, Servers: 1, ServerCores: 1})
	j.Requested = speed.Shape{Workers: 4, WorkerCores: 4, Servers: 3, ServerCores: 1}
	v := &clusterView{QueuedJobs: 1, FreeCores: 30, Jobs: []training{j}}
	moves, _ := planAt(v, now, largest)
	if len(moves) != 1 || moves[0].Reason != policy.ReasonRestore || moves[0].To.Cores() > j.Requested.Cores() {
		t.Errorf("moves %+v, want one that restores at most the requested cores", moves)
	}
}

// Of equal jobs, the one with the least time to its deadline gets the free cores.
func TestPlan_PrefersTheLeastSlack(t *testing.T) {
	s, _ := speeds.Fastest(12)
	relaxed, urgent := job("relaxed", s), job("urgent", s)
	relaxed.Deadline, urgent.Deadline = now.Add(9*time.Hour), now.Add(2*time.Hour)
	v := &clusterView{FreeCores: 4, Jobs: []training{relaxed, urgent}}
	moves, _ := planAt(v, now, largest)
	if len(moves) == 0 || moves[0].Job != "urgent" {
		t.Errorf("moves %+v, want the urgent job first", moves)
	}
}

// source reads numbers from bytes; zeros follow the last byte.
type source struct{ data []byte }

func (s *source) next(limit int) int {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return int(b) % limit
}

func (s *source) shape() speed.Shape {
	return speed.Shape{Workers: s.next(7) - 1, WorkerCores: s.next(6), Servers: s.next(5), ServerCores: s.next(4)}
}

// viewOf builds a view from bytes, with valid and invalid shapes and numbers.
func viewOf(data []byte) *clusterView {
	s := &source{data}
	v := &clusterView{FreeCores: s.next(40) - 5, QueuedJobs: s.next(3)}
	for i := range s.next(6) {
		f := facts
		f.HasServers = s.next(3) == 0
		j := training{ID: fmt.Sprint(i), Training: policy.Training{
			Facts: f, Shape: s.shape(), Requested: s.shape(),
			Pause:            time.Duration(s.next(40)) * time.Second,
			RemainingSamples: float64(s.next(200)) * 1e4, DoneSamples: float64(s.next(100)) * 1e3,
			Elapsed: time.Duration(s.next(200)) * 10 * time.Second,
		}}
		if !f.HasServers {
			j.Shape.Servers, j.Shape.ServerCores = 0, 0
		}
		if !j.Requested.IsValid(f.HasServers) && s.next(8) > 0 {
			j.Requested = j.Shape
		}
		for range s.next(6) {
			j.Window = append(j.Window, speed.StepReport{
				Shape: j.Shape, StepSeconds: 1 + float64(s.next(20))/100,
				WorkerCPURatio: float64(s.next(11)) / 10, ServerCPURatio: float64(s.next(11)) / 10,
				LinkRatio: float64(s.next(11)) / 10,
			})
		}
		if s.next(3) > 0 && len(j.Window) > 0 && j.Shape.IsValid(f.HasServers) {
			j.Model = speed.Learn(f, []speed.ShapeTime{speed.NewShapeTime(j.Window)}, nil, largest)
		} else {
			known := &speed.KnownModel{Facts: f, Coefficients: truth.Coefficients, Knee: 4}
			j.Model = known.Speeds(largest)
		}
		if s.next(4) == 0 {
			j.Deadline = now.Add(time.Duration(s.next(100)-20) * time.Minute)
		}
		if s.next(3) == 0 {
			j.Record.Trial = &policy.Trial{
				From: s.shape(), StepSeconds: 1, Reports: 3, Gain: float64(s.next(10)) / 10,
			}
		}
		if s.next(3) == 0 {
			until := now.Add(time.Duration(s.next(20)-10) * time.Minute)
			j.Record.Barred = []policy.BarredShape{{Shape: s.shape(), Until: until}}
		}
		v.Jobs = append(v.Jobs, j)
	}
	return v
}

// checkPlan fails a test if a decision breaks a rule.
func checkPlan(t *testing.T, v *clusterView) int {
	t.Helper()
	moves, records := planAt(v, now, largest)
	free, moved := max(0, v.FreeCores), map[string]bool{}
	for _, m := range moves {
		if moved[m.Job] {
			t.Fatalf("job %s moves twice", m.Job)
		}
		moved[m.Job] = true
		if m.To.Workers < 1 || m.To.WorkerCores < 1 || m.To.Servers < 0 || m.To.ServerCores < 0 || m.To == m.From {
			t.Fatalf("move %+v", m)
		}
		if math.IsNaN(m.SpeedRatio) || m.LowerSpeedRatio > m.SpeedRatio {
			t.Fatalf("move %+v: lower bound above the mean", m)
		}
		free -= max(0, m.To.Cores()-m.From.Cores())
		at := slices.IndexFunc(v.Jobs, func(j training) bool { return j.ID == m.Job })
		checkRules(t, &v.Jobs[at], &m)
	}
	if free < 0 {
		t.Fatalf("moves %+v take %d cores more than are free", moves, -free)
	}
	if len(records) != len(v.Jobs) {
		t.Fatalf("%d records of %d jobs", len(records), len(v.Jobs))
	}
	return len(moves)
}

// checkRules fails a test if a move breaks a rule that holds for all policies: a job that would meet
// its deadline still does, a move saves twice its cost, and a barred shape does not come back.
func checkRules(t *testing.T, j *training, m *resizing) {
	t.Helper()
	before := j.RemainingSamples / j.Facts.Speed(j.Shape, j.Model.StepSeconds(j.Shape))
	after := before / m.LowerSpeedRatio
	left := j.Deadline.Sub(now).Seconds()
	const rounding = 1e-6
	pause := j.Pause.Seconds()
	if !j.Deadline.IsZero() && before <= left && pause+after > left+rounding {
		t.Fatalf("move %+v: the job ends %g s after its deadline", m, pause+after-left)
	}
	isFaster := m.Reason != policy.ReasonShrink && m.Reason != policy.ReasonUndo
	if isFaster && before-after < 2*pause-rounding {
		t.Fatalf("move %+v saves %g s, and pauses for %g s", m, before-after, pause)
	}
	isBarred := slices.ContainsFunc(j.Record.Barred, func(b policy.BarredShape) bool {
		return b.Shape == m.To && b.Until.After(now)
	})
	if isBarred && m.Reason != policy.ReasonUndo {
		t.Fatalf("move %+v: the shape is barred", m)
	}
}

func FuzzPlan(f *testing.F) {
	f.Add([]byte("some jobs in shapes, with windows and records of their moves, and a queue that waits"))
	f.Fuzz(func(t *testing.T, data []byte) { checkPlan(t, viewOf(data)) })
}

func TestPlan_KeepsTheRulesOnRandomViews(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	moves := 0
	for range 2000 {
		data := make([]byte, random.IntN(200))
		for i := range data {
			data[i] = byte(random.IntN(256))
		}
		moves += checkPlan(t, viewOf(data))
	}
	if moves < 200 {
		t.Errorf("%d moves on 2000 views: do the views still contain stable jobs?", moves)
	}
}
