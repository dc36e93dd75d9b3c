package engine

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

func TestCredentials_AreGeneratedOnce(t *testing.T) {
	dir := t.TempDir()
	first, err := loadCredentials(dir)
	must(t, err)
	again, err := loadCredentials(dir)
	must(t, err)
	if first != again {
		t.Error("the passwords differ after a restart")
	}
	other, err := loadCredentials(t.TempDir())
	must(t, err)
	if first.Courier == other.Courier || first.Courier == first.Reader || len(first.Courier) < 26 {
		t.Error("passwords are equal or short, want 128 random bits each")
	}
	info, err := os.Stat(filepath.Join(dir, "credentials.json"))
	must(t, err)
	if got := info.Mode().Perm(); runtime.GOOS != "windows" && got != 0o600 {
		t.Errorf("mode of the passwords = %o, want 600", got)
	}
}

func TestCredentials_RejectADamagedFile(t *testing.T) {
	for _, content := range []string{"", "{", `{"courier":"a"}`, `{"courier":1,"reader":2}`} {
		dir := t.TempDir()
		path := filepath.Join(dir, "credentials.json")
		must(t, os.WriteFile(path, []byte(content), 0o600))
		if _, err := loadCredentials(dir); err == nil {
			t.Errorf("loadCredentials with %q: no error", content)
		}
		if kept, err := os.ReadFile(path); err != nil || string(kept) != content {
			t.Errorf("credentials file %q was changed to %q (%v)", content, kept, err)
		}
	}
}
