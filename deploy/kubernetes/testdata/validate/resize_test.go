package validate_test

import (
	"context"
	"strings"
	"testing"

	"courier/runner/resize"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
)

// resources returns resources of a container; an empty quantity is absent.
func resources(request, limit, memoryLimit string) core.ResourceRequirements {
	return core.ResourceRequirements{
		Requests: quantities(request, "1Gi"), Limits: quantities(limit, memoryLimit),
	}
}

// patchOf returns the patch of a request and a limit; an empty limit is absent.
func patchOf(request, limit string) string {
	limits := ""
	if limit != "" {
		limits = `,"limits":{"cpu":"` + limit + `"}`
	}
	return `{"spec":{"containers":[{"name":"train","resources":{"requests":{"cpu":"` + request +
		`"}` + limits + `}}]}}`
}

func TestPod_Resize(t *testing.T) {
	burstable, guaranteed := resources("1", "4", "1Gi"), resources("1", "1", "1Gi")
	unlimited := resources("1", "", "")
	tests := []struct {
		name      string
		resources core.ResourceRequirements
		change    func(s *apiServer, p *resize.Pod)
		cpus      uint32
		patches   []string
		want      string // part of the error; empty: none
	}{
		{"without a limit", unlimited, nil, 2, []string{patchOf("2", "")}, ""},
		{"a guaranteed pod stays so", guaranteed, nil, 2, []string{patchOf("2", "2")}, ""},
		{"a limit keeps its ratio", burstable, nil, 2, []string{patchOf("2", "8")}, ""},
		{"up to the limit", burstable, nil, 4, []string{patchOf("4", "16")}, ""},
		{
			"from a part of a CPU", resources("500m", "750m", "1Gi"), nil, 1,
			[]string{patchOf("1", "1500m")}, "",
		},
		{"unchanged", guaranteed, nil, 1, []string{patchOf("1", "1")}, ""},
		{
			"a slow kubelet", guaranteed,
			func(s *apiServer, _ *resize.Pod) { s.delay = 4 }, 2,
			[]string{patchOf("2", "2")}, "",
		},
		{
			"the refusal of a previous resize is stale", guaranteed,
			func(s *apiServer, _ *resize.Pod) {
				s.delay = 3
				s.withdrawPrevious()
				s.pod.Status.Conditions[0].ObservedGeneration = 0 // optional in the API
			}, 2,
			[]string{patchOf("2", "2")}, "",
		},
		{
			"the condition is older than the status", guaranteed,
			func(s *apiServer, _ *resize.Pod) {
				s.withdrawPrevious()
				s.onPatch = func() {
					s.unobserved, s.pod.Status.ObservedGeneration = 2, s.pod.Generation
				}
			}, 2,
			[]string{patchOf("2", "2")}, "",
		},
		{
			"the kubelet changes the request before the limit", burstable,
			func(s *apiServer, _ *resize.Pod) {
				s.onPatch = func() {
					s.unobserved, s.pod.Status.ObservedGeneration = 3, s.pod.Generation
					status := s.pod.Status.ContainerStatuses[1].Resources
					status.Requests = s.pod.Spec.Containers[1].Resources.Requests.DeepCopy()
				}
			}, 2,
			[]string{patchOf("2", "8")}, "",
		},
		{
			"the node is too small", unlimited, nil, 16,
			[]string{patchOf("16", ""), patchOf("1", "")},
			"resize container train of pod ml/job-7 to 16 CPUs: Infeasible: Node didn't have enough",
		},
		{
			"the node is full, and request and limit are withdrawn", burstable, nil, 6,
			[]string{patchOf("6", "24"), patchOf("1", "4")}, "Deferred: Node didn't have enough",
		},
		{
			"the kubelet fails", guaranteed,
			func(s *apiServer, _ *resize.Pod) { s.failure = "cgroup is read-only" }, 2,
			[]string{patchOf("2", "2"), patchOf("1", "1")}, "Error: cgroup is read-only",
		},
		{
			"a resize would restart courier", guaranteed,
			func(s *apiServer, _ *resize.Pod) {
				s.pod.Spec.Containers[1].ResizePolicy = []core.ContainerResizePolicy{
					{ResourceName: core.ResourceCPU, RestartPolicy: core.RestartContainer},
				}
			}, 2, nil, "set restartPolicy of the resource cpu to NotRequired",
		},
		{
			"restarts for memory do not matter", guaranteed,
			func(s *apiServer, _ *resize.Pod) {
				s.pod.Spec.Containers[1].ResizePolicy = []core.ContainerResizePolicy{
					{ResourceName: core.ResourceCPU, RestartPolicy: core.NotRequired},
					{ResourceName: core.ResourceMemory, RestartPolicy: core.RestartContainer},
				}
			}, 2, []string{patchOf("2", "2")}, "",
		},
		{"no request", resources("", "", ""), nil, 2, nil, "set resources.requests.cpu"},
		{
			"may not read", guaranteed,
			func(s *apiServer, _ *resize.Pod) { s.forbidden = "get" }, 2, nil,
			`the API server refused GET: cannot get resource "pods"`,
		},
		{
			"may not patch", guaranteed,
			func(s *apiServer, _ *resize.Pod) { s.forbidden = "patch" }, 2, nil,
			`the API server refused PATCH: cannot patch resource "pods/resize"`,
		},
		{
			"two conflicts", guaranteed,
			func(s *apiServer, _ *resize.Pod) { s.conflicts = 2 }, 2,
			[]string{patchOf("2", "2")}, "",
		},
		{
			"conflicts without end", guaranteed,
			func(s *apiServer, _ *resize.Pod) { s.conflicts = 1000 }, 2, nil,
			"the API server refused PATCH: the object has been modified",
		},
		{
			"another container", guaranteed,
			func(_ *apiServer, p *resize.Pod) { p.Container = "other" }, 2, nil,
			"the pod has no such container",
		},
		{
			"another pod", guaranteed,
			func(_ *apiServer, p *resize.Pod) { p.Name = "job-8" }, 2, nil,
			`the API server refused GET: pods "job-8" not found`,
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := newAPIServer(t, test.resources)
			p := s.client()
			if test.change != nil {
				test.change(s, p)
			}
			err := p.Resize(t.Context(), test.cpus)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("Resize() = %v, want no error", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("Resize() = %v, want %q", err, test.want)
			}
			got, want := strings.Join(s.patches, "\n"), strings.Join(test.patches, "\n")
			if got != want {
				t.Errorf("patches:\n%s\nwant:\n%s", got, want)
			}
			s.checkEnd(err == nil, test.resources, test.cpus)
		})
	}
}

