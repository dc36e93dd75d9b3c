package deploy_test

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

const (
	alertsGuide = "docs/howto/alerts.md"
	backupGuide = "docs/howto/back-up.md"
)

// guides returns the pages whose commands are checked. It omits commands with files of the reader.
func guides(t *testing.T) []string {
	t.Helper()
	found, err := filepath.Glob("../docs/howto/*.md")
	if err != nil || len(found) < 10 {
		t.Fatalf("found guides %v: %v", found, err)
	}
	for i := range found {
		found[i] = strings.TrimPrefix(filepath.ToSlash(found[i]), "../")
	}
	found = slices.DeleteFunc(found, func(page string) bool {
		return page == "docs/howto/query-with-sql.md" || page == "docs/howto/secure-a-cluster.md"
	})
	return append(found, "deploy/kubernetes/README.md")
}

// Every alert has a section in the guide with a link to it, and every section an alert.
func TestOperations_EveryAlertHasInstructions(t *testing.T) {
	var rules struct {
		Groups []struct {
			Rules []struct {
				Alert       string            `yaml:"alert"`
				Annotations map[string]string `yaml:"annotations"`
			} `yaml:"rules"`
		} `yaml:"groups"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/alerts.yml")), &rules); err != nil {
		t.Fatal(err)
	}
	var alerts, sections []string
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			section := strings.TrimPrefix(alertsGuide, "docs") + "#" + strings.ToLower(r.Alert)
			if link := r.Annotations["runbook_url"]; !strings.HasSuffix(link, section) {
				t.Errorf("runbook_url of %s = %q, want the section %s", r.Alert, link, section)
			}
		}
	}
	_, after, _ := strings.Cut(read(t, alertsGuide), "\n## Alerts\n")
	list, _, _ := strings.Cut(after, "\n## ")
	for _, section := range strings.Split(list, "\n### ")[1:] {
		name, text, _ := strings.Cut(section, "\n")
		sections = append(sections, name)
		if !strings.Contains(text, "Look:") || !strings.Contains(text, "Do:") {
			t.Errorf("the section of %s has no \"Look:\" or no \"Do:\"", name)
		}
	}
	if diff := cmp.Diff(alerts, sections); diff != "" {
		t.Errorf("alerts (-rules +%s):\n%s", alertsGuide, diff)
	}
}

var (
	// A line of a code block, without the continuation after a backslash.
	indented = regexp.MustCompile(`(?m)^(?:    )?(courier [a-z].*?)(?: \\)?$`)
	quoted   = regexp.MustCompile("`(courier [a-z][^`]*)`")
	word     = regexp.MustCompile(`'[^']*'|"[^"]*"|\S+`)
)

// Every command in the guides has valid arguments.
func TestOperations_CommandsAreValid(t *testing.T) {
	tried := map[string]bool{}
	for _, path := range guides(t) {
		text := read(t, path)
		for _, m := range slices.Concat(indented.FindAllStringSubmatch(text, -1),
			quoted.FindAllStringSubmatch(text, -1)) {
			typed, _, _ := strings.Cut(m[1], " > ")
			args := word.FindAllString(typed, -1)[1:]
			line := strings.Join(args, " ")
			if tried[line] || slices.ContainsFunc(args, func(a string) bool {
				return a == "--help" || a == "--"
			}) {
				continue
			}
			tried[line] = true
			if out, err := courier(t, append(args, "--help")...); err != nil {
				t.Errorf("%s: courier %s: %v\n%s", path, line, err, out)
			}
		}
	}
	if len(tried) < 8 {
		t.Errorf("found %d commands in the guides, want at least 8: %v", len(tried), tried)
	}
}

// requested matches an example that requests advice, without the command of the job.
var requested = regexp.MustCompile(
	`(?m)^(?:\$ )?courier ((?:predict|run|submit) .*?)(?: --)?(?: \\)?$`,
)

// The first examples for a new user have all required flags: they fail only because no NATS server
// answers.
func TestOperations_FirstExamplesAreComplete(t *testing.T) {
	found := 0
	for _, path := range []string{"README.md", "docs/tutorial.md"} {
		for _, m := range requested.FindAllStringSubmatch(read(t, path), -1) {
			if strings.Contains(m[1], "$") {
				continue // contains the variable of a loop
			}
			found++
			t.Run(m[1], func(t *testing.T) {
				t.Parallel()
				args := append(strings.Fields(m[1]), "--nats-url=nats://127.0.0.1:1")
				if args[0] == "run" {
					args = append(args, "--spool-dir="+t.TempDir(), "--", "true")
				}
				out, _ := courier(t, args...)
				if !strings.Contains(out, "connect to nats") && !strings.Contains(out,
					"NATS is unreachable") {
					t.Errorf("%s: courier %s: %s", path, m[1], out)
				}
			})
		}
	}
	if found < 4 {
		t.Errorf("found %d examples, want at least 4", found)
	}
}

// The guides name the same streams as the backup that is tested.
func TestOperations_GuidesNameTheSameStreams(t *testing.T) {
	list := regexp.MustCompile(`for s in ([A-Z_ ]+); do`)
	names := func(path string) []string {
		m := list.FindStringSubmatch(read(t, path))
		if m == nil {
			t.Fatalf("%s has no list of streams", path)
		}
		all := strings.Fields(m[1])
		slices.Sort(all)
		return all
	}
	if diff := cmp.Diff(names(backupGuide), names("deploy/kubernetes/README.md")); diff != "" {
		t.Errorf("streams (-%s +deploy/kubernetes/README.md):\n%s", backupGuide, diff)
	}
}
