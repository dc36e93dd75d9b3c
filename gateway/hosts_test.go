package gateway_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"
)

// getAs requests a path with a host name, like a browser after DNS rebinding.
func (h *testGateway) getAs(t *testing.T, host, path string) httpResponse {
	t.Helper()
	return h.send(t, "GET", path, http.Header{"Host": {host}}, nil)
}

func TestHost_MustBeANameOfTheGateway(t *testing.T) {
	b := bustest.New(t)
	plain := open(t, b, gateway.Options{})
	named := open(t, b, gateway.Options{AllowedHosts: []string{"gateway.example.org", "gateway"}})
	any := open(t, b, gateway.Options{AllowedHosts: []string{gateway.AnyHost}})
	tokens := openWithTokens(t, b, gateway.Options{})
	for _, c := range []struct {
		host         string
		plain, named int
	}{
		{"localhost", 200, 200},
		{"LOCALHOST.:8080", 200, 200},
		{"127.0.0.1:8080", 200, 200},
		{"[::1]:8080", 200, 200},
		{"[::1]", 200, 200},
		{"192.0.2.7", 200, 200},
		{"gateway.example.org", 421, 200},
		{"Gateway.Example.org:8080", 421, 200},
		{"gateway", 421, 200},
		{"evil.example", 421, 421},
		{"evil.example:8080", 421, 421},
		{"localhost.evil.example", 421, 421},
		{"127.0.0.1.evil.example", 421, 421},
		{"gateway.example.org.evil.example", 421, 421},
	} {
		for _, path := range []string{"/", "/api/v1/nodes", "/web/app.js", "/api/v1/events"} {
			if path == "/api/v1/events" && c.plain == 200 {
				continue // the response does not end
			}
			if got := plain.getAs(t, c.host, path); got.status != c.plain {
				t.Errorf("GET %s as %q = %d, want %d", path, c.host, got.status, c.plain)
			}
		}
		if got := named.getAs(t, c.host, "/"); got.status != c.named {
			t.Errorf("GET / as %q with allowed hosts = %d, want %d", c.host, got.status, c.named)
		}
		for name, h := range map[string]*testGateway{"any host": any, "tokens": tokens} {
			if got := h.getAs(t, c.host, "/"); got.status != 200 {
				t.Errorf("GET / as %q with %s = %d, want 200", c.host, name, got.status)
			}
		}
		for _, path := range []string{"/healthz", "/readyz", "/metrics"} { // requested by pod names
			if got := plain.getAs(t, c.host, path); got.status != 200 {
				t.Errorf("GET %s as %q = %d, want 200", path, c.host, got.status)
			}
		}
	}
	refusal := plain.getAs(t, "evil.example", "/api/v1/jobs")
	checkError(t, "a foreign name", refusal, http.StatusMisdirectedRequest, schemas.CodeForbidden, "")
	if !strings.Contains(refusal.body, "--allowed-host") {
		t.Errorf("%s does not name the flags to set", refusal.body)
	}
}

func TestHost_IsNotCheckedUnderTLS(t *testing.T) {
	g, err := gateway.New(bustest.New(t), gateway.Options{}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewTLSServer(g.Handler())
	defer s.Close()
	r, err := http.NewRequestWithContext(within(t), http.MethodGet, s.URL+"/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "gateway.example.org"
	resp, err := s.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("GET / by TLS under a name of the certificate = %s, want 200", resp.Status)
	}
}

func TestNew_RefusesWhatIsNoHost(t *testing.T) {
	b := bustest.New(t)
	for _, host := range []string{"", "http://a.example", "a.example:8080", "*.example", "a b"} {
		_, err := gateway.New(b, gateway.Options{AllowedHosts: []string{host}},
			slog.New(slog.DiscardHandler), nil)
		if err == nil || !strings.Contains(err.Error(), "allowed host") {
			t.Errorf("New with the allowed host %q = %v, want an error that names it", host, err)
		}
	}
}
