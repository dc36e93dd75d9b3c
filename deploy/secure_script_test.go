package deploy_test

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// secureCluster runs secure.sh and returns the folder of the machines, and the output.
func secureCluster(t *testing.T, args ...string) (dir, printed string) {
	t.Helper()
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("secure.sh requires bash")
	}
	dir = filepath.Join(t.TempDir(), "cluster")
	args = append([]string{"secure.sh", "--courier", program(t, "courier"), "--out", dir}, args...)
	out, err := exec.CommandContext(t.Context(), bash, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("secure.sh: %v\n%s", err, out)
	}
	return dir, string(out)
}

// inTree rewrites the files of a folder that contain paths of a machine, so that they are those in its
// folder.
func inTree(t *testing.T, folder string, pairs ...string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.conf"))
	if err != nil || len(files) == 0 {
		t.Fatalf("files of %s: %v, %v", folder, files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		changed := strings.NewReplacer(pairs...).Replace(string(text))
		if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// variablesOf returns the variables of the drop-in of a service. Each of its credentials exists.
func variablesOf(t *testing.T, machine, service string) map[string]string {
	t.Helper()
	file := filepath.Join(machine, "etc/systemd/system/courier-"+service+".service.d/secure.conf")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	variables := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch key {
		case "LoadCredential":
			_, path, _ := strings.Cut(value, ":")
			if _, err := os.Stat(filepath.Join(machine, path)); err != nil {
				t.Errorf("%s: %v", service, err)
			}
		case "Environment":
			name, v, _ := strings.Cut(value, "=")
			variables[name] = strings.ReplaceAll(v, "%d", filepath.Join(machine, "etc/courier/tls", service))
		}
	}
	return variables
}

// The files for three NATS servers are valid, and each service knows its variables.
func TestSecureScript_PreparesEachMachine(t *testing.T) {
	dir, printed := secureCluster(t, "--nats", "n1,n2,n3", "--clickhouse", "db", "--services", "s1",
		"--nodes", "g1,n1", "--persons", "ada,bob")
	for _, host := range []string{"n1", "n2", "n3"} {
		folder := filepath.Join(dir, host, "etc/courier/nats")
		inTree(t, folder, "/etc/courier/tls", filepath.Join(dir, host, "etc/courier/tls"))
		c := exec.CommandContext(t.Context(), program(t, "nats-server"), "-t", "--config",
			filepath.Join(folder, "secure.conf"))
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("nats-server of %s: %v\n%s", host, err, out)
		}
	}
	for _, service := range []string{"advisor", "store", "trainer", "gateway"} {
		variables := variablesOf(t, filepath.Join(dir, "s1"), service)
		checkCommand(t, "secure.sh", []string{service}, variables)
		for name, value := range variables {
			if _, err := os.Stat(value); strings.HasPrefix(value, dir) && err != nil {
				t.Errorf("%s of the %s: %v", name, service, err)
			}
		}
	}
	variablesOf(t, filepath.Join(dir, "n1"), "collector")
	for _, want := range []string{
		dir + "/g1 -c etc | ssh root@g1 ", "enable --now courier-collector.service courier-nats.service", "bob.nk",
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("secure.sh does not print %q:\n%s", want, printed)
		}
	}
	_, printed = secureCluster(t, "--out", dir, "--nats", "n1,n2,n3", "--services", "s1", "--persons", "eve")
	users, err := os.ReadFile(filepath.Join(dir, "n1/etc/courier/tls/nats/users.conf"))
	both := strings.Contains(string(users), "person.eve.") && strings.Contains(string(users), "person.bob.")
	if err != nil || !both {
		t.Errorf("users after the second run: %v, want those of bob and eve; it prints\n%s", err, printed)
	}
	refused := exec.CommandContext(t.Context(), "bash", "secure.sh", "--out", dir, "--nats", "n1,n2",
		"--services", "s1")
	if out, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(out), "majority") {
		t.Errorf("two NATS servers: %v\n%s", err, out)
	}
}

// A NATS server and an advisor run with the files, and a person is answered.
func TestSecureScript_MakesAClusterThatAnswers(t *testing.T) {
	dir, out := secureCluster(t, "--nats", "localhost", "--services", "localhost", "--nodes", "localhost",
		"--persons", "ada")
	if !strings.Contains(out, "and /usr/local/bin/courier on localhost.\n") {
		t.Errorf("the machine is named twice:\n%s", out)
	}
	machine, nats, monitor := filepath.Join(dir, "localhost"), address(t), address(t)
	folder := filepath.Join(machine, "etc/courier/nats")
	inTree(t, folder, "/etc/courier/tls", filepath.Join(machine, "etc/courier/tls"),
		"/var/lib/courier-nats", t.TempDir(), "0.0.0.0:4222", nats, "127.0.0.1:8222", monitor)
	c := exec.CommandContext(context.WithoutCancel(t.Context()), program(t, "nats-server"), "--config",
		filepath.Join(folder, "secure.conf"))
	start(t, "nats", c, func() error {
		_, err := courier(t, "health", "http://"+monitor+"/healthz")
		return err
	})

	_, port, err := net.SplitHostPort(nats)
	if err != nil {
		t.Fatal(err)
	}
	url := "nats://localhost:" + port
	advisor := exec.CommandContext(context.WithoutCancel(t.Context()), program(t, "courier"), "advisor")
	for name, value := range variablesOf(t, machine, "advisor") {
		advisor.Env = append(advisor.Env, name+"="+value)
	}
	advisor.Env = append(advisor.Env, "COURIER_NATS_URL="+url)
	start(t, "advisor", advisor, func() error {
		_, err := courier(t, "jobs", "--nats-url", url, "--nats-ca", filepath.Join(dir, "keys/ca.crt"),
			"--nats-nkey", filepath.Join(dir, "keys/ada.nk"))
		return err
	})
}
