package deploy_test

import (
	"errors"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// manifest contains the fields of a Kubernetes object that the tests use. The module in
// kubernetes/testdata/validate validates objects against the API.
type manifest struct {
	file     string
	Kind     string `yaml:"kind"`
	Metadata struct {
		Name      string            `yaml:"name"`
		Namespace string            `yaml:"namespace"`
		Labels    map[string]string `yaml:"labels"`
	} `yaml:"metadata"`
	Data map[string]string `yaml:"data"`
	Spec struct {
		Replicas int             `yaml:"replicas"`
		Selector map[string]any  `yaml:"selector"`
		Ports    []containerPort `yaml:"ports"`
		Template struct {
			Metadata struct {
				Labels      map[string]string `yaml:"labels"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"metadata"`
			Spec struct {
				Token           *bool           `yaml:"automountServiceAccountToken"`
				HostNetwork     bool            `yaml:"hostNetwork"`
				HostPID         bool            `yaml:"hostPID"`
				GraceSeconds    int             `yaml:"terminationGracePeriodSeconds"`
				SecurityContext securityContext `yaml:"securityContext"`
				Containers      []container     `yaml:"containers"`
				Volumes         []map[string]any
			} `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

type containerPort struct {
	Name          string `yaml:"name"`
	ContainerPort int    `yaml:"containerPort"`
	TargetPort    string `yaml:"targetPort"`
}

type securityContext struct {
	NonRoot  *bool `yaml:"runAsNonRoot"`
	User     int   `yaml:"runAsUser"`
	Escalate *bool `yaml:"allowPrivilegeEscalation"`
	ReadOnly bool  `yaml:"readOnlyRootFilesystem"`
	Seccomp  struct {
		Type string `yaml:"type"`
	} `yaml:"seccompProfile"`
	Capabilities struct {
		Add  []string `yaml:"add"`
		Drop []string `yaml:"drop"`
	} `yaml:"capabilities"`
}

type probe struct {
	HTTPGet struct {
		Path string `yaml:"path"`
		Port string `yaml:"port"`
	} `yaml:"httpGet"`
}

type container struct {
	Image string   `yaml:"image"`
	Args  []string `yaml:"args"`
	Env   []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"env"`
	EnvFrom []struct {
		ConfigMapRef struct {
			Name string `yaml:"name"`
		} `yaml:"configMapRef"`
	} `yaml:"envFrom"`
	Ports           []containerPort `yaml:"ports"`
	StartupProbe    probe           `yaml:"startupProbe"`
	LivenessProbe   probe           `yaml:"livenessProbe"`
	ReadinessProbe  probe           `yaml:"readinessProbe"`
	SecurityContext securityContext `yaml:"securityContext"`
	Resources       struct {
		Requests map[string]string `yaml:"requests"`
		Limits   map[string]string `yaml:"limits"`
	} `yaml:"resources"`
}

func (c *container) variables() map[string]string {
	all := map[string]string{}
	for _, v := range c.Env {
		all[v.Name] = v.Value
	}
	return all
}

func manifests(t *testing.T) []manifest {
	t.Helper()
	paths, err := filepath.Glob("kubernetes/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var all []manifest
	for _, path := range paths {
		decoder := yaml.NewDecoder(strings.NewReader(read(t, "deploy/"+path)))
		for {
			m := manifest{file: filepath.Base(path)}
			err := decoder.Decode(&m)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all = append(all, m)
		}
	}
	return all
}

// workloads returns the objects that run courier.
func workloads(t *testing.T) []manifest {
	return slices.DeleteFunc(manifests(t), func(m manifest) bool {
		return m.Kind != "Deployment" && m.Kind != "DaemonSet"
	})
}

func TestKubernetes_HasTheServices(t *testing.T) {
	var got []string
	for _, m := range workloads(t) {
		got = append(got, m.Kind+" "+m.Metadata.Namespace+"/"+m.Metadata.Name)
	}
	slices.Sort(got)
	want := []string{
		"DaemonSet courier-nodes/collector", "Deployment courier/advisor",
		"Deployment courier/gateway", "Deployment courier/store", "Deployment courier/trainer",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("workloads (-want +got):\n%s", diff)
	}
}

func TestKubernetes_CommandsAndVariablesAreValid(t *testing.T) {
	settings := map[string]map[string]string{}
	for _, m := range manifests(t) {
		if m.Kind == "ConfigMap" {
			settings[m.Metadata.Namespace+"/"+m.Metadata.Name] = m.Data
		}
	}
	for _, m := range workloads(t) {
		c := m.Spec.Template.Spec.Containers[0]
		variables := c.variables()
		for _, from := range c.EnvFrom {
			data := settings[m.Metadata.Namespace+"/"+from.ConfigMapRef.Name]
			if data["COURIER_NATS_URL"] == "" {
				t.Errorf("%s: config map %s has no COURIER_NATS_URL", m.file, from.ConfigMapRef.Name)
			}
			maps.Copy(variables, data)
		}
		checkCommand(t, m.file, c.Args, variables)
	}
}

// The program accepts the command of the example, and knows the variables of its container.
func TestKubernetes_ElasticJobIsValid(t *testing.T) {
	documents := strings.Split(read(t, "deploy/kubernetes/examples/elastic-job.yaml"), "\n---\n")
	var job manifest
	if err := yaml.Unmarshal([]byte(documents[len(documents)-1]), &job); err != nil {
		t.Fatal(err)
	}
	c := job.Spec.Template.Spec.Containers[0]
	args, training := cut(c.Args)
	if len(training) == 0 {
		t.Errorf("arguments %q have no training command", c.Args)
	}
	variables := c.variables()
	maps.DeleteFunc(variables, func(name, _ string) bool { return !strings.HasPrefix(name, "COURIER_") })
	checkCommand(t, "elastic-job.yaml", args, variables)
}

// The probes use the port and the paths that courier serves.
func TestKubernetes_ProbesMatchTheServer(t *testing.T) {
	for _, m := range workloads(t) {
		c := m.Spec.Template.Spec.Containers[0]
		listens := port(c.variables()["COURIER_HTTP_ADDRESS"])
		if len(c.Ports) != 1 || c.Ports[0].Name != "http" ||
			listens != yamlText(c.Ports[0].ContainerPort) {
			t.Errorf("%s: courier listens on %s, but the pod has the ports %v", m.file, listens, c.Ports)
		}
		if a := m.Spec.Template.Metadata.Annotations["prometheus.io/port"]; a != listens {
			t.Errorf("%s: annotation prometheus.io/port = %s, want %s", m.file, a, listens)
		}
		for name, pair := range map[string][2]string{"startup": {
			c.StartupProbe.HTTPGet.Path, "/healthz",
		}, "liveness": {
			c.LivenessProbe.HTTPGet.Path, "/healthz",
		}, "readiness": {c.ReadinessProbe.HTTPGet.Path, "/readyz"}} {
			if pair[0] != pair[1] {
				t.Errorf("%s: path of the %s probe = %q, want %q", m.file, name, pair[0], pair[1])
			}
		}
		if grace := m.Spec.Template.Spec.GraceSeconds; grace < 15 {
			t.Errorf("%s: grace period %d s, want at least 15: the services need up to ten", m.file,
				grace)
		}
	}
}

func yamlText(v any) string {
	text, _ := yaml.Marshal(v) // of a number
	return strings.TrimSpace(string(text))
}

func TestKubernetes_RestrictsPods(t *testing.T) {
	user := find(t, "deploy/Dockerfile", `(?m)^USER (\d+):`)
	for _, m := range workloads(t) {
		pod := m.Spec.Template.Spec
		if pod.Token == nil || *pod.Token || pod.HostPID {
			t.Errorf("%s: the pod has a token of the API or access to the processes of its node", m.file)
		}
		if s := pod.SecurityContext; s.NonRoot == nil || !*s.NonRoot || yamlText(s.User) != user ||
			s.Seccomp.Type != "RuntimeDefault" {
			t.Errorf("%s: security context of the pod = %+v, want user %s", m.file, s, user)
		}
		if pod.HostNetwork != (m.Metadata.Name == "collector") {
			t.Errorf("%s: hostNetwork = %t, want it only for the collector", m.file, pod.HostNetwork)
		}
		for _, v := range pod.Volumes {
			if v["emptyDir"] == nil {
				t.Errorf("%s: the pod mounts %v, want only emptyDir", m.file, v)
			}
		}
		for _, c := range pod.Containers {
			s := c.SecurityContext
			if s.Escalate == nil || *s.Escalate || !s.ReadOnly || len(s.Capabilities.Add) > 0 ||
				!slices.Equal(s.Capabilities.Drop, []string{"ALL"}) {
				t.Errorf("%s: security context of the container = %+v, want a read-only one without capabilities",
					m.file, s)
			}
			if c.Resources.Requests["cpu"] == "" || c.Resources.Requests["memory"] == "" ||
				c.Resources.Limits["memory"] == "" {
				t.Errorf("%s: resources = %+v, want requests and a memory limit", m.file, c.Resources)
			}
			if strings.Contains(read(t, "deploy/kubernetes/"+m.file), "password") {
				t.Errorf("%s has a password", m.file)
			}
		}
	}
}

// Selectors match pods, every service with several replicas has a disruption budget, and the
// kustomization lists all files.
func TestKubernetes_ReferencesAreConsistent(t *testing.T) {
	replicas := map[string]int{}
	for _, m := range workloads(t) {
		replicas[m.Metadata.Name] = m.Spec.Replicas
		if name := m.Spec.Template.Metadata.Labels["app.kubernetes.io/name"]; name != m.Metadata.Name ||
			m.Metadata.Labels["app.kubernetes.io/part-of"] != "courier" {
			t.Errorf("%s: labels of the pods = %v, want name and part-of courier",
				m.file, m.Spec.Template.Metadata.Labels)
		}
	}
	guarded := map[string]bool{}
	selected := regexp.MustCompile(`app\.kubernetes\.io/name: (\w+)`)
	for _, m := range manifests(t) {
		if m.Kind == "PodDisruptionBudget" {
			guarded[m.Metadata.Name] = true
		}
		text, err := yaml.Marshal(m.Spec.Selector)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range selected.FindAllStringSubmatch(string(text), -1) {
			if _, found := replicas[name[1]]; !found || name[1] != m.Metadata.Name {
				t.Errorf("%s %s selects pods of %s, want its own", m.Kind, m.Metadata.Name, name[1])
			}
		}
	}
	for name, n := range replicas {
		if guarded[name] != (n > 1) {
			t.Errorf("%s has %d replicas and a disruption budget: %t, want one only for several replicas",
				name, n, guarded[name])
		}
	}
	var list struct {
		Resources []string `yaml:"resources"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/kubernetes/kustomization.yaml")), &list); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, m := range manifests(t) {
		if m.file != "kustomization.yaml" && !slices.Contains(files, m.file) {
			files = append(files, m.file)
		}
	}
	slices.Sort(list.Resources)
	if diff := cmp.Diff(files, list.Resources); diff != "" {
		t.Errorf("kustomization.yaml (-files +listed):\n%s", diff)
	}
}
