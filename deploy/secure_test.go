package deploy_test

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

// closing is what the tests read of docker-compose.secure.yml.
type closing struct {
	Services map[string]struct {
		Command     []string          `yaml:"command"`
		Environment map[string]string `yaml:"environment"`
		Volumes     []mount           `yaml:"volumes"`
		Healthcheck struct {
			Test []string `yaml:"test"`
		} `yaml:"healthcheck"`
	} `yaml:"services"`
}

// mount is a volume in either form.
type mount struct {
	source, target string
	readOnly       bool
}

// UnmarshalYAML reads it.
func (m *mount) UnmarshalYAML(node *yaml.Node) error {
	var long struct {
		Source   string `yaml:"source"`
		Target   string `yaml:"target"`
		ReadOnly bool   `yaml:"read_only"`
	}
	if node.Kind == yaml.ScalarNode {
		words := append(strings.Split(node.Value, ":"), "", "")
		*m = mount{words[0], words[1], words[2] == "ro"}
		return nil
	}
	if err := node.Decode(&long); err != nil {
		return err
	}
	*m = mount{long.Source, long.Target, long.ReadOnly}
	return nil
}

const secureFile = "docker-compose.secure.yml"

func composeSecure(t *testing.T) closing {
	t.Helper()
	var c closing
	text := variable.ReplaceAllString(read(t, secureFile), "$1")
	if strings.Contains(text, "${") {
		t.Errorf("%s has a variable without a default", secureFile)
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// makeKeys runs courier certs as the file says, and returns the directory.
func makeKeys(t *testing.T) string {
	t.Helper()
	line := find(t, secureFile, `go run ./services/courier (certs --out keys .*)`)
	dir := filepath.Join(t.TempDir(), "keys")
	args := strings.Fields(strings.NewReplacer("--out keys", "--out "+dir, "deploy/",
		root+"/deploy/").Replace(line))
	if out, err := courier(t, args...); err != nil {
		t.Fatalf("courier %v: %v\n%s", args, err, out)
	}
	return dir
}

// Every service of docker-compose.yml is closed, and sees the keys of its own name.
func TestComposeSecure_ClosesEveryService(t *testing.T) {
	open, closed, keys := compose(t), composeSecure(t), makeKeys(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(open.Services)),
		slices.Sorted(maps.Keys(closed.Services))); diff != "" {
		t.Errorf("services (-open +closed):\n%s", diff)
	}
	var folders []string
	for name, s := range closed.Services {
		own := strings.TrimRight(name, "123") // the servers of NATS share theirs
		folders = append(folders, own)
		seen := false
		for _, m := range s.Volumes {
			if !m.readOnly {
				t.Errorf("%s may change %s", name, m.target)
			}
			folder, ofKeys := strings.CutPrefix(m.source, "./keys/containers/")
			if !ofKeys {
				if _, err := os.Stat(filepath.Join(root, m.source)); err != nil {
					t.Errorf("%s mounts %s: %v", name, m.source, err)
				}
				continue
			}
			if folder != own && !strings.HasPrefix(folder, own+"/") {
				t.Errorf("%s sees %s", name, m.source)
			}
			if _, err := os.Stat(filepath.Join(keys, "containers", folder)); err != nil {
				t.Errorf("%s mounts what courier certs does not make: %v", name, err)
			}
			seen = seen || folder == own && m.target == "/etc/courier/tls"
		}
		if !seen {
			t.Errorf("%s does not see its keys", name)
		}
	}
	entries, err := os.ReadDir(filepath.Join(keys, "containers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(folders, e.Name()) {
			t.Errorf("nobody sees the keys of %s", e.Name())
		}
	}
}

// Whatever file of keys a service, or the settings of a server, name is in the folder
// that the container sees, and each service is itself.
func TestComposeSecure_NamesTheFilesOfItsKeys(t *testing.T) {
	open, closed, keys := compose(t), composeSecure(t), makeKeys(t)
	texts := map[string]string{
		"nats": read(t, "deploy/nats/secure.conf") +
			read(t, "deploy/nats/tls.conf"), "clickhouse": read(
			t, "deploy/clickhouse/tls.xml",
		),
		"prometheus": read(t, "deploy/prometheus/secure.yml"), "grafana": read(t,
			"deploy/grafana/secure.yml"),
	}
	for name, s := range closed.Services {
		texts[name] += strings.Join(slices.Concat(slices.Collect(maps.Values(s.Environment)),
			s.Healthcheck.Test),
			"\n")
		if !open.Services[name].ours() {
			continue
		}
		if s.Environment["COURIER_NATS_NKEY"] != "/etc/courier/tls/"+name+".nk" ||
			s.Environment["COURIER_NATS_CA"] != "/etc/courier/tls/ca.crt" {
			t.Errorf("%s connects to NATS as %v", name, s.Environment)
		}
		args, _, _ := cut(open.Services[name].Command)
		help, err := courier(t, append(args, "--help")...)
		if err != nil {
			t.Fatalf("%v\n%s", err, help)
		}
		for variable := range s.Environment {
			if !strings.Contains(help, "($"+variable+")") {
				t.Errorf("%s: courier %s knows no %s", name, args[0], variable)
			}
		}
	}
	named := 0
	for name, text := range texts {
		for _, m := range regexp.MustCompile(`/etc/courier/tls/([\w.-]+\w)`).FindAllStringSubmatch(
			text, -1,
		) {
			named++
			if _, err := os.Stat(filepath.Join(keys, "containers", strings.TrimRight(name, "123"),
				m[1])); err != nil {
				t.Errorf("%s names %s: %v", name, m[0], err)
			}
		}
	}
	if named < 25 {
		t.Errorf("%d files are named", named)
	}
}

// The settings of the servers of NATS, as their containers see them, are accepted by
// nats-server, and those of docker-compose.yml still hold.
func TestComposeSecure_SettingsOfNATSAreAccepted(t *testing.T) {
	keys, dir := makeKeys(t), t.TempDir()
	here := strings.NewReplacer("/etc/courier/tls", filepath.Join(keys, "containers/nats"),
		"../tls", "../keys/containers/nats")
	if err := os.Symlink(keys, filepath.Join(dir, "keys")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "nats"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nats.conf", "cluster.conf", "tls.conf", "secure.conf"} {
		if err := os.WriteFile(filepath.Join(dir, "nats", name),
			[]byte(here.Replace(read(t, "deploy/nats/"+name))), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := composeSecure(t).Services["nats1"].Command
	if want := []string{
		"nats-server", "--config", "/etc/courier/nats/secure.conf",
	}; !slices.Equal(command, want) {
		t.Fatalf("nats1 is started by %q, want %q", command, want)
	}
	c := exec.CommandContext(t.Context(), program(t, "nats-server"), "-t", "--config",
		filepath.Join(dir, "nats/secure.conf"))
	c.Env = []string{"COURIER_NATS_NAME=nats1"}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("nats-server: %v\n%s", err, out)
	}
}

// The hashes take the place of every password that the server would have from its
// environment, and are read after them.
func TestComposeSecure_ReplacesEveryPassword(t *testing.T) {
	data, err := os.ReadFile(filepath.Join(makeKeys(t), "passwords.xml"))
	if err != nil {
		t.Fatal(err)
	}
	passwords := string(data)
	for _, file := range []string{"users.xml", "trainer.xml"} {
		for _, m := range regexp.MustCompile(`(?s)<(\w+)>\s*<password from_env=`).FindAllStringSubmatch(
			read(t, "deploy/clickhouse/"+file), -1,
		) {
			if !strings.Contains(passwords,
				"<"+m[1]+"><password remove=\"1\"/><password_sha256_hex>") {
				t.Errorf("%s in %s keeps the password of the environment", m[1], file)
			}
		}
	}
	var order []string
	for _, m := range composeSecure(t).Services["clickhouse"].Volumes {
		if folder, name := filepath.Split(m.target); folder == "/etc/clickhouse-server/users.d/" {
			order = append(order, name)
		}
	}
	if slices.Sort(order); !slices.Equal(order, []string{"trainer.xml", "z-passwords.xml"}) {
		t.Errorf("users.d has %v besides courier.xml, want the passwords last", order)
	}
}
