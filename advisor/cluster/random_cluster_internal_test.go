package cluster

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/schemas"
)

// logged is an event of the log.
type logged struct {
	event    schemas.Event
	sequence uint64
	at       time.Time
}

// randomCluster generates the events of a cluster and applies them to its state. The same seed
// gives the same events.
type randomCluster struct {
	c        *Cluster
	random   *rand.Rand
	now      time.Time
	sequence uint64
	log      []logged // of the JOB and NODE streams, as one
	made     int      // number of jobs
	copies   bool     // the log has duplicates and late copies
}

func newRandomCluster(c *Cluster, seed uint64) *randomCluster {
	return &randomCluster{
		c:      c,
		random: rand.New(rand.NewPCG(seed, 17)),
		now:    time.Date(2026, time.November, 21, 8, 0, 0, 0, time.UTC),
		copies: true,
	}
}

// step generates mostly an event, sometimes a request or a check.
func (w *randomCluster) step(t testing.TB) {
	w.now = w.now.Add(time.Duration(w.random.IntN(2000)) * time.Millisecond)
	if w.random.IntN(500) == 0 { // a long gap
		w.now = w.now.Add(time.Duration(w.random.IntN(40)) * time.Hour)
	}
	switch n := w.random.IntN(100); {
	case n < 15:
		w.submit()
	case n < 27:
		w.start()
	case n < 55:
		w.epoch()
	case n < 67:
		w.end()
	case n < 72:
		w.admit()
	case n < 77:
		w.advise()
	case n < 80:
		w.risk()
	case n < 90:
		w.sample()
	case n < 93:
		w.repeat()
	case n < 95:
		w.loseSilentJobs()
	case n < 96:
		w.onAlive()
	case n < 98:
		w.move()
	default:
		w.ask()
	}
}

func (w *randomCluster) apply(e schemas.Event) *Job {
	w.sequence++
	w.log = append(w.log, logged{e, w.sequence, w.now})
	return w.c.Apply(e, w.sequence, w.now)
}

func (w *randomCluster) pick(all ...string) string { return all[w.random.IntN(len(all))] }

func (w *randomCluster) probability() *float64 {
	return new(float64(w.random.IntN(1000)) / 1000)
}

// node returns one of a few frequent nodes, or a new one.
func (w *randomCluster) node() string {
	if w.random.IntN(10) > 0 {
		return fmt.Sprintf("node-%d", w.random.IntN(12))
	}
	return fmt.Sprintf("pod-%d", w.random.IntN(1_000_000))
}

func (w *randomCluster) nodes() []string {
	all := []string{w.node()}
	if w.random.IntN(5) == 0 {
		all = append(all, w.node())
	}
	return all
}

func (w *randomCluster) model() string {
	if w.random.IntN(5) > 0 {
		return fmt.Sprintf("model-%d", w.random.IntN(5))
	}
	return fmt.Sprintf("run-%d", w.random.IntN(1_000_000))
}

func (w *randomCluster) setting() schemas.Setting {
	return schemas.Setting{
		Model:     w.model(),
		Dataset:   w.pick("", "cifar10", "imagenet"),
		BatchSize: uint32(16 << w.random.IntN(4)),
		CPUs:      uint32(1 + w.random.IntN(4)),
		Epochs:    uint32(1 + w.random.IntN(6)),
		Nodes:     w.nodes(),
	}
}

func (w *randomCluster) stamp(id string, job string, run uint32) schemas.JobStamp {
	at := w.now.Add(-time.Duration(w.random.IntN(3000)) * time.Millisecond)
	if w.random.IntN(50) == 0 { // a wrong clock, a spooled event or an imported run
		at = at.Add(time.Duration(w.random.IntN(240)-200) * time.Minute)
	}
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: id, At: at}, JobID: job, Run: run}
}

// job returns a recent job, any job, or an unknown one.
func (w *randomCluster) job() string {
	switch n := w.random.IntN(20); {
	case w.made == 0 || n == 0:
		return fmt.Sprintf("stray-%d", w.random.IntN(50))
	case n < 3:
		return fmt.Sprintf("job-%d", w.random.IntN(w.made))
	}
	return fmt.Sprintf("job-%d", max(0, w.made-1-w.random.IntN(60)))
}

