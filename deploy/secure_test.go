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

// secureComposition contains the fields of docker-compose.secure.yml that the tests use.
type secureComposition struct {
	Services map[string]struct {
		Command     []string          `yaml:"command"`
		Environment map[string]string `yaml:"environment"`
		Volumes     []mount           `yaml:"volumes"`
		Healthcheck struct {
			Test []string `yaml:"test"`
		} `yaml:"healthcheck"`
	} `yaml:"services"`
}

// mount is a volume in the short or the long syntax.
type mount struct {
	source, target string
	readOnly       bool
}

// UnmarshalYAML decodes both forms.
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

func composeSecure(t *testing.T) secureComposition {
	t.Helper()
	var c secureComposition
	text := variable.ReplaceAllString(read(t, secureFile), "$1")
	if strings.Contains(text, "${") {
		t.Errorf("%s has a variable without a default", secureFile)
	}
	if err := yaml.Unmarshal([]byte(text), &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// makeKeys runs courier certs as docker-compose.secure.yml documents, and returns the directory.
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

// Every service of docker-compose.yml gets its own keys and no others.
func TestComposeSecure_ClosesEveryService(t *testing.T) {
	open, closed, keys := compose(t), composeSecure(t), makeKeys(t)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(open.Services)),
		slices.Sorted(maps.Keys(closed.Services))); diff != "" {
		t.Errorf("services (-open +closed):\n%s", diff)
	}
	var folders []string
	for name, s := range closed.Services {
		own := strings.TrimRight(name, "123") // the NATS servers share their keys
		folders = append(folders, own)
		seen := false
		for _, m := range s.Volumes {
			if !m.readOnly {
				t.Errorf("%s can write to %s", name, m.target)
			}
			folder, ofKeys := strings.CutPrefix(m.source, "./keys/containers/")
			if !ofKeys {
				if _, err := os.Stat(filepath.Join(root, m.source)); err != nil {
					t.Errorf("%s mounts %s: %v", name, m.source, err)
				}
				continue
			}
			if folder != own && !strings.HasPrefix(folder, own+"/") {
				t.Errorf("%s mounts the keys of another service: %s", name, m.source)
			}
			if _, err := os.Stat(filepath.Join(keys, "containers", folder)); err != nil {
				t.Errorf("%s mounts a file that courier certs does not create: %v", name, err)
			}
			seen = seen || folder == own && m.target == "/etc/courier/tls"
		}
		if !seen {
			t.Errorf("%s does not mount its keys", name)
		}
	}
	entries, err := os.ReadDir(filepath.Join(keys, "containers"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !slices.Contains(folders, e.Name()) {
			t.Errorf("no service mounts the keys of %s", e.Name())
		}
	}
}

// Every key file that a service or the configuration of a server names is in the folder that its
// container mounts. Each service uses its own NATS user.
func TestComposeSecure_KeyFilesExist(t *testing.T) {
	open, closed, keys := compose(t), composeSecure(t), makeKeys(t)
	texts := map[string]string{
		"nats":       read(t, "deploy/nats/secure.conf") + read(t, "deploy/nats/tls.conf"),
		"clickhouse": read(t, "deploy/clickhouse/tls.xml"),
		"prometheus": read(t, "deploy/prometheus/secure.yml"),
		"grafana":    read(t, "deploy/grafana/secure.yml"),
	}
	for name, s := range closed.Services {
		texts[name] += strings.Join(slices.Concat(slices.Collect(maps.Values(s.Environment)),
			s.Healthcheck.Test),
			"\n")
		if !open.Services[name].runsCourier() {
			continue
		}
		if s.Environment["COURIER_NATS_NKEY"] != "/etc/courier/tls/"+name+".nk" ||
			s.Environment["COURIER_NATS_CA"] != "/etc/courier/tls/ca.crt" {
			t.Errorf("%s: environment %v lacks its NATS key or authority", name, s.Environment)
		}
		args, _ := cut(open.Services[name].Command)
		checkCommand(t, name, args, s.Environment)
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
		t.Errorf("found %d names of key files, want at least 25", named)
	}
}

// nats-server accepts the configuration of its containers, which includes that of
// docker-compose.yml.
func TestComposeSecure_NATSConfigurationIsValid(t *testing.T) {
	keys, dir := makeKeys(t), t.TempDir()
	local := strings.NewReplacer("/etc/courier/tls", filepath.Join(keys, "containers/nats"),
		"../tls", "../keys/containers/nats")
	if err := os.Symlink(keys, filepath.Join(dir, "keys")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "nats"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nats.conf", "cluster.conf", "tls.conf", "secure.conf"} {
		if err := os.WriteFile(filepath.Join(dir, "nats", name),
			[]byte(local.Replace(read(t, "deploy/nats/"+name))), 0o600); err != nil {
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

// The hashes replace every password that ClickHouse reads from its environment, because their
// file is read last.
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
				t.Errorf("%s in %s keeps the password from the environment", m[1], file)
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
		t.Errorf("users.d contains %v besides courier.xml, want trainer.xml, z-passwords.xml", order)
	}
}
