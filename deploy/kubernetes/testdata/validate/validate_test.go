package validate_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	"sigs.k8s.io/yaml"
)

// kinds are the kinds that manifests may have.
var kinds = map[string]func() any{
	"apps/v1 DaemonSet":                  func() any { return &apps.DaemonSet{} },
	"apps/v1 Deployment":                 func() any { return &apps.Deployment{} },
	"networking.k8s.io/v1 NetworkPolicy": func() any { return &networking.NetworkPolicy{} },
	"policy/v1 PodDisruptionBudget":      func() any { return &policy.PodDisruptionBudget{} },
	"v1 ConfigMap":                       func() any { return &core.ConfigMap{} },
	"v1 Namespace":                       func() any { return &core.Namespace{} },
	"v1 Service":                         func() any { return &core.Service{} },
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

// What the test above is worth.
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