// withdrawPrevious puts the pod into the state right after the withdrawal of a refused resize: the
// kubelet has not observed the withdrawal, so that the condition of the refusal is still there.
func (s *apiServer) withdrawPrevious() {
	s.setCondition(core.PodResizePending, core.PodReasonDeferred, "a previous resize")
	s.pod.Generation++
	s.unobserved = 1
}

// checkEnd checks that the container has the CPUs of a resize that was carried out, and otherwise
// that the specification is the previous one. The QoS class stays, and nothing restarts.
func (s *apiServer) checkEnd(isDone bool, previous core.ResourceRequirements, cpus uint32) {
	s.t.Helper()
	want := previous.Requests[core.ResourceCPU]
	if isDone {
		want = *resource.NewQuantity(int64(cpus), resource.DecimalSI)
		actual, spec := s.pod.Status.ContainerStatuses[1].Resources, s.pod.Spec.Containers[1].Resources
		if !equality.Semantic.DeepEqual(*actual, spec) {
			s.t.Errorf("the container has the resources %v after Resize, want %v", *actual, spec)
		}
	}
	if got := s.pod.Spec.Containers[1].Resources.Requests[core.ResourceCPU]; got.Cmp(want) != 0 {
		s.t.Errorf("CPU request = %s, want %s", &got, &want)
	}
	if got := qosClass(&s.pod.Spec); got != s.pod.Status.QOSClass {
		s.t.Errorf("QoS class = %s, want %s", got, s.pod.Status.QOSClass)
	}
	if s.restarts > 0 {
		s.t.Errorf("the container restarted %d times, want never", s.restarts)
	}
}

// A kubelet that never observes the resize does not hold the caller, and does not apply it later.
func TestPod_ResizeEndsWithItsContext(t *testing.T) {
	previous := resources("1", "2", "1Gi")
	s := newAPIServer(t, previous)
	s.delay = 1 << 30
	p := s.client()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s.onPatch = cancel
	err := p.Resize(ctx, 2)
	if err == nil || !strings.Contains(err.Error(), "context canceled") {
		t.Errorf("Resize() = %v, want the end of its context", err)
	}
	want := patchOf("2", "4") + "\n" + patchOf("1", "2")
	if got := strings.Join(s.patches, "\n"); got != want {
		t.Errorf("patches:\n%s\nwant:\n%s", got, want)
	}
	s.checkEnd(false, previous, 2)
}

// A change of the QoS class is refused by the server, as the client must not cause it.
func TestInvalidResize(t *testing.T) {
	s := newAPIServer(t, resources("1", "4", "1Gi"))
	for patch, want := range map[string]string{
		patchOf("2", "2"): "QOS Class may not change",
		patchOf("5", ""):  "must be less than or equal to cpu limit",
		`{"spec":{"containers":[{"name":"train","image":"other"}]}}`:                     "mutable",
		`{"spec":{"containers":[{"name":"train","resources":{"limits":{"cpu":null}}}]}}`: "removed",
		patchOf("2", "8"): "",
	} {
		next, err := s.merged([]byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		if got := invalidResize(s.pod, next); (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("invalidResize(%s) = %q, want %q", patch, got, want)
		}
	}
	if _, err := s.merged([]byte(`{"spec":{"containers":[{"name":"train","cpus":2}]}}`)); err == nil {
		t.Error("a patch with an unknown field was merged, want an error")
	}
}
