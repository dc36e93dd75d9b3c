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

// composition contains the fields of docker-compose.yml that the tests use.
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

// runsCourier reports whether the service runs courier.
func (s *service) runsCourier() bool { return strings.HasPrefix(s.Image, "courier:") }

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

// find returns the match of the first group of a pattern in a file.
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

// Every container has limited memory and CPUs. Courier and NATS can write only to their volumes.
func TestCompose_LimitsEveryContainer(t *testing.T) {
	for name, s := range compose(t).Services {
		if s.Memory == "" || s.CPUs <= 0 || s.CPUs > 2 {
			t.Errorf("%s: mem_limit %q, cpus %g, want both and at most two CPUs", name,
				s.Memory, s.CPUs)
		}
		if name == "clickhouse" || len(s.Profiles) > 0 {
			continue // the image writes to its own files at the start
		}
		if !s.ReadOnly || !slices.Equal(s.Drop, []string{"ALL"}) || s.PIDs == 0 {
			t.Errorf("%s: read_only %v, cap_drop %v, pids_limit %d; want true, [ALL] and a limit",
				name, s.ReadOnly, s.Drop,
				s.PIDs)
		}
	}
}

// The services tolerate the loss of one NATS server: they have the addresses of all servers, and
// require three replicas.
func TestCompose_UsesThreeReplicas(t *testing.T) {
	for name, s := range compose(t).Services {
		if !s.runsCourier() {
			continue
		}
		if got, want := s.Environment["COURIER_NATS_URL"],
			"nats://nats1:4222,nats://nats2:4222,nats://nats3:4222"; got != want {
			t.Errorf("%s connects to %s, want %s", name, got, want)
		}
		if got := s.Environment["COURIER_NATS_REPLICAS"]; got != "3" && name != "worker" {
			t.Errorf("%s requires %q replicas, want 3", name, got)
		}
	}
}

// The parser rejects unknown flags and invalid values even with --help, which lists the variables.
func TestCompose_CommandLinesAreValid(t *testing.T) {
	for name, s := range compose(t).Services {
		if !s.runsCourier() {
			continue
		}
		args, rest := cut(s.Command)
		checkCommand(t, name, args, s.Environment)
		if len(rest) > 0 && rest[0] != "/courier" {
			t.Errorf("%s runs %q, which the image does not contain", name, rest[0])
		}
	}
	if spool := find(t, "deploy/Dockerfile", `(?m)^ENV ([A-Z_]+)=/data/spool$`); spool != "COURIER_SPOOL_DIR" {
		t.Errorf("the image sets %s, want COURIER_SPOOL_DIR", spool)
	}
}

// cut splits the arguments of courier run into its flags and the command of the job.
func cut(command []string) (args, rest []string) {
	if i := slices.Index(command, "--"); i >= 0 {
		return command[:i], command[i+1:]
	}
	return command, nil
}

func TestCompose_StartsInTheOrderOfReadiness(t *testing.T) {
	c := compose(t)
	for name, s := range c.Services {
		if s.Healthcheck == nil && name != "worker" {
			t.Errorf("%s has no health check", name)
		}
		if s.runsCourier() && len(s.DependsOn) == 0 {
			t.Errorf("%s has no depends_on", name)
		}
		for other, d := range s.DependsOn {
			if c.Services[other] == nil || c.Services[other].Healthcheck == nil ||
				d.Condition != "service_healthy" {
				t.Errorf("%s waits for %s to be %q, want service_healthy of a service with a health check",
					name, other, d.Condition)
			}
		}
		if s.Restart != "unless-stopped" && s.Restart != "always" {
			t.Errorf("%s: restart = %q, want unless-stopped or always", name, s.Restart)
		}
	}
	if _, err := order(c); err != nil {
		t.Error(err)
	}
}

// order sorts the services so that each follows its dependencies.
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
			return nil, fmt.Errorf("circular depends_on: only %v can start", all)
		}
	}
	return all, nil
}

func TestCompose_PublishesOnlyTheGateway(t *testing.T) {
	for name, s := range compose(t).Services {
		for _, p := range s.Ports {
			if name != "gateway" && len(s.Profiles) == 0 || !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s, want only the gateway and services with a profile, "+
					"on 127.0.0.1", name, p)
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
			t.Errorf("volume %s is not used", name)
		}
		delete(used, name)
	}
	for name := range used {
		t.Errorf("volume %s is not declared", name)
	}
}

