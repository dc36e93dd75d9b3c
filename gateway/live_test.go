package gateway_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// eventClient reads server-sent events.
type eventClient struct {
	t    *testing.T
	scan *bufio.Scanner
	id   string // of the last event or of a later comment
	stop func() // ends the connection
}

// listen connects to receive new events.
func listen(t *testing.T, h *testGateway) *eventClient {
	t.Helper()
	return h.listen(t, "", "")
}

// listen connects with a query, to receive the events after the one with the id.
func (h *testGateway) listen(t *testing.T, query, id string) *eventClient {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	r, err := http.NewRequestWithContext(ctx, "GET", h.url+"/api/v1/events"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	if id != "" {
		r.Header.Set("Last-Event-ID", id)
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
	return &eventClient{t: t, scan: scan, stop: cancel}
}

// next returns the lines before the next empty line, without the id; ok is false at the end.
func (l *eventClient) next() (lines []string, ok bool) {
	for l.scan.Scan() {
		text := l.scan.Text()
		if text == "" {
			return lines, true
		}
		if id, is := strings.CutPrefix(text, "id: "); is {
			l.id = id
			continue
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
	l := listen(t, h)
	for comments := 0; comments < 3; {
		lines, ok := l.next()
		if !ok {
			t.Fatal("the events ended")
		}
		if len(lines) > 0 && strings.HasPrefix(lines[0], ":") {
			comments++
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

// A client that does not read loses events, receives their number, and continues. Other clients are
// not affected.
func TestEvents_ReportMissedEventsToASlowClient(t *testing.T) {
	b := bustest.New(t)
	h := open(t, b, gateway.Options{WriteTimeout: patience}) // the slow client finally reads
	slow, quick := listen(t, h), listen(t, h)
	read := make(chan string, 8)
	go func() { // the quick client reads all events
		defer close(read)
		for {
			lines, ok := quick.next()
			if !ok {
				return
			}
			if len(lines) > 0 && strings.HasPrefix(lines[0], "event: ") {
				read <- lines[0]
			}
		}
	}()
	arrives := func(want string) { // streams have no common order: the test waits for each event
		t.Helper()
		if got := <-read; got != "event: "+want {
			t.Fatalf("the quick client reads %q, want %s", got, want)
		}
	}

	// Large events that cannot be compressed soon fill the socket buffers and then the queue of the slow
	// client.
	large, noise := example[schemas.Advice](t, "advice"), make([]byte, 48<<10)
	_, _ = rand.NewChaCha8([32]byte{}).Read(noise) // it never fails
	large.Message = base64.StdEncoding.EncodeToString(noise)
	missing := func() bool {
		metrics := h.do(t, "GET", "/metrics", "").body
		_, count, _ := strings.Cut(metrics, "\ncourier_gateway_missed_events_total{reason=\"slow\"} ")
		return !strings.HasPrefix(count, "0")
	}
	published := uint64(0)
	for !missing() {
		if published++; published > 5000 {
			t.Fatal("5000 events of 64 KiB did not fill the queue of the slow client")
		}
		large.EventID = schemas.AdviceID(large.JobID, published)
		h.publish(t, large)
		arrives("advice")
	}
	h.publish(t, sample(t, "node-a", 1))
	arrives("sample")

	got, missed, lastID := uint64(0), map[string]any{}, ""
	for len(missed) == 0 {
		kind, data := slow.event()
		switch kind {
		case "advice":
			got, lastID = got+1, slow.id
		case "missed":
			if data["reason"] != "slow" {
				t.Errorf("missed = %v, want the reason slow", data)
			}
			missed, _ = data["events"].(map[string]any)
		}
	}
	lost, _ := missed["advice"].(float64)
	if lost == 0 || got+uint64(lost) != published || missed["node"] != 1.0 {
		t.Errorf("the slow client read %d of %d events and missed %v, want all advice counted",
			got, published, missed)
	}

	large.EventID = schemas.AdviceID(large.JobID, published+1) // the client continues
	sequence := h.publish(t, large)
	arrives("advice")
	if kind, data := slow.event(); kind != "advice" || data["sequence"] != float64(sequence) {
		t.Errorf("after the missed events: %s %v, want advice %d", kind, data["sequence"], sequence)
	}
	again := h.listen(t, "?type=advice", lastID) // a new connection reads the missed events
	for range uint64(lost) + 1 {
		if kind, data := again.event(); kind != "advice" {
			t.Fatalf("event after the reconnect = %s %v, want advice", kind, data)
		}
	}
}

// After any event, the next connection continues with the following event, also at another gateway.
func TestEvents_ContinueAfterAnyEvent(t *testing.T) {
	b := bustest.New(t)
	h, other := open(t, b, gateway.Options{}), open(t, b, gateway.Options{})
	l := listen(t, h)
	h.publish(t, epoch(t, "a", 1))
	h.publish(t, sample(t, "node-a", 1))
	batch := []*schemas.Sample{
		sample(t, "node-a", 2), sample(t, "node-a", 3), sample(t, "node-a", 4),
	}
	if _, err := b.PublishSamples(within(t), batch); err != nil {
		t.Fatal(err)
	}
	h.publish(t, epoch(t, "a", 2))
	h.publish(t, example[schemas.Drift](t, "drift"))
	h.publish(t, epoch(t, "b", 1))

	events, ids := l.events(8)
	for i, id := range ids {
		for name, g := range map[string]*testGateway{"the same gateway": h, "another": other} {
			after := g.listen(t, "", id)
			got, _ := after.events(len(events) - i - 1)
			want := slices.Sorted(slices.Values(events[i+1:]))
			slices.Sort(got) // the order between streams is undefined
			if d := cmp.Diff(want, got, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("after %s at %s (-want +got):\n%s", id, name, d)
			}
			after.stop()
		}
	}
}

// Filters apply to new events and to events after a reconnect. The ID also advances past filtered
// events.
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
	const begin = "node=0,job=0,advice=0,regressor=0"
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
		s.l = h.listen(t, s.query, "")
	}
	check := func(when string, s *stream, l *eventClient, times int) {
		t.Helper()
		var got []string
		for range times * len(s.want) {
			_, data := l.event()
			subject, _ := data["subject"].(string)
			got = append(got, subject)
		}
		slices.Sort(got)
		want := slices.Sorted(slices.Values(slices.Repeat(s.want, times)))
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s, query %q (-want +got):\n%s", when, s.query, d)
		}
	}
	publish(1)
	publish(2)
	for _, s := range streams {
		check("live", s, s.l, 2)
	}
	for _, s := range streams {
		l := h.listen(t, s.query, begin)
		check("from the beginning", s, l, 2)
		l.stop()
	}
	publish(3)
	for _, s := range streams {
		check("live again", s, s.l, 1)
	}

	for _, c := range []struct{ query, field string }{
		{
			"?type=node", "type",
		}, {"?type=", "type"}, {"?job=A", "job"}, {"?node=a,,b", "node"}, {"?since=1", "since"},
	} {
		checkError(t, c.query, h.do(t, "GET", "/api/v1/events"+c.query, ""), 400, schemas.CodeInvalid,
			c.field)
	}
	a := h.send(t, "GET", "/api/v1/events", http.Header{"Last-Event-Id": {"yesterday"}}, nil)
	checkError(t, "a wrong id", a, 400, schemas.CodeInvalid, "Last-Event-ID")
}

// A client that reconnects late receives the number of events that the log has dropped.
func TestEvents_ReportDroppedEvents(t *testing.T) {
	s := bustest.NewServer(t)
	b := s.Connect(t)
	h := open(t, b, gateway.Options{})
	before := listen(t, h)
	for n := range uint32(5) {
		h.publish(t, epoch(t, "a", n+1))
	}
	before.events(5) // the gateway has received all
	nc, err := nats.Connect(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(within(t), schemas.StreamJob)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(within(t), jetstream.WithPurgeSequence(4)); err != nil { // keeps 4 and 5
		t.Fatal(err)
	}
	l := h.listen(t, "", "job=1")
	kind, missed := l.event()
	if d := cmp.Diff(map[string]any{
		"reason": "old",
		"events": map[string]any{"job": 2.0},
	}, missed); kind != "missed" || d != "" {
		t.Errorf("%s (-want +got):\n%s", kind, d)
	}
	for want := 4.0; want <= 5; want++ {
		if kind, data := l.event(); kind != "job" || data["sequence"] != want {
			t.Errorf("then %s %v, want job %v", kind, data["sequence"], want)
		}
	}

	l = h.listen(t, "", "job=900,node=0") // an ID of a lost log
	if kind, missed := l.event(); kind != "missed" || missed["reason"] != "reset" {
		t.Errorf("after a reset: %s %v, want missed", kind, missed)
	}
	h.publish(t, epoch(t, "a", 6))
	if kind, data := l.event(); kind != "job" || data["sequence"] != 6.0 {
		t.Errorf("then %s %v, want job 6", kind, data["sequence"])
	}
}

// events returns the event IDs and the server-sent ids of the next n events.
func (l *eventClient) events(n int) (all, ids []string) {
	l.t.Helper()
	for range n {
		_, data := l.event()
		all, ids = append(all, eventID(data)), append(ids, l.id)
	}
	return all, ids
}

func eventID(data map[string]any) string {
	event, _ := data["event"].(map[string]any)
	id, _ := event["event_id"].(string)
	return id
}
