package validate_test

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"courier/runner/resize"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

const podPath = "/api/v1/namespaces/ml/pods/job-7"

// apiServer is an API server and a kubelet with one pod, as the documentation of the subresource
// resize describes them (KEP 1287, and KEP 5067 for generations). Each reading of the pod is one step
// of the kubelet: it observes the specification, allocates the CPUs, and actuates them.
type apiServer struct {
	*httptest.Server
	t *testing.T

	mu        sync.Mutex
	pod       *core.Pod
	nodeCPU   resource.Quantity // allocatable
	freeCPU   resource.Quantity // of nodeCPU, for this pod
	delay     int               // readings until the kubelet observes a patch
	failure   string            // message of an error when the kubelet actuates a resize
	forbidden string            // verb that the service account lacks
	conflicts int               // patches to answer with 409
	onPatch   func()

	unobserved int // readings until the kubelet observes the last patch
	restarts   int
	patches    []string
}

// newAPIServer returns a server whose pod has a sidecar and the container "train" with resources.
func newAPIServer(t *testing.T, r core.ResourceRequirements) *apiServer {
	sidecar := core.ResourceRequirements{
		Requests: quantities("100m", "16Mi"), Limits: quantities("100m", "16Mi"),
	}
	s := &apiServer{
		t:       t,
		nodeCPU: resource.MustParse("8"),
		freeCPU: resource.MustParse("4"),
		pod: &core.Pod{
			TypeMeta:   meta.TypeMeta{APIVersion: "v1", Kind: "Pod"},
			ObjectMeta: meta.ObjectMeta{Namespace: "ml", Name: "job-7", Generation: 1},
			Spec: core.PodSpec{Containers: []core.Container{
				{Name: "sidecar", Image: "sidecar", Resources: sidecar},
				{Name: "train", Image: "train", Resources: r},
			}},
			Status: core.PodStatus{ObservedGeneration: 1, Phase: core.PodRunning},
		},
	}
	s.pod.Status.QOSClass = qosClass(&s.pod.Spec)
	for _, c := range s.pod.Spec.Containers {
		s.pod.Status.ContainerStatuses = append(s.pod.Status.ContainerStatuses, core.ContainerStatus{
			Name:               c.Name,
			AllocatedResources: c.Resources.Requests.DeepCopy(),
			Resources:          c.Resources.DeepCopy(),
		})
	}
	s.Server = httptest.NewTLSServer(http.HandlerFunc(s.serve))
	t.Cleanup(s.Close)
	return s
}

func quantities(cpu, memory string) core.ResourceList {
	list := core.ResourceList{}
	if cpu != "" {
		list[core.ResourceCPU] = resource.MustParse(cpu)
	}
	if memory != "" {
		list[core.ResourceMemory] = resource.MustParse(memory)
	}
	return list
}

// client returns the client of a process in the container "train".
func (s *apiServer) client() *resize.Pod {
	s.t.Helper()
	dir := s.t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	for name, text := range map[string]string{
		"token": "secret\n", "namespace": "ml", "ca.crt": string(ca),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			s.t.Fatal(err)
		}
	}
	address, err := url.Parse(s.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Setenv("KUBERNETES_SERVICE_HOST", address.Hostname())
	s.t.Setenv("KUBERNETES_SERVICE_PORT", address.Port())
	s.t.Setenv("POD_NAME", "job-7")
	s.t.Setenv("CONTAINER_NAME", "train")
	p, err := resize.ThisPodWith(dir)
	if err != nil {
		s.t.Fatal(err)
	}
	p.Interval = time.Millisecond
	return p
}

func (s *apiServer) serve(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	isPatch := r.Method == http.MethodPatch && r.URL.Path == podPath+"/resize"
	isGet := r.Method == http.MethodGet && r.URL.Path == podPath
	switch {
	case r.Header.Get("Authorization") != "Bearer secret":
		refuse(w, http.StatusUnauthorized, "Unauthorized")
	case isGet && s.forbidden == "get":
		refuse(w, http.StatusForbidden, `cannot get resource "pods" in API group ""`)
	case isPatch && s.forbidden == "patch":
		refuse(w, http.StatusForbidden, `cannot patch resource "pods/resize" in API group ""`)
	case isGet:
		s.stepKubelet()
		s.reply(w)
	case isPatch && s.conflicts > 0:
		s.conflicts--
		refuse(w, http.StatusConflict, "the object has been modified")
	case isPatch:
		s.patch(w, r)
	default:
		refuse(w, http.StatusNotFound, fmt.Sprintf("pods %q not found", filepath.Base(r.URL.Path)))
	}
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(meta.Status{
		TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   meta.StatusFailure, Code: int32(code), Message: message,
	})
}

func (s *apiServer) reply(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(s.pod); err != nil {
		s.t.Error(err)
	}
}

// patch applies a strategic merge patch of the subresource resize. A changed specification has a new
// generation; the status of the reply is still that of the previous one.
func (s *apiServer) patch(w http.ResponseWriter, r *http.Request) {
	if got := r.Header.Get("Content-Type"); got != "application/strategic-merge-patch+json" {
		refuse(w, http.StatusUnsupportedMediaType, "unsupported patch "+got)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
	}
	s.patches = append(s.patches, string(body))
	next, err := s.merged(body)
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	if reason := invalidResize(s.pod, next); reason != "" {
		refuse(w, http.StatusUnprocessableEntity, `Pod "job-7" is invalid: `+reason)
		return
	}
	if !equality.Semantic.DeepEqual(s.pod.Spec, next.Spec) {
		s.pod.Spec = next.Spec
		s.pod.Generation++
		s.unobserved = s.delay
	}
	s.reply(w)
	if s.onPatch != nil {
		s.onPatch()
	}
}

