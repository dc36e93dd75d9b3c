package deploy_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// unit is a service unit of systemd with the values of each directive in order.
type unit struct {
	name       string
	text       string
	directives map[string][]string
}

func units(t *testing.T) []unit {
	t.Helper()
	paths, err := filepath.Glob("systemd/*.service")
	if err != nil || len(paths) == 0 {
		t.Fatalf("units in systemd: %v, %v", paths, err)
	}
	var all []unit
	for _, path := range paths {
		u := unit{
			name:       filepath.Base(path),
			text:       read(t, "deploy/"+path),
			directives: map[string][]string{},
		}
		for line := range strings.Lines(u.text) {
			if key, value, found := strings.Cut(strings.TrimSpace(line), "="); found &&
				!strings.HasPrefix(line, "#") {
				u.directives[key] = append(u.directives[key], value)
			}
		}
		all = append(all, u)
	}
	return all
}

// command returns the arguments of courier.
func (u *unit) command(t *testing.T) []string {
	t.Helper()
	rest, ours := strings.CutPrefix(strings.Join(u.directives["ExecStart"], "\n"),
		"/usr/local/bin/courier ")
	if !ours {
		t.Fatalf("%s runs %q, want one command of /usr/local/bin/courier", u.name,
			u.directives["ExecStart"])
	}
	return strings.Fields(rest)
}

// variables returns the environment variables that the unit sets.
func (u *unit) variables() map[string]string {
	all := map[string]string{}
	for _, line := range u.directives["Environment"] {
		for pair := range strings.FieldsSeq(line) {
			key, value, _ := strings.Cut(pair, "=")
			all[key] = value
		}
	}
	return all
}

func TestSystemd_CommandsAndVariablesAreValid(t *testing.T) {
	var services []string
	addresses := map[string]string{}
	for _, u := range units(t) {
		args := u.command(t)
		services = append(services, args[0])
		if want := "courier-" + args[0] + ".service"; u.name != want {
			t.Errorf("%s runs %s, want the name %s", u.name, args[0], want)
		}
		variables := u.variables()
		at := variables["COURIER_HTTP_ADDRESS"]
		if other := addresses[at]; at != "" && other != "" {
			t.Errorf("%s and %s both listen on %s", u.name, other, at)
		}
		addresses[at] = u.name
		for _, mentioned := range regexp.MustCompile(`COURIER_[A-Z_]+`).FindAllString(u.text, -1) {
			variables[mentioned] = "" // also in a comment
		}
		checkCommand(t, u.name, args, variables)
	}
	if diff := cmp.Diff([]string{
		"advisor", "collector", "gateway", "store", "trainer",
	}, services); diff != "" {
		t.Errorf("services with a unit (-want +got):\n%s", diff)
	}
}

// All units have the same sandbox except for the listed directives.
func TestSystemd_SandboxIsTheSame(t *testing.T) {
	const begin = "# Limit what an attacker who controls the process can do.\n"
	sandbox := func(u unit) []string {
		_, after, found := strings.Cut(u.text, begin)
		inside, _, ended := strings.Cut(after, "\n\n[Install]")
		if !found || !ended {
			t.Fatalf("%s has no sandbox", u.name)
		}
		var all []string
		for line := range strings.Lines(inside + "\n") {
			if !strings.HasPrefix(line, "#") {
				all = append(all, strings.TrimSpace(line))
			}
		}
		return slices.DeleteFunc(all, func(s string) bool { return s == "" })
	}
	more := map[string][]string{
		"courier-collector.service": {"RestrictAddressFamilies=AF_NETLINK"},
		"courier-trainer.service":   {"SystemCallFilter=sched_setattr", "CPUWeight=20"},
	}
	all := units(t)
	common := sandbox(all[0]) // the advisor's
	for _, u := range all {
		if diff := cmp.Diff(slices.Concat(common, more[u.name]), sandbox(u)); diff != "" {
			t.Errorf("sandbox of %s (-of %s +its own):\n%s", u.name, all[0].name, diff)
		}
		for _, key := range []string{"MemoryMax", "Restart", "TimeoutStopSec"} {
			if len(u.directives[key]) != 1 {
				t.Errorf("%s: %s is %q, want one", u.name, key, u.directives[key])
			}
		}
	}
}

// maxExposure is the highest accepted exposure level of a unit in systemd-analyze security, times
// ten: the levels range from 0 (safe) to 10.
const maxExposure = "12"

func TestSystemd_AnalyzeAcceptsTheUnits(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("verifying the units requires systemd-analyze")
	}
	dir := t.TempDir()
	for _, u := range units(t) { // with the path of the test's program
		path := filepath.Join(dir, u.name)
		if err := os.WriteFile(path,
			[]byte(strings.ReplaceAll(u.text, "/usr/local/bin/courier", program(t, "courier"))),
			0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"verify", "--man=no", path}, {
			"security", "--offline=true", "--threshold=" + maxExposure, path,
		}} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			out, err := exec.CommandContext(ctx, analyze, args...).CombinedOutput()
			cancel()
			if err != nil || args[0] == "verify" && len(out) > 0 {
				t.Errorf("systemd-analyze %s of %s: %v\n%s", args[0], u.name, err, out)
			}
		}
	}
}

