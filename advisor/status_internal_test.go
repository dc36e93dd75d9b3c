package advisor

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/advisor/cluster"
	"courier/advisor/decide"
	"courier/schemas"
)

// imported applies the start and the end of a job, stored in January, of an earlier time.
func imported(c *cluster.Cluster, id, model string, began time.Time, sequence uint64) {
	stored := time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)
	stamp := func(at time.Time) schemas.JobStamp {
		return schemas.JobStamp{Stamp: schemas.Stamp{At: at}, JobID: id, Run: 1}
	}
	setting := schemas.Setting{Model: model, BatchSize: 8, CPUs: 1, Epochs: 1, Nodes: []string{"Rack-7"}}
	c.Apply(&schemas.Started{JobStamp: stamp(began), Setting: setting}, sequence, stored)
	c.Apply(&schemas.Ended{
		JobStamp: stamp(began.Add(time.Hour)), Setting: setting, Outcome: "finished", EpochsDone: 1,
	}, sequence+1, stored)
}

func listed(t *testing.T, c *cluster.Cluster, q schemas.JobListRequest) (ids []string, next string) {
	t.Helper()
	page, next, err := list(c, &q)
	if err != nil {
		t.Fatal(err)
	}
	for i := range page {
		ids = append(ids, page[i].JobID)
	}
	return ids, next
}

// restarted returns the cluster after a restart from its snapshot.
func restarted(t *testing.T, c *cluster.Cluster) *cluster.Cluster {
	t.Helper()
	var b bytes.Buffer
	if err := c.Freeze().Encode(&b); err != nil {
		t.Fatal(err)
	}
	next, err := cluster.Decode(&b)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func TestList_IsOrderedByTheTimeOfTheJobs(t *testing.T) {
	c := cluster.New()
	day := func(n int) time.Time { return time.Date(2026, time.May, n, 0, 0, 0, 0, time.UTC) }
	imported(c, "second", "cnn", day(2), 1)
	imported(c, "third", "cnn", day(3), 3)
	imported(c, "first", "cnn", day(1), 5) // imported last
	imported(c, "also-third", "cnn", day(3), 7)
	want := []string{"also-third", "third", "second", "first"}
	if got, _ := listed(t, c, schemas.JobListRequest{}); !slices.Equal(got, want) {
		t.Errorf("list = %v, want %v", got, want)
	}
	if got, _ := listed(t, restarted(t, c), schemas.JobListRequest{}); !slices.Equal(got, want) {
		t.Errorf("list of a snapshot = %v, want %v", got, want)
	}
}

// Open jobs are found however many newer ones have ended.
func TestList_SelectsOpenAndEndedJobs(t *testing.T) {
	c := cluster.New()
	at := time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)
	c.Apply(&schemas.Started{
		JobStamp: schemas.JobStamp{Stamp: schemas.Stamp{EventID: "open-1", At: at}, JobID: "open", Run: 1},
		Setting:  schemas.Setting{Model: "mlp", BatchSize: 8, CPUs: 1, Epochs: 9, Nodes: []string{"rack-7"}},
	}, 1, at)
	for i := range 60 {
		imported(c, fmt.Sprint("j", i), "mlp", at.Add(time.Duration(i+1)*time.Hour), uint64(3+2*i))
	}
	for _, test := range []struct {
		selection schemas.StateSelection
		want      []string
	}{
		{schemas.SelectOpen, []string{"open"}},
		{schemas.SelectEnded, []string{"j59", "j58"}},
		{"running", []string{"open"}},
		{"", []string{"j59", "j58"}},
	} {
		got, _ := listed(t, c, schemas.JobListRequest{State: test.selection, Limit: 2})
		if !slices.Equal(got, test.want) {
			t.Errorf("list of %q jobs = %v, want %v", test.selection, got, test.want)
		}
	}
	want := map[schemas.State]int{schemas.StateRunning: 1, schemas.StateFinished: 60}
	if got := c.CountByState(); !maps.Equal(got, want) {
		t.Errorf("totals = %v, want %v", got, want)
	}
}

