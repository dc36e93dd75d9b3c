package containers_test

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/store/engine"
)

const (
	root    = "../.."
	version = "0.0.0-test" // of the built images
	commit  = "0123456789abcdef0123456789abcdef01234567"
)

// run runs a command to its end and returns what it printed.
func run(dir string, env []string, name string, args ...string) (string, error) {
	c := exec.Command(name, args...)
	c.Dir, c.Env = dir, append(os.Environ(), env...)
	out, err := c.CombinedOutput()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

func must(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := run("", nil, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// dockerfile splits deploy/Dockerfile into the commands that build the program and the
// instructions of the image. The test runs the commands itself, because no image has a compiler.
func dockerfile(t *testing.T) (build, image string) {
	t.Helper()
	text := readFile(t, filepath.Join(root, "deploy/Dockerfile"))
	found := regexp.MustCompile(
		`(?ms)^RUN (CGO_ENABLED=0 go build .*?[^\\])$.*^(FROM scratch$.*)`,
	).FindStringSubmatch(
		text,
	)
	if found == nil {
		t.Fatal("deploy/Dockerfile does not build the program and copy it to an empty image")
	}
	return found[1], strings.ReplaceAll(strings.ReplaceAll(found[2], "--from=build ", ""),
		" /out/", " out/")
}

// compile runs the build commands of the Dockerfile in a source tree, with output in dir/out.
func compile(t *testing.T, source, dir string) (program string) {
	t.Helper()
	build, _ := dockerfile(t)
	c := strings.ReplaceAll(build, "/out/", dir+"/out/")
	if out, err := run(source, []string{
		"VERSION=" + version, "COMMIT=" + commit,
	}, "sh", "-c", c); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "out/courier")
}

// image builds an image from the files in dir.
func image(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := run(dir, []string{"DOCKER_BUILDKIT=0"}, "docker", "build", "--quiet", "--tag",
		name, "."); err != nil {
		t.Fatal(err)
	}
}

// built is the program after the images were built.
var built struct{ dir, program string }

// buildImages builds the three images once and returns the path of the program.
func buildImages(t *testing.T) (program string) {
	t.Helper()
	if built.program != "" {
		return built.program
	}
	begin := time.Now()
	defer func() { t.Logf("images built in %.1f s", time.Since(begin).Seconds()) }()
	dir, err := os.MkdirTemp("", "courier-image-") // TestMain removes it
	if err != nil {
		t.Fatal(err)
	}
	built.dir, program = dir, compile(t, root, dir)
	_, text := dockerfile(t)
	image(t, dir, "courier:"+version, text)

	other := t.TempDir()
	copyFile(t, program, filepath.Join(other, "courier"))
	if out, err := run(root, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags",
		"-s -w", "-o", filepath.Join(other, "nats-server"), "github.com/nats-io/nats-server/v2"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	image(t, other, "courier-test/nats:test",
		"FROM scratch\nCOPY courier nats-server /usr/local/bin/\n")
	buildClickHouse(t, program)
	built.program = program
	return program
}

// buildClickHouse builds the image that replaces ClickHouse: this test binary, the library of
// the engine, and the C library of this machine, which both need.
func buildClickHouse(t *testing.T, program string) {
	t.Helper()
	found, err := engine.FindLibrary(os.Getenv("COURIER_TEST_ENGINE"))
	if err != nil {
		t.Fatal(err)
	}
	library := found
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	copyFile(t, program, filepath.Join(dir, "usr/local/bin/courier"))
	copyFile(t, self, filepath.Join(dir, "usr/local/bin/clickhouse"))
	copyFile(t, library, filepath.Join(dir, "engine/libchdb.so"))
	for _, needed := range append(libraries(t, library), libraries(t, self)...) {
		copyFile(t, needed, filepath.Join(dir, needed))
	}
	for _, empty := range []string{"tmp", "var/lib/clickhouse", "etc/clickhouse-server"} {
		if err := os.MkdirAll(filepath.Join(dir, empty), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	image(t, dir, "courier-test/clickhouse:test",
		"FROM scratch\nCOPY . /\nENTRYPOINT [\"clickhouse\"]\nCMD [\"clickhouse\"]\n")
}

// libraries returns the paths of the shared libraries that a file needs.
func libraries(t *testing.T, path string) []string {
	t.Helper()
	var all []string
	for _, m := range regexp.MustCompile(`(?m)^\s*(?:\S+ => )?(/\S+) \(0x`).FindAllStringSubmatch(
		must(t, "ldd", path), -1,
	) {
		if !slices.Contains(all, m[1]) {
			all = append(all, m[1])
		}
	}
	if len(all) < 2 {
		t.Fatalf("ldd %s lists %v, want at least two libraries", path, all)
	}
	return all
}

// copyFile links or else copies a file and creates its directory.
func copyFile(t *testing.T, from, to string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if real, err := filepath.EvalSymlinks(from); err == nil {
		from = real
	}
	if os.Link(from, to) == nil || os.IsExist(os.Link(from, to)) {
		return
	}
	source, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(target, source); err != nil {
		t.Fatal(err)
	}
	if err := target.Close(); err != nil {
		t.Fatal(err)
	}
}

func digest(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}
