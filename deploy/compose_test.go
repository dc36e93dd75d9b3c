package deploy_test

import (
	"encoding/xml"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// composition is what the tests read of docker-compose.yml.
type composition struct {
	Services map[string]*service `yaml:"services"`
	Volumes  map[string]any      `yaml:"volumes"`
}

type service struct {
	Image       string            `yaml:"image"`
	Command     []string          `yaml:"command"`
	Environment map[string]string `yaml:"environment"`
	Restart     string            `yaml:"restart"`
	Ports       []string          `yaml:"ports"`
	Volumes     []string          `yaml:"volumes"`
	DependsOn   map[string]struct {
		Condition string `yaml:"condition"`
	} `yaml:"depends_on"`
	Healthcheck *struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
	Profiles []string `yaml:"profiles"`
	Scale    int      `yaml:"scale"` // 0: one
	Memory   string   `yaml:"mem_limit"`
	CPUs     float64  `yaml:"cpus"`
	PIDs     int      `yaml:"pids_limit"`
	ReadOnly bool     `yaml:"read_only"`
	User     string   `yaml:"user"`
	Drop     []string `yaml:"cap_drop"`
}

// ours reports whether the service runs the program of this repository.
func (s *service) ours() bool { return strings.HasPrefix(s.Image, "courier:") }

const root = ".."

var variable = regexp.MustCompile(`\$\{[A-Z_]+:-([^}]*)\}`)

// compose reads docker-compose.yml with the defaults of its variables.
func compose(t *testing.T) composition {
	t.Helper()
	var c composition
	text := variable.ReplaceAllString(read(t, "docker-compose.yml"), "$1")
	if strings.Contains(text, "${") {
		t.Error("docker-compose.yml has a variable without a default")
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// find returns the first group of a pattern in a file.
func find(t *testing.T, path, pattern string) string {
	t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(read(t, path))
	if found == nil {
		t.Fatalf("%s has no %s", path, pattern)
	}
	return found[1]
}

func TestCompose_HasTheServices(t *testing.T) {
	got := map[string]int{}
	for name, s := range compose(t).Services {
		if len(s.Profiles) == 0 {
			got[name] = max(s.Scale, 1)
		}
	}
	want := map[string]int{
		"advisor":    2,
		"clickhouse": 1,
		"collector":  1,
		"gateway":    1,
		"nats1":      1,
		"nats2":      1,
		"nats3":      1,
		"store":      1,
		"trainer":    1,
		"worker":     2,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("services (-want +got):\n%s", diff)
	}
}

// No container takes the machine, and those of the house, and what they keep the log
// in, can change nothing but their volumes.
func TestCompose_LimitsWhatAContainerMay(t *testing.T) {
	for name, s := range compose(t).Services {
		if s.Memory == "" || s.CPUs <= 0 || s.CPUs > 2 {
			t.Errorf("%s: mem_limit %q, cpus %g: want both, and no more than two CPUs", name,
				s.Memory, s.CPUs)
		}
		if name == "clickhouse" || len(s.Profiles) > 0 {
			continue // their images change files of their own when they start
		}
		if !s.ReadOnly || !slices.Equal(s.Drop, []string{"ALL"}) || s.PIDs == 0 {
			t.Errorf("%s: read_only %v, cap_drop %v, pids_limit %d", name, s.ReadOnly, s.Drop,
				s.PIDs)
		}
	}
}

// The services may lose any one server of NATS: they know all, and ask for a copy on
// each of whatever is kept.
func TestCompose_KeepsTheLogThrice(t *testing.T) {
	for name, s := range compose(t).Services {
		if !s.ours() {
			continue
		}
		if got, want := s.Environment["COURIER_NATS_URL"],
			"nats://nats1:4222,nats://nats2:4222,nats://nats3:4222"; got != want {
			t.Errorf("%s connects to %s, want %s", name, got, want)
		}
		if got := s.Environment["COURIER_NATS_REPLICAS"]; got != "3" && name != "worker" {
			t.Errorf("%s wants %q replicas", name, got)
		}
	}
}

// The parser refuses an unknown flag, or a value that a flag cannot have, also
// beside --help, which lists the variables.
func TestCompose_CommandLinesAreOurs(t *testing.T) {
	for name, s := range compose(t).Services {
		if !s.ours() {
			continue
		}
		args, rest, _ := cut(s.Command)
		help, err := courier(t, append(args, "--help")...)
		if err != nil {
			t.Errorf("%s: courier %s: %v\n%s", name, strings.Join(args, " "), err, help)
			continue
		}
		for variable := range s.Environment {
			if !regexp.MustCompile(`\(\$` + variable + `\)`).MatchString(help) {
				t.Errorf("%s: courier %s knows no %s", name, args[0], variable)
			}
		}
		if len(rest) > 0 && rest[0] != "/courier" {
			t.Errorf("%s runs %q, which the image does not have", name, rest[0])
		}
	}
	if spool := find(t, "deploy/Dockerfile", `(?m)^ENV ([A-Z_]+)=/data/spool$`); spool != "COURIER_SPOOL_DIR" {
		t.Errorf("the image sets %s", spool)
	}
}

// cut separates the flags of courier run from the command it runs.
func cut(command []string) (args, rest []string, found bool) {
	if i := slices.Index(command, "--"); i >= 0 {
		return slices.Clone(command[:i]), command[i+1:], true
	}
	return slices.Clone(command), nil, false
}

func TestCompose_StartsInTheOrderOfReadiness(t *testing.T) {
	c := compose(t)
	for name, s := range c.Services {
		if s.Healthcheck == nil && name != "worker" {
			t.Errorf("%s has no health check", name)
		}
		if s.ours() && len(s.DependsOn) == 0 {
			t.Errorf("%s waits for nothing", name)
		}
		for other, d := range s.DependsOn {
			if c.Services[other] == nil || c.Services[other].Healthcheck == nil ||
				d.Condition != "service_healthy" {
				t.Errorf("%s waits for %s to be %q, want service_healthy of a service with a health check",
					name, other, d.Condition)
			}
		}
		if s.Restart != "unless-stopped" && s.Restart != "always" {
			t.Errorf("%s: restart is %q", name, s.Restart)
		}
	}
	if _, err := order(c); err != nil {
		t.Error(err)
	}
}

// order lists the services so that each stands behind those it waits for.
func order(c composition) ([]string, error) {
	var all []string
	for len(all) < len(c.Services) {
		before := len(all)
		for name, s := range c.Services {
			ready := !slices.Contains(all, name)
			for other := range s.DependsOn {
				ready = ready && slices.Contains(all, other)
			}
			if ready {
				all = append(all, name)
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("services wait for each other: only %v can start", all)
		}
	}
	return all, nil
}

func TestCompose_PublishesThePageOnly(t *testing.T) {
	for name, s := range compose(t).Services {
		for _, p := range s.Ports {
			if name != "gateway" && len(s.Profiles) == 0 || !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s, want only the gateway, or what was asked for by a profile, on 127.0.0.1",
					name, p)
			}
		}
	}
}

func TestCompose_KeepsItsDataInNamedVolumes(t *testing.T) {
	c := compose(t)
	used := map[string]bool{}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			source, rest, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(source, ".") {
				used[source] = true
				continue
			}
			if _, err := os.Stat(filepath.Join(root, source)); err != nil ||
				!strings.HasSuffix(rest, ":ro") {
				t.Errorf("%s mounts %s: want a file of the repository, read-only (%v)", name, v,
					err)
			}
		}
	}
	for name := range c.Volumes {
		if !used[name] {
			t.Errorf("the volume %s is not used", name)
		}
		delete(used, name)
	}
	for name := range used {
		t.Errorf("the volume %s is not declared", name)
	}
}

