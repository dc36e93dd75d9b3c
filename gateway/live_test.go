package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// eventClient reads server-sent events.
type eventClient struct {
	t    *testing.T
	scan *bufio.Scanner
}

// listen connects to receive new events.
func listen(t *testing.T, h *testGateway) *eventClient {
	t.Helper()
	return h.listen(t, "")
}

// listen connects with a query.
func (h *testGateway) listen(t *testing.T, query string) *eventClient {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	r, err := http.NewRequestWithContext(ctx, "GET", h.url+"/api/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	var resp *http.Response
	eventually(t, func() error { // a new gateway may not follow the log yet
		if resp, err = http.DefaultClient.Do(r); err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusServiceUnavailable {
			resp.Body.Close()
			return errors.New("GET /api/v1/events is unavailable")
		}
		return nil
	})
	t.Cleanup(func() { cancel(); resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK ||
		kind != "text/event-stream" {
		t.Fatalf("GET /api/v1/events%s = %d %s, want 200 text/event-stream", query,
			resp.StatusCode, kind)
	}
	if !resp.Uncompressed {
		t.Errorf("GET /api/v1/events%s is not compressed", query)
	}
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 2*schemas.MaxMessageBytes)
	return &eventClient{t: t, scan: scan}
}

// next returns the lines before the next empty line; ok is false at the end.
func (l *eventClient) next() (lines []string, ok bool) {
	for l.scan.Scan() {
		text := l.scan.Text()
		if text == "" {
			return lines, true
		}
		lines = append(lines, text)
	}
	return nil, false
}

// event returns the next event and skips comments.
func (l *eventClient) event() (kind string, data map[string]any) {
	l.t.Helper()
	for {
		lines, ok := l.next()
		if !ok {
			l.t.Fatalf("the events ended: %v", l.scan.Err())
		}
		if len(lines) != 2 || !strings.HasPrefix(lines[0], "event: ") {
			continue
		}
		if err := json.Unmarshal([]byte(strings.TrimPrefix(lines[1], "data: ")), &data); err != nil {
			l.t.Fatalf("event %q: %v", lines, err)
		}
		return strings.TrimPrefix(lines[0], "event: "), data
	}
}

// publish sends an event and returns its sequence.
func (h *testGateway) publish(t *testing.T, e schemas.Event) uint64 {
	t.Helper()
	sequence, err := h.bus.Publish(within(t), e)
	if err != nil {
		t.Fatal(err)
	}
	return sequence
}

// epoch returns an epoch of a job.
func epoch(t *testing.T, job string, n uint32) *schemas.Epoch {
	t.Helper()
	e := example[schemas.Epoch](t, "epoch")
	e.JobID, e.Epoch = job, n
	e.EventID = schemas.EpochID(job, e.Run, n)
	return e
}

// sample returns a sample of a node.
func sample(t *testing.T, node string, n uint64) *schemas.Sample {
	t.Helper()
	s := example[schemas.Sample](t, "sample")
	s.Node, s.Number = node, n
	s.EventID = schemas.SampleID(node, s.BootID, n)
	return s
}

func TestEvents_AreSentAsTheyAreStored(t *testing.T) {
	b := bustest.New(t)
	h := open(t, b, gateway.Options{})
	l := listen(t, h)
	for _, c := range []struct {
		kind  string
		event schemas.Event
	}{
		{"sample", example[schemas.Sample](t, "sample")},
		{"job", example[schemas.Submitted](t, "submitted")},
		{"job", example[schemas.JobAdmitted](t, "admitted")},
		{"job", example[schemas.Started](t, "started")},
		{"job", example[schemas.Epoch](t, "epoch")},
		{"advice", example[schemas.Advice](t, "advice")},
		{"job", example[schemas.Ended](t, "ended")},
		{"regressor", example[schemas.Trained](t, "trained")},
		{"regressor", example[schemas.Promoted](t, "promoted")},
		{"regressor", example[schemas.Drift](t, "drift")},
		{"regressor", example[schemas.Rejected](t, "rejected")},
	} {
		sequence, err := b.Publish(within(t), c.event)
		if err != nil {
			t.Fatal(err)
		}
		kind, data := l.event()
		raw, err := schemas.Marshal(c.event)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, data["event"]); kind != c.kind ||
			data["sequence"] != float64(sequence) || d != "" {
			t.Errorf("event of %s = %s number %v, want %s number %d (-want +got):\n%s",
				c.event.Subject(), kind, data["sequence"], c.kind, sequence, d)
		}
	}
}

func TestEvents_KeepASilentConnectionOpen(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{KeepAlive: time.Millisecond})
	for query, want := range map[string]string{"": ": keep-alive", "?changes=true": "event: change data: time"} {
		l := h.listen(t, query)
		for found := 0; found < 2; {
			lines, ok := l.next()
			if !ok {
				t.Fatal("the events ended")
			}
			if strings.Join(lines, " ") == want {
				found++
			}
		}
	}
}

