package doctor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/schemas"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func TestChecks_SayWhatToDo(t *testing.T) {
	second := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Second) }
	services := []bus.ServiceInfo{
		{Name: "courier-advisor", Version: "1.0.0"}, {Name: "courier-advisor", Version: "1.1.0"},
	}
	jobs := []schemas.JobStatus{{JobID: "a", NotLearned: "no epoch was recognized"}, {JobID: "b"}}
	samples := map[string]bus.Record{
		"current": {StoredAt: noon, Event: &schemas.Sample{Stamp: schemas.Stamp{At: noon}}},
		"fast":    {StoredAt: noon, Event: &schemas.Sample{Stamp: schemas.Stamp{At: second(5)}}},
		"silent":  {StoredAt: second(-60), Event: &schemas.Sample{Stamp: schemas.Stamp{At: second(-60)}}},
	}
	free := func(bytes uint64) func(string) (uint64, error) {
		return func(string) (uint64, error) { return bytes, nil }
	}
	full := t.TempDir()
	if err := os.Mkdir(filepath.Join(full, "cluster-a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(full, "cluster-a", "j-1.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		name  string
		got   Check
		want  Result
		found string // part of what was found and what to do
	}{
		{"empty stream", streamCheck("JOB", bus.StreamInfo{MaxBytes: 100}), OK, "0 messages"},
		{"unlimited stream", streamCheck("JOB", bus.StreamInfo{Messages: 1, Bytes: 99}), OK, "1 message since"},
		{"full stream", streamCheck("JOB", bus.StreamInfo{MaxBytes: 100, Bytes: 95}), Warn, "95 % of its maximum"},
		{"clock within the answer", clockCheck(second(0), second(2), second(3)), OK, "agree"},
		{"clock of a slow answer", clockCheck(second(0), second(20), second(30)), OK, "agree"},
		{"clock behind", clockCheck(second(0), second(3), second(0)), Warn, "differ by 3s"},
		{"clock ahead", clockCheck(second(60), second(0), second(61)), Fail, "NTP"},
		{"two versions", serviceCheck("courier-advisor", "1.1.0", services), Warn, "1.0.0 and 1.1.0"},
		{"same version", serviceCheck("courier-advisor", "1.0.0", services[:1]), OK, "1 instance"},
		{"no trainer", serviceCheck("courier-trainer", "1.1.0", services), Warn, "start courier trainer"},
		{"no advisor", serviceCheck("courier-advisor", "1.1.0", nil), Fail, "start courier advisor"},
		{"no store", storeCheck(0, 9, second(-90), noon), Warn, "no store writes tables"},
		{"store", storeCheck(4, 1, second(-59), noon), OK, "1 message not in"},
		{"idle store", storeCheck(4, 0, time.Time{}, noon), OK, "0 messages not in"},
		{"late store", storeCheck(4, 9, second(-61), noon), Warn, "for 61 s"},
		{"not learned", learnedCheck(jobs), Warn, "1 because no epoch was recognized (a)"},
		{"learned", learnedCheck(jobs[1:]), OK, "the last 1 ended job"},
		{"current node", nodesCheck([]string{"current"}, samples, noon), OK, "1 node"},
		{"fast node", nodesCheck([]string{"current", "fast"}, samples, noon), Warn, "clock differs on fast"},
		{"silent nodes", nodesCheck([]string{"gone", "silent"}, samples, noon), Warn, "no samples of gone, silent"},
		{"spool", spoolCheck(full, free(lowDisk)), Warn, "events of 1 run wait"},
		{"no spool", spoolCheck(filepath.Join(full, "x", "y"), free(lowDisk)), OK, "no event"},
		{"full disk", spoolCheck(t.TempDir(), free(5<<20)), Warn, "only 5 MiB are free"},
		{"no engine", engineCheck("", errors.New("not found")), Warn, "courier engine install"},
	} {
		text := c.got.Found + ": " + c.got.Do
		if c.got.Result != c.want || !strings.Contains(text, c.found) {
			t.Errorf("%s: %s, %q; want %s, %q", c.name, c.got.Result, text, c.want, c.found)
		}
		if (c.got.Do == "") != (c.want == OK) {
			t.Errorf("%s: %s with %q as what to do", c.name, c.got.Result, c.got.Do)
		}
	}
}

func TestExamine_WithoutAConnection(t *testing.T) {
	e := Examine(t.Context(), Options{
		Connect:    func(context.Context) (*bus.Bus, error) { return nil, errors.New("refused") },
		SpoolDir:   t.TempDir(),
		FreeBytes:  func(string) (uint64, error) { return 0, errors.ErrUnsupported },
		FindEngine: func() (string, error) { return "libchdb.so", nil },
	})
	if !e.Failed() || len(e.Checks) != 3 || e.Checks[0].Name != "connection" {
		t.Errorf("%+v, want a failed connection and the checks of this machine", e)
	}
	for err, want := range map[error]Result{
		schemas.ErrForbidden: Warn, schemas.ErrUnavailable: Fail, schemas.ErrNotFound: Fail, context.Canceled: Fail,
	} {
		e := &Examination{}
		if e.unread("x", err); e.Checks[0].Result != want || e.Checks[0].Do == "" {
			t.Errorf("%v is %+v", err, e.Checks[0])
		}
	}
}
