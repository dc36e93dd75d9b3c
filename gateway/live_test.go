package gateway_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// listener reads server-sent events.
type listener struct {
	t    *testing.T
	scan *bufio.Scanner
}

func listen(t *testing.T, h *house) *listener {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), "GET", h.url+"/api/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	if kind := resp.Header.Get("Content-Type"); resp.StatusCode != http.StatusOK || kind != "text/event-stream" {
		t.Fatalf("GET /api/v1/events = %d %s, want 200 text/event-stream", resp.StatusCode, kind)
	}
	scan := bufio.NewScanner(resp.Body)
	scan.Buffer(nil, 2*schemas.MaxMessageBytes)
	return &listener{t, scan}
}

// next returns the lines up to the next empty one; ok is false at the end.
func (l *listener) next() (lines []string, ok bool) {
	for l.scan.Scan() {
		if l.scan.Text() == "" {
			return lines, true
		}
		lines = append(lines, l.scan.Text())
	}
	return nil, false
}

// event returns the next event, past comments.
func (l *listener) event() (kind string, data map[string]any) {
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

// heardJobs publishes epochs until the listener gets one: from then on it gets
// every event of JOB, which the gateway follows from its start only. The other
// streams it reads from what is stored.
func heardJobs(t *testing.T, h *house, l *listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan error, 1)
	go func() {
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for n := uint32(1); ; n++ {
			e := example[schemas.Epoch](t, "epoch")
			e.JobID, e.Epoch = "probe", n
			e.EventID = schemas.EpochID(e.JobID, e.Run, n)
			if _, err := h.bus.Publish(ctx, e); err != nil {
				done <- err
				return
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
				done <- nil
				return
			}
		}
	}()
	l.event()
	cancel()
	if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}

func TestEvents_AreSentAsTheyAreStored(t *testing.T) {
	b := bustest.New(t)
	h := open(t, b, gateway.Options{})
	l := listen(t, h)
	heardJobs(t, h, l)
	for _, c := range []struct {
		kind  string
		event schemas.Event
	}{
		{"sample", example[schemas.Sample](t, "sample")},
		{"job", example[schemas.Submitted](t, "submitted")},
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
		for data["subject"] != c.event.Subject() { // what heardJobs sent last
			kind, data = l.event()
		}
		raw, err := schemas.Marshal(c.event)
		if err != nil {
			t.Fatal(err)
		}
		var want map[string]any
		if err := json.Unmarshal(raw, &want); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, data["event"]); kind != c.kind || data["sequence"] != float64(sequence) || d != "" {
			t.Errorf("event of %s = %s number %v, want %s number %d (-want +got):\n%s", c.event.Subject(), kind, data["sequence"], c.kind, sequence, d)
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
		if strings.HasPrefix(lines[0], ":") {
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
	refused(t, "GET /api/v1/events after the end", h.do(t, "GET", "/api/v1/events", ""), 503, schemas.CodeUnavailable, "")
}

func TestEvents_DropAClientThatDoesNotRead(t *testing.T) {
	b := bustest.New(t)
	h := open(t, b, gateway.Options{})
	slow, quick := listen(t, h), listen(t, h)
	heardJobs(t, h, quick)
	done := make(chan bool, 1)
	go func() { // the quick one reads to the end, whatever the slow one does
		for {
			lines, ok := quick.next()
			if !ok || lines[0] == "event: sample" {
				done <- ok
				return
			}
		}
	}()
	// Large events fill what the sockets hold soon, and then the slow client's buffer.
	large := example[schemas.Advice](t, "advice")
	large.Message = strings.Repeat("x", 64<<10)
	dropped := func() bool {
		return strings.Contains(h.do(t, "GET", "/metrics", "").body, "\ncourier_gateway_slow_clients_total 1\n")
	}
	for n := uint64(1); !dropped(); n++ {
		if n > 5000 {
			t.Fatal("5000 events of 64 KiB did not fill the slow client's buffer")
		}
		large.EventID = schemas.AdviceID(large.JobID, n)
		if _, err := b.Publish(within(t), large); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := b.Publish(within(t), example[schemas.Sample](t, "sample")); err != nil {
		t.Fatal(err)
	}
	if !<-done {
		t.Fatal("the quick client was disconnected")
	}
	for ok := true; ok; { // what it has not read yet, then the end
		_, ok = slow.next()
	}
	if got := h.do(t, "GET", "/metrics", "").body; !strings.Contains(got, "\ncourier_gateway_live_clients 1\n") {
		t.Error("want one live client left: the quick one")
	}
}