// One machine and a cluster run the same servers: NATS is the module that is
// embedded, ClickHouse the release that the engine's library was made from.
func TestCompose_VersionsAreThoseOfTheHouse(t *testing.T) {
	c := compose(t)
	for _, v := range []struct{ image, want string }{
		{c.Services["nats1"].Image, "nats:" + find(t, "go.mod", `nats-server/v2 v(\S+)`) + "-"},
		{
			c.Services["clickhouse"].Image,
			"clickhouse/clickhouse-server:" + find(t, "store/engine/package.json",
				`"(\d+\.\d+\.\d+)-stable`) + ".",
		},
		{
			"golang:" + find(t, "deploy/Dockerfile", `(?m)^FROM golang:(\S+) AS build$`),
			"golang:" + find(t, "go.mod", `(?m)^go (\d+\.\d+)`) + ".",
		},
	} {
		if !strings.HasPrefix(v.image, v.want) {
			t.Errorf("image %s, want %s…", v.image, v.want)
		}
	}
}

// Prometheus finds every service, at the port where its health check finds it.
func TestPrometheus_ScrapesEveryService(t *testing.T) {
	for _, file := range []string{"prometheus.yml", "secure.yml"} {
		t.Run(file, func(t *testing.T) { scrapesEveryService(t, "deploy/prometheus/"+file) })
	}
}

