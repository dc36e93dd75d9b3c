package containers_test

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// maxImageBytes is the maxImageBytes accepted size of the image.
const maxImageBytes = 60_000_000

func TestImage(t *testing.T) {
	requireDocker(t)
	program := buildImages(t)
	image := "courier:" + version
	size, user, _ := strings.Cut(must(t, "docker", "image", "inspect", "--format",
		"{{.Size}} {{.Config.User}}", image),
		" ")
	if bytes, err := strconv.Atoi(size); err != nil || bytes > maxImageBytes {
		t.Errorf("the image has %s bytes, want at most %d (%v)", size, maxImageBytes, err)
	}
	if user == "" || strings.HasPrefix(user, "0") || strings.HasPrefix(user, "root") {
		t.Errorf("user of the image = %q, want one other than root", user)
	}
	want := version + "+" + commit[:12]
	if got := must(t, "docker", "run", "--rm", "--read-only", "--cap-drop", "ALL", "--network",
		"none", image, "--version"); got != want {
		t.Errorf("courier --version = %q, want %q", got, want)
	}
	t.Logf("image: %s bytes, user %s, version %s", size, user, want)

	// The same source in another directory gives the same bytes.
	other := t.TempDir()
	for name := range strings.SplitSeq(must(t, "git", "-C", root, "ls-files", "--cached",
		"--others", "--exclude-standard"),
		"\n") {
		copyFile(t, filepath.Join(root, name), filepath.Join(other, name))
	}
	first, second := digest(t, program), digest(t, compile(t, other, t.TempDir()))
	if first != second {
		t.Errorf("two builds of the same source differ: %s and %s", first, second)
	}
	t.Logf("builds in two directories are equal: %s", fmt.Sprintf("%.12s…", first))
}