func TestList_Searches(t *testing.T) {
	c := cluster.New()
	at := time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)
	imported(c, "a-1", "ResNet50", at, 1)
	imported(c, "b-resnet", "mlp", at.Add(time.Hour), 3)
	imported(c, "c-1", "mlp", at.Add(2*time.Hour), 5)
	risky := &schemas.Started{
		JobStamp: schemas.JobStamp{
			Stamp: schemas.Stamp{EventID: "d-1", At: at.Add(3 * time.Hour)}, JobID: "d-1", Run: 1,
		},
		Setting: schemas.Setting{Model: "mlp", BatchSize: 8, CPUs: 1, Epochs: 9, Nodes: []string{"rack-8"}},
		User:    "ada",
	}
	c.Apply(risky, 9, risky.At)
	c.Job("d-1").Risk = &schemas.Risk{JobStamp: risky.JobStamp}
	c.Job("c-1").Risk = &schemas.Risk{JobStamp: schemas.JobStamp{JobID: "c-1", Run: 1}} // it has ended
	for name, test := range map[string]struct {
		q    schemas.JobListRequest
		want []string
	}{
		"text":                {schemas.JobListRequest{Search: "resnet"}, []string{"b-resnet", "a-1"}},
		"text in any case":    {schemas.JobListRequest{Search: "MLP"}, []string{"d-1", "c-1", "b-resnet"}},
		"text of a node":      {schemas.JobListRequest{Search: "rack-7"}, []string{"c-1", "b-resnet", "a-1"}},
		"no such text":        {schemas.JobListRequest{Search: "bert"}, nil},
		"user":                {schemas.JobListRequest{User: "ada"}, []string{"d-1"}},
		"part of a user":      {schemas.JobListRequest{User: "ad"}, nil},
		"model":               {schemas.JobListRequest{Model: "mlp"}, []string{"d-1", "c-1", "b-resnet"}},
		"node":                {schemas.JobListRequest{Node: "rack-8"}, []string{"d-1"}},
		"at risk":             {schemas.JobListRequest{AtRisk: true}, []string{"d-1"}},
		"two states":          {schemas.JobListRequest{State: "running,lost"}, []string{"d-1"}},
		"since":               {schemas.JobListRequest{Since: at.Add(3 * time.Hour)}, []string{"d-1", "c-1"}},
		"until":               {schemas.JobListRequest{Until: at.Add(time.Hour)}, []string{"a-1"}},
		"dataset":             {schemas.JobListRequest{Dataset: "digits"}, nil},
		"missed":              {schemas.JobListRequest{Missed: true}, nil},
		"label":               {schemas.JobListRequest{Label: "team=vision"}, nil},
		"model, but not node": {schemas.JobListRequest{Model: "mlp", Node: "rack-9"}, nil},
	} {
		got, next := listed(t, c, test.q)
		if !slices.Equal(got, test.want) || next != "" {
			t.Errorf("%s: %v and next %q, want %v", name, got, next, test.want)
		}
	}
}

// One request searches maxSearched jobs; the next page continues after them.
func TestList_BoundsASearch(t *testing.T) {
	c := cluster.New()
	at := time.Date(2026, time.May, 1, 0, 0, 0, 0, time.UTC)
	imported(c, "oldest", "bert", at, 1)
	for i := range maxSearched {
		imported(c, fmt.Sprint("j", i), "mlp", at.Add(time.Duration(i+1)*time.Second), uint64(3+2*i))
	}
	q := schemas.JobListRequest{Search: "bert"}
	got, next := listed(t, c, q)
	if len(got) != 0 || next != "j0" {
		t.Fatalf("first page = %v and next %q, want no job and next j0", got, next)
	}
	q.After = next
	if got, next = listed(t, c, q); !slices.Equal(got, []string{"oldest"}) || next != "" {
		t.Errorf("second page = %v and next %q, want oldest and no next", got, next)
	}
}

