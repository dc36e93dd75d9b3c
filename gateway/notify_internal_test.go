package gateway

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
)

// webhook is a receiver of notifications. It answers the first requests with the given statuses, then
// with 204, and refuses a wrong signature.
func webhook(t *testing.T, secret string, statuses ...int) (address string, got chan Notification) {
	got = make(chan Notification, 100)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if len(statuses) > 0 {
			w.WriteHeader(statuses[0])
			statuses = statuses[1:]
			return
		}
		body, _ := io.ReadAll(r.Body)
		have := r.Header.Get("Courier-Signature")
		at, _, _ := strings.Cut(strings.TrimPrefix(have, "t="), ",")
		seconds, _ := strconv.ParseInt(at, 10, 64)
		if want := signature(secret, time.Unix(seconds, 0), body); have != want {
			t.Errorf("signature %q, want %q", have, want)
		}
		var n Notification
		if err := json.Unmarshal(body, &n); err != nil {
			t.Errorf("body %s: %v", body, err)
		}
		got <- n
		w.WriteHeader(http.StatusNoContent)
	}))
	t.Cleanup(s.Close)
	return s.URL, got
}

func testNotifier(o Outward, jobs map[string]schemas.JobStatus) *notifier {
	status := func(_ context.Context, id string) (schemas.JobStatus, error) {
		if s, found := jobs[id]; found {
			return s, nil
		}
		return schemas.JobStatus{}, schemas.ErrNotFound
	}
	counter := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "sent"}, []string{"result"})
	n := newNotifier(o, status, slog.New(slog.DiscardHandler), counter)
	n.pause = time.Microsecond
	return n
}

func jobStamp(job string) schemas.JobStamp {
	return schemas.JobStamp{Stamp: schemas.Stamp{EventID: job + "/event"}, JobID: job, Run: 1}
}

