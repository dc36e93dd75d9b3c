package explore_test

import (
	"os"
	"path/filepath"
	"testing"

	"courier/explore"
)

// No bytes in the files of a study crash the reader.
func FuzzReadRecords(f *testing.F) {
	for _, n := range []int{0, 300, 2000} {
		runs, err := os.ReadFile(filepath.Join("testdata", "digits", "runs.csv"))
		if err != nil {
			f.Fatal(err)
		}
		epochs, err := os.ReadFile(filepath.Join("testdata", "digits", "epochs.csv"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(runs[:n]), string(epochs[:n]))
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, runs, epochs string) {
		for name, text := range map[string]string{"runs.csv": runs, "epochs.csv": epochs} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		records, err := explore.ReadRecords(dir)
		if err != nil {
			return
		}
		for _, r := range records {
			if r.Block.ID() == "" {
				t.Fatalf("record %+v has no block", r)
			}
		}
	})
}