func (w *randomCluster) submit() {
	s := w.setting()
	id := fmt.Sprintf("job-%d", w.made)
	w.made++
	if w.random.IntN(20) == 0 {
		id = w.job() // an existing job
	}
	q := schemas.JobRequest{
		JobID:      id,
		Model:      s.Model,
		Dataset:    s.Dataset,
		CPUs:       schemas.CPUs{int(s.CPUs)},
		BatchSizes: []int{int(s.BatchSize), 512},
		Epochs:     int(s.Epochs),
		Confidence: float64(80+w.random.IntN(19)) / 100,
		User:       w.pick("ada", "grace", ""),
		Labels:     map[string]string{"team": "x"},
	}
	if w.random.IntN(4) > 0 {
		q.SLO = schemas.Duration(time.Duration(1+w.random.IntN(600)) * time.Second)
	}
	if w.random.IntN(3) == 0 {
		q.Parameters = uint64(w.random.IntN(1000))
	}
	e := &schemas.Submitted{Request: q, Advice: *w.advice(id, &s, &q)}
	e.JobStamp = w.stamp(id+"/submitted", id, 0)
	e.Advice.Action = schemas.ActionStart
	if n := w.random.IntN(10); n < 6 {
		verdict := [...]schemas.Verdict{
			schemas.Queued, schemas.Queued, schemas.Queued, schemas.Admitted, schemas.Admitted,
			schemas.Refused,
		}[n]
		e.Advice.Admission = &schemas.Admission{Policy: schemas.AdmissionQueue, Verdict: verdict}
		e.Advice.Message = string(verdict) + ", as it is: so"
	}
	w.apply(e)
}

func (w *randomCluster) advice(id string, s *schemas.Setting, q *schemas.JobRequest) *schemas.Advice {
	chosen := schemas.Alternative{
		BatchSize:         s.BatchSize,
		CPUs:              s.CPUs,
		Epochs:            s.Epochs,
		PredictedSeconds:  w.probability(),
		UpperBoundSeconds: w.probability(),
		Probability:       w.probability(),
	}
	*chosen.PredictedSeconds = 1 + 10**chosen.PredictedSeconds
	*chosen.UpperBoundSeconds += *chosen.PredictedSeconds
	a := &schemas.Advice{
		JobStamp: w.stamp(id+"/submitted", id, 0),
		Model:    s.Model,
		Dataset:  s.Dataset,
		Nodes:    s.Nodes,
		Decision: [...]schemas.Decision{
			schemas.MeetsSLO, schemas.MeetsSLO, schemas.BestEffort, schemas.Exploring,
		}[w.random.IntN(4)],
		Action:       schemas.ActionKeep,
		Confidence:   q.Confidence,
		Load:         schemas.Load{Processes: float64(s.CPUs)},
		Chosen:       &chosen,
		Alternatives: []schemas.Alternative{chosen},
		Regressors:   map[string]string{schemas.TargetEpochTime: w.pick("one", "two")},
	}
	a.At = w.now
	return a
}

func (w *randomCluster) start() {
	id := w.job()
	s := w.setting()
	run := uint32(1)
	if j := w.c.Job(id); j != nil {
		if run = j.Run + 1; w.random.IntN(2) == 0 && j.Run > 0 {
			return // most jobs run once
		}
		if p := j.Promise; p != nil && w.random.IntN(5) > 0 { // as advised
			s.Model, s.BatchSize, s.CPUs, s.Epochs = j.Request.Model, p.BatchSize, p.CPUs, p.Epochs
		}
		if s.Model == "" {
			s.Model = "model-0"
		}
	}
	e := &schemas.Started{
		Setting:   s,
		NodeCores: uint32(w.random.IntN(3) * 4),
		User:      w.pick("ada", ""),
	}
	e.HeartbeatSeconds = float64(10 * w.random.IntN(2))
	e.JobStamp = w.stamp(schemas.StartedID(id, run), id, run)
	w.apply(e)
}