func scrapesEveryService(t *testing.T, file string) {
	t.Helper()
	var config struct {
		ScrapeConfigs []struct {
			JobName      string `yaml:"job_name"`
			DNSSDConfigs []struct {
				Names []string
				Port  int
			} `yaml:"dns_sd_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal([]byte(read(t, file)), &config); err != nil {
		t.Fatal(err)
	}
	got, want := map[string]string{}, map[string]string{}
	for _, s := range config.ScrapeConfigs {
		for _, d := range s.DNSSDConfigs {
			for _, name := range d.Names {
				got[name] = fmt.Sprintf("%s at %d", s.JobName, d.Port)
			}
		}
	}
	for name, s := range compose(t).Services {
		if s.ours() && name != "worker" {
			port := regexp.MustCompile(`:(\d+)/`).FindStringSubmatch(s.Healthcheck.Test[3])
			want[name] = "courier-" + name + " at " + port[1]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scraped (-want +got):\n%s", diff)
	}
}

// rights are those of a user of ClickHouse in a users.xml.
type rights struct {
	Grants  []string `xml:"users>courier>grants>query"`
	Profile string   `xml:"users>courier>profile"`
	Reads   []string `xml:"users>reader>grants>query"`
	Reader  string   `xml:"users>reader>profile"`
	Open    []string `xml:"users>default>networks>ip"`
}

func rightsIn(t *testing.T, path string) rights {
	t.Helper()
	var r rights
	if err := xml.Unmarshal([]byte(read(t, path)), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestClickHouse_RightsAreThoseOfTheEmbeddedEngine(t *testing.T) {
	got := rightsIn(t, "deploy/clickhouse/users.xml")
	want := rightsIn(t, "store/engine/testdata/library.users.xml")
	if diff := cmp.Diff(want.Grants, got.Grants); diff != "" || len(got.Grants) == 0 {
		t.Errorf("grants of courier (-engine +container):\n%s", diff)
	}
	constraints := regexp.MustCompile(`(?s)<constraints>.*?</constraints>`)
	engine := read(t, "store/engine/testdata/library.users.xml")
	container := read(t, "deploy/clickhouse/users.xml")
	if diff := cmp.Diff(constraints.FindString(engine), constraints.FindString(container)); diff != "" {
		t.Errorf("constraints of courier (-engine +container):\n%s", diff)
	}
	if diff := cmp.Diff(want.Reads, got.Reads); diff != "" || len(got.Reads) == 0 {
		t.Errorf("grants of reader (-engine +container):\n%s", diff)
	}
	for _, m := range regexp.MustCompile(`from_env="(\w+)"`).FindAllStringSubmatch(read(t,
		"deploy/clickhouse/users.xml"), -1) {
		if compose(t).Services["clickhouse"].Environment[m[1]] == "" {
			t.Errorf("the container of ClickHouse has no %s", m[1])
		}
	}
	limits := regexp.MustCompile(`(?s)<people>\s*<profile>\w+</profile>(.*?)</people>`) // the profile above has another name
	if diff := cmp.Diff(limits.FindStringSubmatch(engine)[1],
		limits.FindStringSubmatch(container)[1]); diff != "" || got.Reader != want.Reader {
		t.Errorf("reader has the profile %q; limits of people (-engine +container):\n%s",
			got.Reader, diff)
	}
	if diff := cmp.Diff([]string{
		"127.0.0.1", "::1",
	}, got.Open); diff != "" || got.Profile != "courier" {
		t.Errorf("courier has the profile %q; the user without a password logs in from (-want +got):\n%s",
			got.Profile, diff)
	}
}
