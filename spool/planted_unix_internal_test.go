//go:build unix

package spool

import (
	"os"
	"path/filepath"
	"testing"

	"courier/schemas"
)

// Another user may plant directories and links in the directory for temporary files, where the name of
// a spool can be guessed. They are refused, and nothing is written through them.
func TestRunFile_RefusesWhatOthersPlanted(t *testing.T) {
	for _, c := range []struct {
		name  string
		plant func(t *testing.T, dir, victim string)
	}{
		{"a directory that others can write to", func(t *testing.T, dir, _ string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Chmod(dir, 0o777)) // regardless of the umask
		}},
		{"a link to a directory", func(t *testing.T, dir, victim string) {
			must(t, os.Symlink(filepath.Dir(victim), dir))
		}},
		{"a link to a file", func(t *testing.T, dir, victim string) {
			must(t, os.Mkdir(dir, 0o700))
			must(t, os.Symlink(victim, filepath.Join(dir, "a-1.jsonl")))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			victim := filepath.Join(t.TempDir(), "a-1.jsonl")
			must(t, os.WriteFile(victim, []byte("precious\n"), 0o600))
			dir := filepath.Join(t.TempDir(), "spool")
			c.plant(t, dir, victim)
			f := newRunFile(dir, "", "a", 1)
			if err := f.append(&schemas.Ended{Outcome: schemas.EventFinished}); err == nil {
				t.Error("an event was spooled, want an error")
			}
			must(t, f.close())
			if _, err := Replay(t.Context(), dir, nil, quiet); err == nil {
				t.Error("the spool was replayed, want an error")
			}
			if text, err := os.ReadFile(victim); err != nil || string(text) != "precious\n" {
				t.Errorf("the file of the victim has %q, %v", text, err)
			}
		})
	}
}