// running returns a running job, or nil.
func (w *randomCluster) running() *Job {
	if len(w.c.running) == 0 {
		return nil
	}
	ids := make([]string, 0, len(w.c.running))
	for id := range w.c.running {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return w.c.jobs[ids[w.random.IntN(len(ids))]]
}

func (w *randomCluster) epoch() {
	id, run, number, s := w.job(), uint32(1), uint32(1), w.setting()
	j := w.running()
	if w.random.IntN(6) == 0 {
		j = w.c.Job(id) // may be lost or ended
	}
	if j != nil {
		id, run, number = j.ID, max(1, j.Run), j.EpochsDone+1
		if len(j.Setting.Nodes) > 0 {
			s = j.Setting
		}
		if w.random.IntN(10) == 0 {
			s.BatchSize *= 2
		}
		if w.random.IntN(30) == 0 { // the job moves, or its start event was lost
			s.Nodes, run = w.nodes(), run+uint32(w.random.IntN(2))
		}
	}
	e := &schemas.Epoch{
		Setting:         s,
		Epoch:           number,
		DurationSeconds: 1 + *w.probability(),
		Accuracy:        w.probability(),
		NodeIOWaitRatio: w.probability(),
	}
	e.JobStamp = w.stamp(schemas.EpochID(id, run, number), id, run)
	w.apply(e)
}

// move reports CPUs that are in effect from the next epoch of a job on, or from an earlier one.
func (w *randomCluster) move() {
	j := w.running()
	if j == nil {
		return
	}
	e := &schemas.Moved{
		Move:    schemas.MoveCPUs,
		Outcome: schemas.MoveApplied,
		ToCPUs:  uint32(1 + w.random.IntN(4)),
		Epoch:   j.EpochsDone + uint32(w.random.IntN(2)),
	}
	e.JobStamp = w.stamp(schemas.MovedID(j.ID, j.Run, e.Epoch), j.ID, j.Run)
	w.apply(e)
}

func (w *randomCluster) end() {
	id, run, s, done := w.job(), uint32(1), w.setting(), uint32(0)
	j := w.running()
	if w.random.IntN(6) == 0 {
		j = w.c.Job(id)
	}
	if j != nil {
		id, run, done = j.ID, j.Run, j.EpochsDone
		if len(j.Setting.Nodes) > 0 {
			s = j.Setting
		}
	}
	outcome := w.pick(schemas.EventFinished, schemas.EventFinished, schemas.EventFinished,
		schemas.EventFailed, schemas.EventCancelled, schemas.EventLost, schemas.EventFound)
	if outcome == schemas.EventFinished {
		done = s.Epochs
	}
	eventID := schemas.EndedID(id, run, outcome)
	if outcome == schemas.EventLost && j != nil {
		eventID = schemas.LostID(id, j.Last)
	}
	if outcome == schemas.EventFound && j != nil {
		eventID = schemas.FoundID(id, j.Last)
	}
	e := &schemas.Ended{
		Outcome:    outcome,
		Setting:    s,
		EpochsDone: done,
		Accuracy:   w.probability(),
		Reason:     "it " + outcome,
	}
	e.JobStamp = w.stamp(eventID, id, run)
	w.apply(e)
}

// admit admits a job, whether it is queued or not.
func (w *randomCluster) admit() {
	id := w.job()
	if queue := w.c.Queue(); len(queue) > 0 && w.random.IntN(10) > 0 {
		id = queue[w.random.IntN(min(3, len(queue)))].ID
	}
	j := w.c.Job(id)
	if j == nil || j.Request == nil {
		return
	}
	s := w.setting()
	a := w.advice(id, &s, j.Request)
	a.EventID, a.Action, a.CauseSequence = schemas.AdmittedID(id), schemas.ActionStart, w.sequence
	a.Admission = &schemas.Admission{Policy: schemas.AdmissionQueue, Verdict: schemas.Admitted}
	w.apply(schemas.NewJobAdmitted(a))
}

func (w *randomCluster) advise() {
	j := w.running()
	if j == nil {
		return
	}
	a := w.advice(j.ID, &j.Setting, &schemas.JobRequest{Confidence: 0.95})
	a.Run, a.CauseSequence, a.EventID = j.Run, w.sequence, schemas.AdviceID(j.ID, w.sequence)
	w.apply(a)
}

func (w *randomCluster) risk() {
	j := w.running()
	if j == nil {
		return
	}
	r := &schemas.Risk{
		CauseSequence: w.sequence,
		Cause:         schemas.CauseEpochs,
		Cleared:       w.random.IntN(2) == 0,
		Probability:   *w.probability(),
	}
	r.JobStamp = w.stamp(schemas.RiskID(j.ID, w.sequence), j.ID, j.Run)
	w.apply(r)
}

func (w *randomCluster) sample() {
	speed := float64(1+w.random.IntN(3)) * 1e9
	w.apply(&schemas.Sample{
		Stamp:                    schemas.Stamp{At: w.now},
		Node:                     w.node(),
		Cores:                    uint32(2 << w.random.IntN(3)),
		CPUModel:                 w.pick("x", "y", ""),
		SpeedOperationsPerSecond: &speed,
		IntervalSeconds:          2,
	})
}

// repeat delivers an event again, usually late.
func (w *randomCluster) repeat() {
	if !w.copies || len(w.log) == 0 {
		return
	}
	old := w.log[len(w.log)-1-w.random.IntN(min(len(w.log), 3000))]
	if old.event != nil {
		w.apply(old.event)
	}
}

// loseSilentJobs records the silent jobs as lost.
func (w *randomCluster) loseSilentJobs() {
	for _, j := range w.c.Silent(w.now) {
		e := &schemas.Ended{
			Outcome:    schemas.EventLost,
			Setting:    j.Setting,
			EpochsDone: j.EpochsDone,
			Reason:     "silent",
		}
		e.JobStamp = w.stamp(schemas.LostID(j.ID, j.Last), j.ID, j.Run)
		w.apply(e)
	}
}

// onAlive applies heartbeats, which are not in the log: a nil event stands for them.
func (w *randomCluster) onAlive() {
	w.log = append(w.log, logged{nil, 0, w.now})
	applyHeartbeats(w.c, w.now)
}

func applyHeartbeats(c *Cluster, now time.Time) {
	for _, j := range c.running {
		j.LastSeen = now
	}
}

// ask reads the state, which must not change it.
func (w *randomCluster) ask() {
	s := w.setting()
	answerTo(w.c, new(schemas.JobRequest{Model: s.Model, CPUs: schemas.CPUs{int(s.CPUs)}, Confidence: 0.95}), w.now)
}

// answerTo returns what the state tells about a new request.
func answerTo(c *Cluster, q *schemas.JobRequest, now time.Time) []any {
	nodes := c.Placement(q, now)
	return []any{
		nodes, c.Hardware(nodes), c.Foreign(nodes, now), idsOf(c.Colocated(nodes, q.JobID, now)),
		c.Model(q),
	}
}

func idsOf(jobs []*Job) (ids []string) {
	for _, j := range jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// fingerprint returns the answers of a cluster at a time.
func fingerprint(t testing.TB, c *Cluster, now time.Time) string {
	t.Helper()
	var s strings.Builder
	line := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		s.Write(text)
		s.WriteByte('\n')
	}
	jobs, _ := c.NewestFirst("", "")
	for j := range jobs {
		line(j)
		line([]any{j.IsExpected(now), idsOf(c.Colocated(j.Setting.Nodes, j.ID, now)), c.ForeignOf(j, now)})
	}
	for _, model := range []string{"model-0", "model-3", "unknown"} {
		q := schemas.JobRequest{
			Model:      model,
			CPUs:       schemas.CPUs{2},
			Confidence: 0.9,
			SLO:        schemas.Duration(time.Minute),
		}
		line(answerTo(c, &q, now))
		line(c.OtherNodes(&q, nil, now))
		q.Nodes = []string{"node-1", "node-2"}
		line(answerTo(c, &q, now.Add(30*time.Second)))
	}
	line(idsOf(c.Queue()))
	for _, j := range c.Silent(now) { // last, because it drops expired jobs
		fmt.Fprintln(&s, "silent", j.ID)
	}
	line(ScoreOf(c.Ended(), &schemas.ScoreRequest{}, now))
	return s.String()
}

// firstDifference returns where two texts first differ, "" if they are equal.
func firstDifference(got, want string) string {
	if got == want {
		return ""
	}
	a, b := strings.Split(got, "\n"), strings.Split(want, "\n")
	for i := range a {
		if i >= len(b) {
			return fmt.Sprintf("line %d more: %s", i+1, a[i])
		}
		if a[i] != b[i] {
			return fmt.Sprintf("line %d:\n%s\nwant\n%s", i+1, a[i], b[i])
		}
	}
	return fmt.Sprintf("%d lines, want %d", len(a), len(b))
}
