package runner

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Epochs are read from the files that a job writes, and not from what they contained before.
func TestMetricsLog_FollowsFiles(t *testing.T) {
	const head = "epoch,loss,val_acc\n"
	type write struct {
		file, text string
		replace    bool
	}
	for _, c := range []struct {
		name   string
		path   string
		before []write
		polls  [][]write
		want   [][]string // after each poll and the end
	}{
		{
			name:  "a new file",
			path:  "log.csv",
			polls: [][]write{nil, {{"log.csv", head + "0,1,0.5\n", false}}, {{"log.csv", "1,1,0.6\n", false}}},
			want:  [][]string{nil, {"0 0.5"}, {"1 0.6"}, nil},
		},
		{
			name:   "appended to an old file",
			path:   "log.csv",
			before: []write{{"log.csv", head + "0,1,0.5\n", false}},
			polls:  [][]write{nil, {{"log.csv", "1,1,0.6\n", false}}},
			want:   [][]string{nil, {"1 0.6"}, nil},
		},
		{
			name:   "JSON appended to an old file",
			path:   "log.jsonl",
			before: []write{{"log.jsonl", `{"epoch":1,"loss":1,"accuracy":0.5}` + "\n", false}},
			polls:  [][]write{{{"log.jsonl", `{"epoch":1,"loss":1,"val_acc":0.6}` + "\n", false}}},
			want:   [][]string{{"1 0.6"}, nil},
		},
		{
			name:   "an old file is replaced",
			path:   "log.csv",
			before: []write{{"log.csv", head + "0,1,0.5\n1,1,0.6\n", false}},
			polls:  [][]write{{{"log.csv", head + "0,1,0.7\n", true}}, {{"log.csv", "1,1,0.8\n", false}}},
			want:   [][]string{{"0 0.7"}, {"1 0.8"}, nil},
		},
		{
			name:   "a pattern",
			path:   "logs/*/metrics.csv",
			before: []write{{"logs/version_0/metrics.csv", head + "0,1,0.1\n", false}},
			polls:  [][]write{{{"logs/version_1/metrics.csv", head + "0,1,0.5\n", false}}},
			want:   [][]string{{"0 0.5"}, nil},
		},
		{
			name:  "a directory",
			path:  "logs",
			polls: [][]write{{{"logs/a/log.jsonl", `{"epoch":1,"val_acc":0.5}` + "\n", false}, {"logs/x.txt", head, false}}},
			want:  [][]string{{"1 0.5"}, nil},
		},
		{
			name:  "the last epoch is completed by the end",
			path:  "log.csv",
			polls: [][]write{{{"log.csv", "epoch,accuracy\n1,0.5\n2,0.6\n", false}}},
			want:  [][]string{{"1 0.5"}, {"2 0.6"}},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			apply := func(all []write) {
				for _, w := range all {
					path := filepath.Join(dir, w.file)
					flag := os.O_APPEND
					if w.replace {
						flag = os.O_TRUNC
					}
					if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
						t.Fatal(err)
					}
					f, err := os.OpenFile(path, flag|os.O_CREATE|os.O_WRONLY, 0o600)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := f.WriteString(w.text); err != nil {
						t.Fatal(err)
					}
					if err := f.Close(); err != nil {
						t.Fatal(err)
					}
				}
			}
			apply(c.before)
			m, err := newMetricsLog(filepath.Join(dir, c.path))
			if err != nil {
				t.Fatal(err)
			}
			var got [][]string
			for i := range len(c.polls) + 1 {
				isEnd := i == len(c.polls)
				if !isEnd {
					apply(c.polls[i])
				}
				var epochs []string
				for _, r := range m.poll(isEnd) {
					epochs = append(epochs, fmt.Sprintf("%d %g", r.Epoch, *r.Accuracy))
				}
				got = append(got, epochs)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("epochs of each poll (-want +got):\n%s", diff)
			}
		})
	}
}
