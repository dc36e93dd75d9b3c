package advisor

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// edit replaces a text of a file, which must contain it exactly once.
type edit struct{ file, old, new string }

// mutations put known faults back into the product.
var mutations = []struct {
	name  string
	edits []edit
}{
	{"1: a job that waits for a node holds back jobs for other nodes", []edit{
		{"advisor/cluster/queue.go", "if len(nodes) == 0 {\n\t\treturn true", "if nodes != nil {\n\t\treturn true"},
	}},
	{"1: a queued job whose runner died holds the queue", []edit{
		{"advisor/cluster/cluster.go", "if j.HasHeartbeat && now", "if j.Run > 0 && now"},
	}},
	{"2: a heartbeat does not revive a lost job", []edit{
		{"advisor/alive.go", "\t\ta.heard[j.ID] = j.Run\n", ""},
	}},
	{"2: a silent job does not stop", []edit{
		{"runner/contact.go", "now.Sub(c.lastAt) <= schemas.Silence", "now.Sub(c.lastAt) <= 10*schemas.Silence"},
	}},
	{"the CPUs of a cancelled job are free at once", []edit{
		{"advisor/cluster/hold.go", "!j.HasHeartbeat ||", "j.HasHeartbeat ||"},
	}},
	{"5: an advisor trusts its own clock", []edit{
		{"advisor/clock.go", "a.clock().Add(time.Duration(a.offset.Load()))", "a.clock()"},
	}},
	{"5: the jobs of a node whose clock is an hour slow are lost", []edit{
		{"advisor/cluster/job_transition.go", "max(0, j.SubmittedAt.Sub(e.At))", "0"},
		{"advisor/cluster/job.go", "lag > oldestHeartbeat", "lag > 1000*oldestHeartbeat"},
	}},
	{"7: a person reports CPUs that were not granted", []edit{
		{"advisor/owner.go", "if s == nil {\n\t\treturn nil", "if s != nil {\n\t\treturn nil"},
	}},
	{"7: a second runner of a job starts it again", []edit{
		{"advisor/owner.go", "a.bus.Claim(ctx, started)", "a.bus.Publish(ctx, started)"},
	}},
}

var firstSeed = regexp.MustCompile(`seed (\d+): (.*), after`)

// TestModel finds each fault that is put back. It builds the product once for each of them.
func TestModel_FindsFaultsThatArePutBack(t *testing.T) {
	if os.Getenv("COURIER_TEST_LONG") == "" {
		t.Skip("COURIER_TEST_LONG is not set")
	}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			arguments := []string{
				"test", "-vet=off", "-overlay", overlay(t, m.edits), "-timeout", "0",
				"-run", "^TestModel$", "-schedules", "2000", ".",
			}
			test := exec.CommandContext(t.Context(), "go", arguments...)
			output, err := test.CombinedOutput()
			found := firstSeed.FindStringSubmatch(string(output))
			if err == nil || found == nil {
				t.Fatalf("not found: %v\n%s", err, output)
			}
			t.Logf("schedule %s: %s", found[1], found[2])
		})
	}
}

// overlay writes the edited files, and returns the path of the argument for go test.
func overlay(t *testing.T, edits []edit) string {
	dir, replaced := t.TempDir(), map[string]string{}
	for _, e := range edits {
		original, err := filepath.Abs(filepath.Join("..", e.file))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(original)
		if err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(string(text), e.old); n != 1 {
			t.Fatalf("%s contains %q %d times, want once", e.file, e.old, n)
		}
		mutated := filepath.Join(dir, strings.ReplaceAll(e.file, "/", "-"))
		if err := os.WriteFile(mutated, []byte(strings.Replace(string(text), e.old, e.new, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		replaced[original] = mutated
	}
	data, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