// Jobs without the figure are last in both directions, and a page continues after the last job of the
// previous one.
func TestSortedPage(t *testing.T) {
	job := func(id string, probability float64) schemas.JobStatus {
		return schemas.JobStatus{JobID: id, SLOSeconds: 60, Probability: &probability}
	}
	none := schemas.JobStatus{JobID: "none"}
	for _, test := range []struct {
		q    schemas.JobListRequest
		want string
		next string
	}{
		{schemas.JobListRequest{Sort: "probability"}, "c b a none", ""},
		{schemas.JobListRequest{Sort: "-probability"}, "a b c none", ""},
		{schemas.JobListRequest{Sort: "probability", Limit: 2}, "c b", "b"},
		{schemas.JobListRequest{Sort: "probability", Limit: 2, After: "b"}, "a none", ""},
		{schemas.JobListRequest{Sort: "-id"}, "none c b a", ""},
	} {
		jobs := []schemas.JobStatus{job("a", 0.9), none, job("b", 0.5), job("c", 1e-7)}
		page, next, err := sortedPage(jobs, &test.q)
		var ids []string
		for i := range page {
			ids = append(ids, page[i].JobID)
		}
		if got := strings.Join(ids, " "); err != nil || got != test.want || next != test.next {
			t.Errorf("sortedPage(%+v) = %s, next %q, %v, want %s, %q", test.q, got, next, err, test.want, test.next)
		}
	}
	for _, field := range schemas.JobOrders() {
		if field != "id" && sortKey(&schemas.JobStatus{JobID: "same"}, field) == "same" {
			t.Errorf("%q is an order without a field", field)
		}
	}
}

// The status of an admitted job says for how long its CPUs are reserved, and that of a started one does not.
func TestDraftStatus_HasTheReservation(t *testing.T) {
	c, events := cluster.New(), queuedJob(t)
	events[1].(*schemas.JobAdmitted).Advice.Admission = &schemas.Admission{Verdict: schemas.Admitted}
	at := events[1].(*schemas.JobAdmitted).Advice.At
	reserved := func(after time.Duration) float64 {
		j := c.Job(events[0].(*schemas.Submitted).JobID)
		d := draftStatus(c, j, statusOf(j), at.Add(after))
		return d.status.ReservedSeconds
	}
	for i, want := range [][2]float64{{0, 0}, {50, 0}, {0, 0}} { // queued, admitted, started
		c.Apply(events[i], uint64(i+1), at)
		if got := [2]float64{reserved(10 * time.Second), reserved(time.Hour)}; got != want {
			t.Errorf("after %s: reserved for %v s, want %v", events[i].Subject(), got, want)
		}
	}
}

// The status of a running job has the reason of an advised change of its CPUs, until it is carried out.
func TestStatusOf_ProposesAChangeOfTheCPUs(t *testing.T) {
	c, now := cluster.New(), time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)
	setting := schemas.Setting{Model: "cnn", BatchSize: 8, CPUs: 2, Epochs: 9, Nodes: []string{"a"}}
	stamp := schemas.JobStamp{Stamp: schemas.Stamp{At: now}, JobID: "job", Run: 1}
	j := c.Apply(&schemas.Started{JobStamp: stamp, Setting: setting}, 1, now)
	j.Advice = cluster.Summarize(&schemas.Advice{
		JobStamp: stamp, Action: schemas.ActionCPUs, Message: "1 CPU instead of 2 CPUs",
		Chosen: &schemas.Alternative{CPUs: 1},
	})
	if got := statusOf(j).Proposal; got != "1 CPU instead of 2 CPUs" {
		t.Errorf("proposal %q, want the message of the advice", got)
	}
	j.Setting.CPUs = 1
	if got := statusOf(j).Proposal; got != "" {
		t.Errorf("proposal %q after the change, want none", got)
	}
}

