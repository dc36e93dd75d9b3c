package resize

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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

// The limit keeps its ratio to the request, and is never equal to it unless it was.
func TestCPUAllocation_ScaledTo(t *testing.T) {
	for _, test := range []struct {
		request, limit string
		cpus           uint32
		want           string // request, and limit if there is one
	}{
		{"1", "", 2, "2"}, {"1", "1", 2, "2 2"}, {"500m", "500m", 3, "3 3"}, {"1", "4", 2, "2 8"},
		{"2", "3", 1, "1 1500m"}, {"3", "4", 1, "1 1333m"}, {"1", "1333m", 3, "3 3999m"},
		{"100", "100001m", 1, "1 1001m"}, {"0.5", "1.5", 1, "1 3"},
	} {
		r := &resources{Requests: map[string]string{"cpu": test.request}}
		if test.limit != "" {
			r.Limits = map[string]string{"cpu": test.limit}
		}
		a, err := r.cpus()
		if err != nil {
			t.Fatal(err)
		}
		scaled := a.scaledTo(test.cpus).resources()
		got := strings.TrimSpace(scaled.Requests["cpu"] + " " + scaled.Limits["cpu"])
		if got != test.want {
			t.Errorf("%s/%s scaled to %d = %q, want %q", test.request, test.limit, test.cpus, got, test.want)
		}
	}
}

func TestParseCPU_RefusesOtherUnits(t *testing.T) {
	for _, quantity := range []string{"1Gi", "-1", "many", "NaN", "1e30", "m"} {
		if got, err := parseCPU(quantity); err == nil {
			t.Errorf("parseCPU(%q) = %d, want an error", quantity, got)
		}
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
	t.Setenv("POD_NAME", "job-7")
	if _, err := ThisPodWith(t.TempDir()); err == nil ||
		!strings.Contains(err.Error(), "no service account") {
		t.Errorf("ThisPodWith() = %v, want an error that names the service account", err)
	}
}
