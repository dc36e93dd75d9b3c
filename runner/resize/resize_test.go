package resize

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// Docker is called with the documented options, and its message is the error.
func TestContainer_Resize(t *testing.T) {
	for _, test := range []struct {
		name     string
		cpus     uint32
		isCapped bool
		script   string
		want     string // arguments; the error if it starts with "docker"
	}{
		{"weight", 2, false, "", "update --cpu-shares 2048 train"},
		{"cap", 3, true, "", "update --cpu-shares 3072 --cpus 3 train"},
		{"largest weight", 4096, false, "", "update --cpu-shares 262144 train"},
		{"none", 0, false, "", "resize container train to 0 CPUs: want 1 or more"},
		{
			"refused", 2, false, "echo No such container: train; exit 1",
			"docker update of container train: No such container: train",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			command, arguments := filepath.Join(dir, "docker"), filepath.Join(dir, "arguments")
			script := "#!/bin/sh\necho \"$@\" > " + arguments + "\n" + test.script + "\n"
			if err := os.WriteFile(command, []byte(script), 0o755); err != nil {
				t.Fatal(err)
			}
			c := Container{Name: "train", IsCapped: test.isCapped, command: command}
			got := ""
			if err := c.Resize(t.Context(), test.cpus); err != nil {
				got = err.Error()
			} else if text, err := os.ReadFile(arguments); err != nil {
				t.Fatal(err)
			} else {
				got = strings.TrimSpace(string(text))
			}
			if got != test.want {
				t.Errorf("Resize(%d) = %q, want %q", test.cpus, got, test.want)
			}
		})
	}
}

// apiServer behaves as the Kubernetes API does for the subresource resize: it merges the resources into
// the specification, and the kubelet changes the status after some readings, or sets a condition.
type apiServer struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	limit     string // CPU limit of the container; empty: none
	requested string // CPU request in the specification
	actual    string // CPU request in the status
	readings  int    // until the status follows the specification
	condition string // PodResizePending with this reason; empty: none
	patches   []string
	patched   chan struct{} // receives a value for each patch
}

func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{t: t, requested: "1", actual: "1", patched: make(chan struct{}, 8)}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

// pod returns the client of the server for the container "train".
func (s *apiServer) pod() *Pod {
	dir := s.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("secret\n"), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return &Pod{
		Namespace: "ml", Name: "job-7", Container: "train",
		server: s.URL, credentials: dir, client: s.Client(), interval: time.Millisecond,
	}
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	const path = "/api/v1/namespaces/ml/pods/job-7"
	if r.Header.Get("Authorization") != "Bearer secret" {
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"kind":"Status","message":"Unauthorized"}`)
		return
	}
	switch {
	case r.Method == http.MethodGet && r.URL.Path == path:
		if s.readings--; s.readings <= 0 && s.condition == "" {
			s.actual = s.requested
		}
	case r.Method == http.MethodPatch && r.URL.Path == path+"/resize":
		if got := r.Header.Get("Content-Type"); got != "application/strategic-merge-patch+json" {
			s.t.Errorf("content type = %q", got)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			s.t.Error(err)
		}
		s.patches = append(s.patches, string(body))
		s.patched <- struct{}{}
		var p resizePatch
		if err := json.Unmarshal(body, &p); err != nil || len(p.Spec.Containers) != 1 {
			s.t.Errorf("patch %s: %v", body, err)
			return
		}
		s.requested = p.Spec.Containers[0].Resources.Requests["cpu"]
	default:
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprintf(w, `{"kind":"Status","message":"%s %s not found"}`, r.Method, r.URL.Path)
		return
	}
	limits := ""
	if s.limit != "" {
		limits = fmt.Sprintf(`,"limits":{"cpu":%q}`, s.limit)
	}
	conditions := "[]"
	if s.condition != "" {
		conditions = fmt.Sprintf(`[{"type":"PodResizePending","status":"True","reason":%q,`+
			`"message":"node has 2 CPUs"}]`, s.condition)
	}
	fmt.Fprintf(w, `{"kind":"Pod","spec":{"containers":[{"name":"sidecar"},{"name":"train",`+
		`"resources":{"requests":{"cpu":%q,"memory":"1Gi"}%s}}]},"status":{"conditions":%s,`+
		`"containerStatuses":[{"name":"train","resources":{"requests":{"cpu":%q}}}]}}`,
		s.requested, limits, conditions, s.actual)
}

func TestPod_Resize(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(s *apiServer, p *Pod)
		patches []string
		want    string // part of the error; empty: none
	}{
		{
			"in force after some readings",
			func(s *apiServer, _ *Pod) { s.readings = 4 },
			[]string{`{"spec":{"containers":[{"name":"train","resources":{"requests":{"cpu":"2"}}}]}}`},
			"",
		},
		{
			"with a limit",
			func(s *apiServer, _ *Pod) { s.limit = "1" },
			[]string{`{"spec":{"containers":[{"name":"train","resources":{"requests":{"cpu":"2"},"limits":{"cpu":"2"}}}]}}`},
			"",
		},
		{
			"the node is too small, and the resize is withdrawn",
			func(s *apiServer, _ *Pod) { s.condition = "Infeasible" },
			[]string{
				`{"spec":{"containers":[{"name":"train","resources":{"requests":{"cpu":"2"}}}]}}`,
				`{"spec":{"containers":[{"name":"train","resources":{"requests":{"cpu":"1"}}}]}}`,
			},
			"resize container train of pod ml/job-7 to 2 CPUs: Infeasible: node has 2 CPUs",
		},
		{
			"another container", func(_ *apiServer, p *Pod) { p.Container = "other" }, nil,
			"the pod has no such container",
		},
		{
			"another pod", func(_ *apiServer, p *Pod) { p.Name = "job-8" }, nil,
			"the API server refused GET: GET /api/v1/namespaces/ml/pods/job-8 not found",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newAPIServer(t)
			p := s.pod()
			test.change(s, p)
			err := p.Resize(t.Context(), 2)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("Resize() = %v, want no error", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("Resize() = %v, want %q", err, test.want)
			}
			if got, want := strings.Join(s.patches, "\n"), strings.Join(test.patches, "\n"); got != want {
				t.Errorf("patches:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// A kubelet that never answers does not hold the caller.
func TestPod_ResizeEndsWithItsContext(t *testing.T) {
	s := newAPIServer(t)
	s.readings = 1 << 30
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- s.pod().Resize(ctx, 2) }()
	<-s.patched
	cancel()
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "not in force yet") &&
		!strings.Contains(err.Error(), "context canceled") {
		t.Errorf("Resize() = %v, want the end of its context", err)
	}
}

func TestThisPod_NamesWhatIsMissing(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	if _, err := ThisPod(); err == nil || !strings.Contains(err.Error(), "KUBERNETES_SERVICE_HOST") {
		t.Errorf("ThisPod() = %v, want an error that names KUBERNETES_SERVICE_HOST", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	t.Setenv("POD_NAME", "")
	t.Setenv("CONTAINER_NAME", "train")
	if _, err := ThisPod(); err == nil || !strings.Contains(err.Error(), "POD_NAME") {
		t.Errorf("ThisPod() = %v, want an error that names POD_NAME", err)
	}
}
