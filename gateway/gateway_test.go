package gateway_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"

	"github.com/prometheus/client_golang/prometheus"
)

// patience is how long a test waits for a condition. It only guards against hanging.
const patience = 5 * time.Minute

// within returns a context that ends the waiting of a test after its patience.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually tries until check returns nil, and fails the test with its last error after
// its patience.
func eventually(t *testing.T, check func() error) {
	t.Helper()
	ctx := within(t)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		err := check()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatal(err)
		case <-tick.C:
		}
	}
}

// example reads the contract's example of a message.
func example[T any](t *testing.T, name string) *T {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "schemas", "testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	v := new(T)
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatal(err)
	}
	return v
}

// house is a gateway that runs over a bus and listens.
type house struct {
	bus *bus.Bus
	url string
	end func() error // ends Run and returns its error
}

// open starts a gateway over b with the options.
func open(t *testing.T, b *bus.Bus, o gateway.Options) *house {
	t.Helper()
	reg := prometheus.NewRegistry()
	if o.Gatherer == nil {
		o.Gatherer = reg
	}
	g, err := gateway.New(b, o, slog.New(slog.DiscardHandler), reg)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(g.Handler())
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	h := &house{bus: b, url: s.URL, end: func() error {
		cancel()
		err := <-done
		done <- err
		return err
	}}
	t.Cleanup(func() {
		if err := h.end(); err != nil {
			t.Errorf("Run = %v, want nil", err)
		}
		s.Close()
	})
	return h
}

// serve answers requests as a service does, until the test ends. It returns
// when the service answers.
func serve(t *testing.T, b *bus.Bus, endpoints ...bus.Endpoint) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	announced := bus.Handle(schemas.SubjectRegressorTrain, func(context.Context, *schemas.TrainRequest) (any, error) {
		return struct{}{}, nil
	})
	go func() {
		done <- b.Serve(ctx, bus.Service{
			Name:      "test",
			Version:   "1.0.0",
			Endpoints: append(endpoints, announced),
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	eventually(t, func() error { // endpoints are added in order: when the last one answers, all do
		return b.Request(within(t), schemas.SubjectRegressorTrain, schemas.TrainRequest{},
			new(struct{}))
	})
}

// answer is what an HTTP request came to.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request; a body is sent as JSON.
func (h *house) do(t *testing.T, method, path, body string) answer {
	t.Helper()
	header := http.Header{}
	if body != "" {
		header.Set("Content-Type", "application/json; charset=utf-8")
	}
	return h.send(t, method, path, header, strings.NewReader(body))
}

func (h *house) send(t *testing.T, method, path string, header http.Header, body io.Reader) answer {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), method, h.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{resp.StatusCode, resp.Header, string(data)}
}

// read returns the body as a T.
func read[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("answer %d %q: %v", a.status, a.body, err)
	}
	return v
}

// refused fails the test unless the answer is a refusal of that status, code and field.
func refused(t *testing.T, what string, a answer, status int, code schemas.Code, field string) {
	t.Helper()
	e := read[schemas.Error](t, a)
	if a.status != status || e.Code != code || e.Field != field || e.Message == "" {
		t.Errorf("%s = %d %s, want %d with code %q and field %q", what, a.status, a.body, status,
			code, field)
	}
	if got := a.header.Get("Content-Type"); got != "application/json" {
		t.Errorf("%s: content type %q, want application/json", what, got)
	}
}

func TestReady_SaysWhatIsMissing(t *testing.T) {
	s := bustest.NewServer(t)
	trouble := errors.New("the trainer is not there yet")
	h := open(t, s.Connect(t), gateway.Options{Ready: func() error { return trouble }})
	if a := h.do(t, "GET", "/healthz", ""); a.status != http.StatusOK {
		t.Errorf("GET /healthz = %d, want 200: the process answers", a.status)
	}
	a := h.do(t, "GET", "/readyz", "")
	refused(t, "GET /readyz", a, http.StatusServiceUnavailable, schemas.CodeUnavailable, "")
	if !strings.Contains(a.body, trouble.Error()) {
		t.Errorf("GET /readyz = %s, want it to say %q", a.body, trouble)
	}
	trouble = nil
	if a := h.do(t, "GET", "/readyz", ""); a.status != http.StatusOK {
		t.Errorf("GET /readyz = %d %s, want 200", a.status, a.body)
	}
	s.Stop()
	eventually(t, func() error {
		if a := h.do(t, "GET", "/readyz", ""); a.status != http.StatusServiceUnavailable {
			return errors.New("GET /readyz is not 503 although NATS is away")
		}
		return nil
	})
	if a := h.do(t, "GET", "/healthz", ""); a.status != http.StatusOK {
		t.Errorf("GET /healthz = %d without NATS, want 200", a.status)
	}
}

func TestMetrics_CountRequestsByRouteAndStatus(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	h.do(t, "GET", "/api/v1/jobs/A%20b/advice", "")
	h.do(t, "GET", "/healthz", "")
	h.do(t, "GET", "/api/v1/nothing", "")
	got := h.do(t, "GET", "/metrics", "").body
	for _, want := range []string{
		`courier_gateway_requests_total{route="/api/v1/jobs/{id}/advice",status="400"} 1`,
		`courier_gateway_requests_total{route="/healthz",status="200"} 1`,
		`courier_gateway_requests_total{route="unknown",status="404"} 1`,
		`courier_gateway_request_seconds_count{route="/healthz"} 1`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("GET /metrics lacks %s; it has\n%s", want, got)
		}
	}
}

func TestNew_RefusesARegistererThatHoldsItsMetrics(t *testing.T) {
	b, reg := bustest.New(t), prometheus.NewRegistry()
	for i, wantErr := range []bool{false, true} {
		if _, err := gateway.New(b, gateway.Options{}, slog.New(slog.DiscardHandler), reg); (err != nil) != wantErr {
			t.Errorf("New number %d on one registerer = %v, want error: %v", i+1, err, wantErr)
		}
	}
}