// Whoever asks between two events reads the decision of the last advice, although the probability of a late job
// has fallen since then.
func TestComplete_DecisionIsThatOfTheLastAdvice(t *testing.T) {
	var a Advisor
	r := advisortest.Regressors(t)
	a.regressors.Store(&r)
	c, now := cluster.New(), time.Date(2027, time.January, 1, 0, 0, 0, 0, time.UTC)
	q := advisortest.Request().WithDefaults()
	q.JobID, q.BatchSizes = "job", []int{16}
	submitted := &schemas.Submitted{Request: q, Advice: *decide.Decide(decide.Ask(c, q, now), r, now)}
	submitted.JobID, submitted.At = "job", now
	c.Apply(submitted, 1, now)
	started := advisortest.StartedEvent("job", 1)
	started.At = now
	c.Apply(started, 2, now)
	j, later := c.Job("job"), now.Add(6*time.Second)
	waiting := *j
	waiting.State, waiting.Run = schemas.StateSubmitted, 0
	for after, isKnown := range map[time.Duration]bool{time.Second: true, time.Hour: false} { // its deadline is between
		d := draftStatus(c, &waiting, statusOf(&waiting), now.Add(after))
		if (d.status.Probability != nil) != isKnown {
			t.Errorf("submitted, after %s: probability %v, want it known: %t", after, d.status.Probability, isKnown)
		}
	}
	d := draftStatus(c, j, statusOf(j), later)
	s := a.complete(&d, later)
	if s.Decision != schemas.MeetsSLO || s.Decision != j.Advice.Decision || *s.Probability > decide.LikelyMissed {
		t.Errorf("status %+v, want the decision of the answer and a probability below a half", s)
	}
	j.EpochsDone, j.LastEpochAt = j.Setting.Epochs, now.Add(2*time.Second)
	d = draftStatus(c, j, statusOf(j), later)
	if s = a.complete(&d, later); s.PredictedEndAt == nil || !s.PredictedEndAt.Equal(j.LastEpochAt) {
		t.Errorf("end at %v while it works after its last epoch, want %v", s.PredictedEndAt, j.LastEpochAt)
	}
}

// A list by probability has the jobs in the order of the figures that it shows, although it predicts most of them
// without their alternatives. A brief list has none, but the warnings.
func TestList_ByProbability(t *testing.T) {
	a := Advisor{clock: time.Now, cluster: cluster.New()}
	r := advisortest.Regressors(t)
	a.regressors.Store(&r)
	begin := time.Now().Add(-3 * time.Second)
	for n := range uint64(20) {
		q := advisortest.Request().WithDefaults()
		q.JobID, q.Nodes = fmt.Sprint("job-", n), []string{fmt.Sprint("node-", n)}
		q.SLO = schemas.Duration(10*time.Second + time.Duration(n*7%20)*200*time.Millisecond)
		submitted := &schemas.Submitted{Request: q, Advice: *decide.Decide(decide.Ask(a.cluster, q, begin), r, begin)}
		submitted.JobID, submitted.At = q.JobID, begin
		started, epoch := advisortest.StartedEvent(q.JobID, 1), advisortest.EpochEvent(q.JobID, 1, 1)
		started.At, epoch.At, started.Nodes, epoch.Nodes = begin, begin.Add(time.Second), q.Nodes, q.Nodes
		for i, e := range []schemas.Event{submitted, started, epoch} {
			a.cluster.Apply(e, 3*n+uint64(i)+1, begin)
		}
	}
	list := func(q schemas.JobListRequest) []schemas.JobStatus {
		reply, err := a.list(t.Context(), &q)
		if err != nil {
			t.Fatal(err)
		}
		return reply.(schemas.JobList).Jobs
	}
	shown, seen := list(schemas.JobListRequest{Sort: "probability", Brief: true}), map[float64]bool{}
	for i, j := range shown {
		seen[*j.Probability] = true
		if i > 0 && *j.Probability < *shown[i-1].Probability {
			t.Errorf("%s with %g is after one with %g", j.JobID, *j.Probability, *shown[i-1].Probability)
		}
	}
	if len(shown) != 20 || len(seen) < 10 {
		t.Errorf("%d jobs with %d probabilities, want 20 with at least 10", len(shown), len(seen))
	}
	if j := list(schemas.JobListRequest{Brief: true})[0]; j.Probability != nil && j.PredictedEndAt != nil {
		t.Errorf("a brief list has %+v, want no prediction", j)
	}
}
