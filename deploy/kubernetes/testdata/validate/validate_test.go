package validate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"
)

// kinds are the kinds that manifests may have.
var kinds = map[string]func() any{
	"apps/v1 DaemonSet":                        func() any { return &apps.DaemonSet{} },
	"apps/v1 Deployment":                       func() any { return &apps.Deployment{} },
	"batch/v1 Job":                             func() any { return &batch.Job{} },
	"networking.k8s.io/v1 NetworkPolicy":       func() any { return &networking.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":            func() any { return &policy.PodDisruptionBudget{} },
	"rbac.authorization.k8s.io/v1 Role":        func() any { return &rbac.Role{} },
	"rbac.authorization.k8s.io/v1 RoleBinding": func() any { return &rbac.RoleBinding{} },
	"v1 ConfigMap":                             func() any { return &core.ConfigMap{} },
	"v1 Namespace":                             func() any { return &core.Namespace{} },
	"v1 Service":                               func() any { return &core.Service{} },
	"v1 ServiceAccount":                        func() any { return &core.ServiceAccount{} },
}

// decode reads one document strictly: no unknown field, no field twice.
func decode(document []byte) (kind string, object any, err error) {
	var head struct {
		APIVersion string `json:"apiVersion"`
		Kind       string `json:"kind"`
	}
	if err := yaml.Unmarshal(document, &head); err != nil {
		return "", nil, err
	}
	kind = head.APIVersion + " " + head.Kind
	make, known := kinds[kind]
	if !known {
		return kind, nil, nil
	}
	object = make()
	return kind, object, yaml.UnmarshalStrict(document, object)
}

var separator = regexp.MustCompile(`(?m)^---$`)

func TestManifests_AreOfTheAPI(t *testing.T) {
	paths, err := filepath.Glob("../../*.yaml")
	if err != nil || len(paths) < 8 {
		t.Fatalf("found manifests %v, want at least 8 (%v)", paths, err)
	}
	examples, err := filepath.Glob("../../examples/*.yaml")
	if err != nil || len(examples) == 0 {
		t.Fatalf("found examples %v, want at least one (%v)", examples, err)
	}
	paths = append(paths, examples...)
	for _, path := range paths {
		if filepath.Base(path) == "kustomization.yaml" {
			continue
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, document := range separator.Split(string(text), -1) {
			kind, object, err := decode([]byte(document))
			switch {
			case err != nil:
				t.Errorf("%s: %s: %v", path, kind, err)
			case object == nil:
				t.Errorf("%s: the kind %q is not one that is known here", path, kind)
			}
		}
	}
}

// The pods and volumes of the ClickHouse cluster are of the API. The other fields are the operator's.
func TestClickHouseCluster_PodsAreOfTheAPI(t *testing.T) {
	text, err := os.ReadFile("../../clickhouse-cluster/clickhouse.yaml")
	if err != nil {
		t.Fatal(err)
	}
	specs := 0
	for _, document := range separator.Split(string(text), -1) {
		var object struct {
			Spec struct {
				Templates struct {
					Pods    []struct{ Spec any } `json:"podTemplates"`
					Volumes []struct{ Spec any } `json:"volumeClaimTemplates"`
				} `json:"templates"`
			} `json:"spec"`
		}
		if err := yaml.Unmarshal([]byte(document), &object); err != nil {
			t.Fatal(err)
		}
		check := func(spec, want any) {
			text, err := yaml.Marshal(spec)
			if err == nil {
				err = yaml.UnmarshalStrict(text, want)
			}
			if err != nil {
				t.Errorf("%s: %v", text, err)
			}
			specs++
		}
		for _, p := range object.Spec.Templates.Pods {
			check(p.Spec, &core.PodSpec{})
		}
		for _, v := range object.Spec.Templates.Volumes {
			check(v.Spec, &core.PersistentVolumeClaimSpec{})
		}
	}
	if specs != 4 {
		t.Errorf("%d specs of pods and volumes, want 4", specs)
	}
}

// The job of the example can be resized with the permissions of its service account.
func TestElasticJob_CanBeResized(t *testing.T) {
	text, err := os.ReadFile("../../examples/elastic-job.yaml")
	if err != nil {
		t.Fatal(err)
	}
	objects := map[string]any{}
	for _, document := range separator.Split(string(text), -1) {
		kind, object, err := decode([]byte(document))
		if err != nil {
			t.Fatal(err)
		}
		objects[kind] = object
	}
	job := objects["batch/v1 Job"].(*batch.Job)
	account := objects["v1 ServiceAccount"].(*core.ServiceAccount)
	role := objects["rbac.authorization.k8s.io/v1 Role"].(*rbac.Role)
	binding := objects["rbac.authorization.k8s.io/v1 RoleBinding"].(*rbac.RoleBinding)

	pod := job.Spec.Template.Spec
	isBound := len(binding.Subjects) == 1 && binding.Subjects[0].Name == account.Name &&
		binding.Subjects[0].Namespace == job.Namespace && binding.RoleRef.Name == role.Name
	if !isBound || pod.ServiceAccountName != account.Name {
		t.Errorf("the role is not that of the account %q of the pod", pod.ServiceAccountName)
	}
	wanted := []rbac.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}},
		{APIGroups: []string{""}, Resources: []string{"pods/resize"}, Verbs: []string{"patch"}},
	}
	if !equality.Semantic.DeepEqual(role.Rules, wanted) {
		t.Errorf("rules = %v, want %v", role.Rules, wanted)
	}

	s := newAPIServer(t, pod.Containers[0].Resources)
	s.pod.Spec.Containers[1].ResizePolicy = pod.Containers[0].ResizePolicy
	if err := s.client().Resize(t.Context(), 4); err != nil {
		t.Error(err)
	}
	variables := map[string]core.EnvVar{}
	for _, v := range pod.Containers[0].Env {
		variables[v.Name] = v
	}
	source := variables["POD_NAME"].ValueFrom
	if variables["CONTAINER_NAME"].Value != pod.Containers[0].Name ||
		source == nil || source.FieldRef == nil || source.FieldRef.FieldPath != "metadata.name" {
		t.Errorf("variables = %v, want the names of pod and container", pod.Containers[0].Env)
	}
}

// What TestManifests_AreOfTheAPI is worth.
func TestDecode_RefusesWhatIsNotOfTheAPI(t *testing.T) {
	for _, c := range []struct{ document, want string }{
		{"apiVersion: v1\nkind: Service\nspec: {port: 80}", `unknown field "port"`},
		{"apiVersion: v1\nkind: Service\nspec: {ports: [{port: many}]}", "cannot unmarshal string"},
		{"apiVersion: v1\nkind: Service\nkind: Service", `"kind" already set`},
	} {
		if _, _, err := decode([]byte(c.document)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("decode(%q) = %v, want an error with %q", c.document, err, c.want)
		}
	}
}