// A cluster runs the same releases as a single machine: those of the embedded NATS server and of
// the library of the ClickHouse engine.
func TestCompose_VersionsMatchTheEmbeddedServers(t *testing.T) {
	c := compose(t)
	for _, v := range []struct{ image, want string }{
		{c.Services["nats1"].Image, "nats:" + find(t, "go.mod", `nats-server/v2 v(\S+)`) + "-"},
		{
			c.Services["clickhouse"].Image,
			"clickhouse/clickhouse-server:" + find(t, "store/engine/install.go",
				`pinnedVersion   = "(\d+\.\d+\.\d+)-stable`) + ".",
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

// Prometheus scrapes every service at the port of its health check.
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
		if s.runsCourier() && name != "worker" {
			port := regexp.MustCompile(`:(\d+)/`).FindStringSubmatch(s.Healthcheck.Test[3])
			want[name] = "courier-" + name + " at " + port[1]
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("scraped (-want +got):\n%s", diff)
	}
}

// clickhouseUsers contains the fields of a users.xml of ClickHouse that the tests use.
type clickhouseUsers struct {
	CourierGrants  []string `xml:"users>courier>grants>query"`
	CourierProfile string   `xml:"users>courier>profile"`
	ReaderGrants   []string `xml:"users>reader>grants>query"`
	ReaderProfile  string   `xml:"users>reader>profile"`
	DefaultSources []string `xml:"users>default>networks>ip"` // of the user without a password
}

func readUsers(t *testing.T, path string) clickhouseUsers {
	t.Helper()
	var u clickhouseUsers
	if err := xml.Unmarshal([]byte(read(t, path)), &u); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestClickHouse_GrantsMatchTheEmbeddedEngine(t *testing.T) {
	got := readUsers(t, "deploy/clickhouse/users.xml")
	want := readUsers(t, "store/engine/testdata/library.users.xml")
	if diff := cmp.Diff(want.CourierGrants, got.CourierGrants); diff != "" ||
		len(got.CourierGrants) == 0 {
		t.Errorf("grants of courier (-engine +container):\n%s", diff)
	}
	constraints := regexp.MustCompile(`(?s)<constraints>.*?</constraints>`)
	engine := read(t, "store/engine/testdata/library.users.xml")
	container := read(t, "deploy/clickhouse/users.xml")
	if diff := cmp.Diff(constraints.FindString(engine), constraints.FindString(container)); diff != "" {
		t.Errorf("constraints of courier (-engine +container):\n%s", diff)
	}
	if diff := cmp.Diff(want.ReaderGrants, got.ReaderGrants); diff != "" ||
		len(got.ReaderGrants) == 0 {
		t.Errorf("grants of reader (-engine +container):\n%s", diff)
	}
	for _, m := range regexp.MustCompile(`from_env="(\w+)"`).FindAllStringSubmatch(read(t,
		"deploy/clickhouse/users.xml"), -1) {
		if compose(t).Services["clickhouse"].Environment[m[1]] == "" {
			t.Errorf("the container of ClickHouse has no variable %s", m[1])
		}
	}

	// The parent profiles have different names.
	limits := regexp.MustCompile(`(?s)<people>\s*<profile>\w+</profile>(.*?)</people>`)
	if diff := cmp.Diff(limits.FindStringSubmatch(engine)[1],
		limits.FindStringSubmatch(container)[1]); diff != "" || got.ReaderProfile != want.ReaderProfile {
		t.Errorf("reader has the profile %q; limits of people (-engine +container):\n%s",
			got.ReaderProfile, diff)
	}
	if diff := cmp.Diff([]string{
		"127.0.0.1", "::1",
	}, got.DefaultSources); diff != "" || got.CourierProfile != "courier" {
		t.Errorf("courier has the profile %q; "+
			"addresses of the user without a password (-want +got):\n%s", got.CourierProfile, diff)
	}
}

// The image of a release has the settings of the image that deploy/Dockerfile builds.
func TestImages_HaveTheSameSettings(t *testing.T) {
	copies := regexp.MustCompile(`(?m)^(#|COPY).*\n`)
	settings := func(file string) string {
		_, image, _ := strings.Cut(read(t, file), "FROM scratch\n")
		return copies.ReplaceAllString(image, "")
	}
	release, own := settings("deploy/release.Dockerfile"), settings("deploy/Dockerfile")
	if release != own || own == "" {
		t.Errorf("the image of a release has the settings\n%s\nwant\n%s", release, own)
	}
}
