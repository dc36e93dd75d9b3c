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

// within returns a context that ends after patience.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// eventually repeats check until it returns nil. After patience it fails the test with the last
// error.
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

// example returns the example of a message in package schemas.
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

// testGateway is a running gateway with a listener.
type testGateway struct {
	bus *bus.Bus
	url string
	end func() error // ends Run and returns its error
}

// open starts a gateway with the options.
func open(t *testing.T, b *bus.Bus, o gateway.Options) *testGateway {
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
	h := &testGateway{bus: b, url: s.URL, end: func() error {
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

// serve runs a service until the test ends. It returns when the service answers requests.
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
	eventually(t, func() error { // endpoints are added in order: if the last one answers, all do
		return b.Request(within(t), schemas.SubjectRegressorTrain, schemas.TrainRequest{},
			new(struct{}))
	})
}

// httpResponse is the response to an HTTP request.
type httpResponse struct {
	status int
	header http.Header
	body   string
}

// do sends a request, with a JSON body if body is not empty.
func (h *testGateway) do(t *testing.T, method, path, body string) httpResponse {
	t.Helper()
	header := http.Header{}
	if body != "" {
		header.Set("Content-Type", "application/json; charset=utf-8")
	}
	return h.send(t, method, path, header, strings.NewReader(body))
}

func (h *testGateway) send(t *testing.T, method, path string, header http.Header, body io.Reader) httpResponse {
	t.Helper()
	r, err := http.NewRequestWithContext(within(t), method, h.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header, r.Host = header, header.Get("Host")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return httpResponse{resp.StatusCode, resp.Header, string(data)}
}

// read decodes the body of a response.
func read[T any](t *testing.T, a httpResponse) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("decode response %d %q: %v", a.status, a.body, err)
	}
	return v
}

// checkError fails the test unless the response is an error with the status, code and field.
func checkError(t *testing.T, what string, a httpResponse, status int, code schemas.Code, field string) {
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
	notReady := errors.New("the trainer is not ready yet")
	h := open(t, s.Connect(t), gateway.Options{Ready: func() error { return notReady }})
	if a := h.do(t, "GET", "/healthz", ""); a.status != http.StatusOK {
		t.Errorf("GET /healthz = %d, want 200: the process answers", a.status)
	}
	a := h.do(t, "GET", "/readyz", "")
	checkError(t, "GET /readyz", a, http.StatusServiceUnavailable, schemas.CodeUnavailable, "")
	if !strings.Contains(a.body, notReady.Error()) {
		t.Errorf("GET /readyz = %s, want %q", a.body, notReady)
	}
	notReady = nil
	if a := h.do(t, "GET", "/readyz", ""); a.status != http.StatusOK {
		t.Errorf("GET /readyz = %d %s, want 200", a.status, a.body)
	}
	s.Stop()
	eventually(t, func() error {
		if a := h.do(t, "GET", "/readyz", ""); a.status != http.StatusServiceUnavailable {
			return errors.New("GET /readyz is not 503 although NATS is unreachable")
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