// merged returns the pod with a patch. A field that the API does not have is an error.
func (s *apiServer) merged(patch []byte) (*core.Pod, error) {
	decoder := json.NewDecoder(bytes.NewReader(patch))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&core.Pod{}); err != nil {
		return nil, err
	}
	original, err := json.Marshal(s.pod)
	if err != nil {
		return nil, err
	}
	text, err := strategicpatch.StrategicMergePatch(original, patch, core.Pod{})
	if err != nil {
		return nil, err
	}
	next := &core.Pod{}
	return next, json.Unmarshal(text, next)
}

// invalidResize returns why the API does not accept a resize, or an empty string.
func invalidResize(old, next *core.Pod) string {
	unsized := func(p *core.Pod) *core.PodSpec {
		spec := p.Spec.DeepCopy()
		for i := range spec.Containers {
			spec.Containers[i].Resources = core.ResourceRequirements{}
		}
		return spec
	}
	if !equality.Semantic.DeepEqual(unsized(old), unsized(next)) {
		return "spec: Forbidden: only cpu and memory resources are mutable"
	}
	for i, c := range next.Spec.Containers {
		was := old.Spec.Containers[i].Resources
		if len(c.Resources.Requests) < len(was.Requests) || len(c.Resources.Limits) < len(was.Limits) {
			return "spec: Forbidden: resource requests and limits cannot be removed"
		}
		for name, limit := range c.Resources.Limits {
			if request := c.Resources.Requests[name]; request.Cmp(limit) > 0 {
				return "requests: must be less than or equal to " + string(name) + " limit"
			}
		}
	}
	if qosClass(&old.Spec) != qosClass(&next.Spec) {
		return "spec: Invalid value: Pod QOS Class may not change as a result of resizing"
	}
	return ""
}

// qosClass returns the class of a pod: Guaranteed if all requests are equal to their limits,
// BestEffort if there are none.
func qosClass(spec *core.PodSpec) core.PodQOSClass {
	isBestEffort, isGuaranteed := true, true
	for _, c := range spec.Containers {
		for _, name := range []core.ResourceName{core.ResourceCPU, core.ResourceMemory} {
			request, hasRequest := c.Resources.Requests[name]
			limit, hasLimit := c.Resources.Limits[name]
			isBestEffort = isBestEffort && !hasRequest && !hasLimit
			isGuaranteed = isGuaranteed && hasRequest && hasLimit && request.Cmp(limit) == 0
		}
	}
	switch {
	case isBestEffort:
		return core.PodQOSBestEffort
	case isGuaranteed:
		return core.PodQOSGuaranteed
	}
	return core.PodQOSBurstable
}

// stepKubelet advances the kubelet by one step.
func (s *apiServer) stepKubelet() {
	status, spec := &s.pod.Status.ContainerStatuses[1], &s.pod.Spec.Containers[1]
	if s.unobserved > 0 {
		s.unobserved--
		return
	}
	isObserved := s.pod.Status.ObservedGeneration == s.pod.Generation
	s.pod.Status.ObservedGeneration = s.pod.Generation
	wanted := spec.Resources.Requests[core.ResourceCPU]
	switch {
	case equality.Semantic.DeepEqual(*status.Resources, spec.Resources) && s.failure == "":
		s.clearConditions()
	case wanted.Cmp(s.nodeCPU) > 0:
		s.setCondition(core.PodResizePending, core.PodReasonInfeasible, "Node didn't have enough capacity")
	case wanted.Cmp(s.freeCPU) > 0:
		s.setCondition(core.PodResizePending, core.PodReasonDeferred, "Node didn't have enough resource")
	case !isObserved:
		status.AllocatedResources = spec.Resources.Requests.DeepCopy()
		s.setCondition(core.PodResizeInProgress, "", "")
	case s.failure != "":
		s.setCondition(core.PodResizeInProgress, core.PodReasonError, s.failure)
	default:
		s.actuate(status, spec)
	}
}

// actuate gives the container its resources, and restarts it if its policy says so.
func (s *apiServer) actuate(status *core.ContainerStatus, spec *core.Container) {
	mustRestart := core.ContainerResizePolicy{
		ResourceName: core.ResourceCPU, RestartPolicy: core.RestartContainer,
	}
	if slices.Contains(spec.ResizePolicy, mustRestart) {
		s.restarts++
		status.RestartCount++
	}
	status.Resources = spec.Resources.DeepCopy()
	s.clearConditions()
}

func (s *apiServer) clearConditions() { s.pod.Status.Conditions = nil }

func (s *apiServer) setCondition(kind core.PodConditionType, reason, message string) {
	s.pod.Status.Conditions = []core.PodCondition{{
		Type: kind, Status: core.ConditionTrue, Reason: reason, Message: message,
		ObservedGeneration: s.pod.Generation,
	}}
}