// A client of changes gets the kinds of the events that match, without their content.
func TestEvents_AsChanges(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	l := h.listen(t, "?changes=true&type=job&job=a")
	h.publish(t, epoch(t, "b", 1))
	h.publish(t, sample(t, "node-a", 1))
	h.publish(t, epoch(t, "a", 1))
	for {
		lines, ok := l.next()
		if text := strings.Join(lines, " "); text == "event: change data: job" {
			return
		} else if !ok || strings.HasPrefix(text, "event:") {
			t.Fatalf("got %q, want a change of kind job alone", text)
		}
	}
}

func TestEvents_EndWhenTheGatewayStops(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	l := listen(t, h)
	if err := h.end(); err != nil {
		t.Fatalf("Run = %v, want nil", err)
	}
	for ok := true; ok; {
		_, ok = l.next()
	}
	if err := l.scan.Err(); err != nil {
		t.Errorf("the events ended with %v, want a clean end", err)
	}
	checkError(t, "GET /api/v1/events after the end", h.do(t, "GET", "/api/v1/events", ""), 503,
		schemas.CodeUnavailable, "")
}

func TestEvents_AreFiltered(t *testing.T) {
	b := bustest.New(t)
	h := open(t, b, gateway.Options{})
	publish := func(n int) {
		h.publish(t, epoch(t, "a", uint32(n)))
		h.publish(t, epoch(t, "b", uint32(n)))
		h.publish(t, sample(t, "node-a", uint64(n)))
		h.publish(t, sample(t, "node-b", uint64(n)))
		drift := example[schemas.Drift](t, "drift")
		drift.EventID = fmt.Sprintf("drift/%d", n)
		h.publish(t, drift)
		end := example[schemas.Advice](t, "advice")
		end.JobID, end.EventID = "a", schemas.AdviceID("a", uint64(n))
		h.publish(t, end)
		risk := example[schemas.Risk](t, "risk")
		risk.JobID, risk.EventID = "b", schemas.RiskID("b", uint64(n))
		h.publish(t, risk)
	}
	type stream struct {
		query string
		want  []string // subjects, sorted
		l     *eventClient
	}
	streams := []*stream{
		{
			query: "",
			want: []string{
				"job.a.advice", "job.a.epoch", "job.b.epoch", "job.b.risk", "node.node-a.sample",
				"node.node-b.sample", "regressor.epoch_time.drift",
			},
		},
		{query: "?type=job", want: []string{"job.a.epoch", "job.b.epoch", "job.b.risk"}},
		{query: "?type=risk", want: []string{"job.b.risk"}},
		{
			query: "?type=advice,regressor",
			want:  []string{"job.a.advice", "regressor.epoch_time.drift"},
		},
		{query: "?job=a", want: []string{"job.a.advice", "job.a.epoch"}},
		{query: "?job=a,b&type=job", want: []string{"job.a.epoch", "job.b.epoch", "job.b.risk"}},
		{query: "?node=node-b", want: []string{"node.node-b.sample"}},
		{query: "?node=node-b&job=b", want: []string{"job.b.epoch", "job.b.risk", "node.node-b.sample"}},
	}
	for _, s := range streams {
		s.l = h.listen(t, s.query)
	}
	const times = 2
	for n := range times {
		publish(n + 1)
	}
	for _, s := range streams {
		var got []string
		for range times * len(s.want) {
			_, data := s.l.event()
			subject, _ := data["subject"].(string)
			got = append(got, subject)
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(slices.Repeat(s.want, times)))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("query %q (-want +got):\n%s", s.query, d)
		}
	}

	for _, c := range []struct{ query, field string }{
		{
			"?type=node", "type",
		}, {"?type=", "type"}, {"?job=A", "job"}, {"?node=a,,b", "node"}, {"?since=1", "since"},
	} {
		checkError(t, c.query, h.do(t, "GET", "/api/v1/events"+c.query, ""), 400, schemas.CodeInvalid,
			c.field)
	}
}