func TestNotifier_SaysWhatHappened(t *testing.T) {
	missed, kept := false, true
	jobs := map[string]schemas.JobStatus{
		"late": {
			JobID: "late", Model: "cnn", User: "ada", State: schemas.StateFinished, SLOSeconds: 600, MetSLO: &missed,
			Labels: map[string]string{"team": "vision"}, NotLearned: "its clock went backwards",
		},
		"kept": {JobID: "kept", Model: "mlp", User: "bob", State: schemas.StateFinished, MetSLO: &kept},
		"gone": {JobID: "gone", Model: "mlp", State: schemas.StateLost},
	}
	events := []schemas.Event{
		&schemas.Risk{JobStamp: jobStamp("late"), Message: "slow epochs"},
		&schemas.Risk{JobStamp: jobStamp("kept"), Message: "in time again", Cleared: true},
		&schemas.Ended{JobStamp: jobStamp("late"), Outcome: schemas.EventFinished},
		&schemas.Ended{JobStamp: jobStamp("kept"), Outcome: schemas.EventFinished},
		&schemas.Ended{JobStamp: jobStamp("gone"), Outcome: schemas.EventLost, Reason: "silent"},
		&schemas.Ended{JobStamp: jobStamp("unknown"), Outcome: schemas.EventFailed},
		&schemas.Drift{State: schemas.DriftActive, Message: "jobs take twice as long"},
		&schemas.Drift{State: schemas.DriftReplaced, Message: "a newer fit knows"},
		&schemas.Promoted{},
		&schemas.Promoted{}, // reported once
	}
	for name, test := range map[string]struct {
		o    Outward
		want []string
	}{
		"all": {Outward{}, []string{
			"Job late (cnn) of ada: at risk: slow epochs",
			"Job kept (mlp) of bob: in time again",
			"Job late (cnn) of ada: finished, and missed its SLO of 10m",
			"Job gone (mlp): lost: silent",
			"Drift: jobs take twice as long",
			"Job late (cnn) of ada: not learned from: its clock went backwards",
		}},
		"one user": {Outward{NotifyUsers: []string{"bob", "eve"}}, []string{"Job kept (mlp) of bob: in time again"}},
		"a label": {Outward{NotifyLabels: []string{"team=audio", "team=vision"}}, []string{
			"Job late (cnn) of ada: at risk: slow epochs",
			"Job late (cnn) of ada: finished, and missed its SLO of 10m",
			"Job late (cnn) of ada: not learned from: its clock went backwards",
		}},
	} {
		n := testNotifier(test.o, jobs)
		var got []string
		for _, e := range events {
			for _, notice := range n.notices(t.Context(), e) {
				got = append(got, notice.Text)
			}
		}
		if strings.Join(got, "\n") != strings.Join(test.want, "\n") {
			t.Errorf("%s: notifications\n%s\nwant\n%s", name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}

// A run that later fits set nothing aside of is forgotten.
func TestNotifier_ForgetsLearnedRuns(t *testing.T) {
	n := testNotifier(Outward{}, map[string]schemas.JobStatus{"kept": {JobID: "kept", State: schemas.StateFinished}})
	n.notices(t.Context(), &schemas.Ended{JobStamp: jobStamp("kept"), Outcome: schemas.EventFinished})
	for range learnChecks {
		if len(n.unlearned) != 1 {
			t.Fatalf("%d jobs are checked before %d fits, want 1", len(n.unlearned), learnChecks)
		}
		n.notices(t.Context(), &schemas.Promoted{})
	}
	if len(n.unlearned) != 0 {
		t.Errorf("%d jobs are checked after %d fits, want none", len(n.unlearned), learnChecks)
	}
}

func TestNotifier_RetriesWhatMayPass(t *testing.T) {
	for name, test := range map[string]struct {
		statuses []int
		sent     float64
	}{
		"accepted":     {nil, 1},
		"busy twice":   {[]int{503, 429}, 1},
		"always down":  {[]int{500, 500, 500, 500}, 0},
		"refused":      {[]int{400}, 0},
		"moved":        {[]int{302}, 0},
		"down, denied": {[]int{502, 403}, 0},
	} {
		address, got := webhook(t, "key", test.statuses...)
		n := testNotifier(Outward{Notify: address, NotifySecret: "key"}, nil)
		n.deliver(t.Context(), &Notification{Text: "model <!channel>", Kind: notifyRisk})
		sent := testutil.ToFloat64(n.counter.WithLabelValues("sent"))
		failed := testutil.ToFloat64(n.counter.WithLabelValues("failed"))
		if sent != test.sent || failed != 1-test.sent || len(got) != int(test.sent) {
			t.Errorf("%s: %v sent, %v failed, %d received, want %v sent", name, sent, failed, len(got), test.sent)
		}
		if test.sent == 1 && (<-got).Text != "model &lt;!channel&gt;" {
			t.Errorf("%s: the text is not escaped for Slack", name)
		}
	}
}

func TestNotifier_DropsWhatDoesNotFit(t *testing.T) {
	n := testNotifier(Outward{}, nil)
	for range maxNotices + 3 {
		n.take(&schemas.Risk{})
		n.take(&schemas.Epoch{}) // no reason for a notification
	}
	if dropped := testutil.ToFloat64(n.counter.WithLabelValues("dropped")); dropped != 3 {
		t.Errorf("%v events dropped, want 3", dropped)
	}
}

// An error that is logged does not contain the address, which is a secret for Slack.
func TestNotifier_HidesItsAddress(t *testing.T) {
	n := testNotifier(Outward{Notify: "http://127.0.0.1:1/secret"}, nil)
	if _, err := n.send(t.Context(), nil); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("send to a closed port = %v, want an error without the address", err)
	}
	for _, o := range []Outward{{Notify: "secret"}, {JobLinks: map[string]string{"logs": "javascript:alert(1)"}}} {
		if err := o.validate(); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("validate(%+v) = %v, want an error without the address", o, err)
		}
	}
}

// An event that is lost because the status of its job is unknown, or because too many jobs are remembered,
// is counted.
func TestNotifier_CountsWhatItCannotCheck(t *testing.T) {
	n := testNotifier(Outward{}, map[string]schemas.JobStatus{"kept": {JobID: "kept", State: schemas.StateFinished}})
	n.notices(t.Context(), &schemas.Risk{JobStamp: jobStamp("unknown")})
	n.notices(t.Context(), &schemas.Ended{JobStamp: jobStamp("unknown"), Outcome: schemas.EventLost})
	n.unlearned["forgotten"] = 0
	n.notices(t.Context(), &schemas.Promoted{})
	if failed := testutil.ToFloat64(n.counter.WithLabelValues("failed")); failed != 3 || len(n.unlearned) != 0 {
		t.Errorf("%v failed and %d jobs are checked again, want 3 and none", failed, len(n.unlearned))
	}

	for i := range maxUnlearned {
		n.unlearned[strconv.Itoa(i)] = 0
	}
	n.notices(t.Context(), &schemas.Ended{JobStamp: jobStamp("kept"), Outcome: schemas.EventFinished})
	if dropped := testutil.ToFloat64(n.counter.WithLabelValues("dropped")); dropped != 1 {
		t.Errorf("%v jobs dropped, want 1", dropped)
	}
}