// permitted returns the system calls that the filter of the unit allows, according to the groups
// of the installed systemd.
func (u *unit) permitted(t *testing.T, analyze string) map[string]bool {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), analyze, "syscall-filter", "--no-pager").Output()
	if err != nil {
		t.Skipf("systemd-analyze cannot list groups of system calls: %v", err)
	}
	groups, name := map[string][]string{}, ""
	for line := range strings.Lines(string(out)) {
		switch word := strings.TrimSpace(line); {
		case strings.HasPrefix(line, "@"):
			name = word
		case word != "" && !strings.HasPrefix(word, "#"):
			groups[name] = append(groups[name], word)
		}
	}
	var members func(word string) []string
	members = func(word string) []string {
		if !strings.HasPrefix(word, "@") {
			return []string{word}
		}
		var all []string
		for _, w := range groups[word] {
			all = append(all, members(w)...)
		}
		return all
	}
	all := map[string]bool{}
	for _, w := range members("@default") { // always
		all[w] = true
	}
	for _, line := range u.directives["SystemCallFilter"] {
		list, less := strings.CutPrefix(line, "~")
		for word := range strings.FieldsSeq(list) {
			for _, w := range members(word) {
				all[w] = !less
			}
		}
	}
	return all
}

var (
	traced  = regexp.MustCompile(`(?m)^\d+ +([a-z0-9_]+)\(`)
	sampled = regexp.MustCompile(`(?m)^courier_collector_published_samples_total [3-9]`)
	sockets = regexp.MustCompile(`\bsocket\((?:PF|AF)_([A-Z0-9]+),`)
)

// Each service starts as in its unit, becomes ready and stops, under strace. Its sandbox permits
// all its system calls.
func TestSystemd_SandboxPermitsTheSystemCalls(t *testing.T) {
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Skip("recording the system calls of services requires strace")
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("listing the permitted system calls requires systemd-analyze")
	}
	nats, monitor := address(t), address(t)
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program(t, "nats-server"), "-a",
		"127.0.0.1", "-p", port(nats), "-m", port(monitor), "-js", "-sd", t.TempDir())
	start(t, "nats", c, func() error {
		_, err := courier(t, "health", "http://"+monitor+"/healthz")
		return err
	})
	for _, u := range units(t) {
		log := filepath.Join(t.TempDir(), "calls")
		t.Run(u.name, func(t *testing.T) {
			args := append([]string{
				"-D", "-f", "-qq", "-o", log, program(t, "courier"),
			}, u.command(t)...)
			c := exec.CommandContext(context.WithoutCancel(t.Context()), strace, args...)
			at, health := address(t), "/readyz"
			v := u.variables()
			maps.Copy(v, map[string]string{
				"COURIER_NATS_URL":     "nats://" + nats,
				"COURIER_HTTP_ADDRESS": at,
				"HOME":                 t.TempDir(),
			})
			working := func() bool { return true }
			switch u.name {
			case "courier-collector.service":
				v["COURIER_SPOOL_DIR"], v["COURIER_INTERVAL"] = t.TempDir(), "100ms"
				working = func() bool {
					return sampled.MatchString(page(t, "http://"+at+"/metrics"))
				}
			case "courier-store.service": // without ClickHouse it waits
				v["COURIER_CLICKHOUSE_URL"], health = "clickhouse://127.0.0.1:1/courier", "/healthz"
			}
			for key, value := range v {
				c.Env = append(c.Env, key+"="+value)
			}
			start(t, u.name, c, func() error {
				_, err := courier(t, "health", "http://"+at+health)
				if err == nil && !working() {
					err = errors.New("not ready yet")
				}
				return err
			})
		})
		u.checkTrace(t, awaitTrace(t, log), u.permitted(t, analyze))
	}
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

// page returns the body at an address, or "".
func page(t *testing.T, address string) string {
	t.Helper()
	q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(q)
	if err != nil {
		return ""
	}
	defer answer.Body.Close()
	text, _ := io.ReadAll(answer.Body) // the part that arrived is enough
	return string(text)
}

// awaitTrace returns the output of strace after its program has ended.
func awaitTrace(t *testing.T, path string) string {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for deadline := time.After(patience); ; {
		text, err := os.ReadFile(path)
		if err == nil && strings.Contains(string(text), "exit_group(") {
			return string(text)
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatalf("the trace has no end of the program: %v", err)
		}
	}
}

// checkTrace reports system calls and sockets that the sandbox of the unit forbids.
func (u *unit) checkTrace(t *testing.T, trace string, permitted map[string]bool) {
	t.Helper()
	seen := map[string]bool{}
	for _, m := range traced.FindAllStringSubmatch(trace, -1) {
		if seen[m[1]] = true; !permitted[m[1]] {
			permitted[m[1]] = true // report it once
			t.Errorf("%s forbids the system call %s", u.name, m[1])
		}
	}
	families := strings.Fields(strings.Join(u.directives["RestrictAddressFamilies"], " "))
	for _, m := range sockets.FindAllStringSubmatch(trace, -1) {
		if !slices.Contains(families, "AF_"+m[1]) {
			t.Errorf("%s forbids sockets of the family %s", u.name, m[1])
		}
	}
	if len(seen) < 20 {
		t.Errorf("%s: the trace has only %d system calls", u.name, len(seen))
	}
}
