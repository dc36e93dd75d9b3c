package tune

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func recordOptions() Options {
	return Options{
		Command: []string{"train", "{x}", "{dir}"},
		Space:   Space{{Name: "x", Low: 0, High: 1}},
		Trials:  4,
		Epochs:  4,
		Pool:    1,
	}
}

// instant measures a segment at once: the accuracy rises with the number of the trial.
func instant(ctx context.Context, g Segment, _ []string, report func(TrialEpoch)) (Ending, error) {
	for epoch := g.From + 1; epoch <= g.Epochs; epoch++ {
		if ctx.Err() != nil {
			return Ending{Outcome: OutcomeStopped}, nil
		}
		report(TrialEpoch{Number: epoch, Seconds: 1, Accuracy: new(float64(g.Trial) / 10)})
	}
	return Ending{Outcome: OutcomeDone, Seconds: float64(g.Epochs - g.From)}, nil
}

// complete runs a tuning to its end, and returns the number of its segments and the result.
func complete(t *testing.T, dir string) (segments int, r *Ranking) {
	t.Helper()
	tuning, err := Open(dir, recordOptions())
	if err != nil {
		t.Fatal(err)
	}
	r, err = tuning.Run(t.Context(), func(
		ctx context.Context, g Segment, values []string, report func(TrialEpoch),
	) (Ending, error) {
		segments++
		return instant(ctx, g, values, report)
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := tuning.Close(); err != nil {
		t.Fatal(err)
	}
	return segments, r
}

// A crash after any byte of the record loses at most the running segment: the tuning continues and
// ends with the same ranking.
func TestOpen_ContinuesAfterACrashAtAnyByte(t *testing.T) {
	whole := t.TempDir()
	segments, want := complete(t, whole)
	data, err := os.ReadFile(filepath.Join(whole, recordFile))
	if err != nil {
		t.Fatal(err)
	}
	if segments != 7 || want.Trials[0].Trial != 4 { // 4, 2 and 1 trials
		t.Fatalf("%d segments, %+v; want 7 and trial 4", segments, want)
	}
	step := max(1, len(data)/80)
	dir := t.TempDir()
	for size := 0; size < len(data); size += step {
		if err := os.WriteFile(filepath.Join(dir, recordFile), data[:size], 0o600); err != nil {
			t.Fatal(err)
		}
		ended := bytes.Count(data[:size], []byte(`"kind":"end"`))
		more, r := complete(t, dir)
		if len(r.Trials) != 4 || r.Trials[0].Trial != 4 || r.Trials[0].Epochs != 4 || more > 7-ended+1 {
			t.Fatalf("after %d bytes with %d segments: %d more segments, %+v", size, ended, more, r.Trials)
		}
		spent := 0
		for _, row := range r.Trials {
			spent += row.SpentEpochs
		}
		if spent < 4+2+2 || spent > 4+2+2+2 { // the epochs of the running segment may be repeated
			t.Fatalf("after %d bytes: %d spent epochs, want 8 to 10", size, spent)
		}
	}
}

func TestOpen_RefusesAnotherTuning(t *testing.T) {
	dir := t.TempDir()
	complete(t, dir)
	for name, change := range map[string]func(*Options){
		"command": func(o *Options) { o.Command = append(o.Command, "--fast") },
		"space":   func(o *Options) { o.Space[0].High = 2 },
		"seed":    func(o *Options) { o.Seed = 2 },
		"epochs":  func(o *Options) { o.Epochs = 8 },
	} {
		o := recordOptions()
		change(&o)
		if _, err := Open(dir, o); err == nil || !strings.Contains(err.Error(), "has a tuning with another design") {
			t.Errorf("Open() with another %s = %v, want a refusal", name, err)
		}
	}
	path := filepath.Join(dir, recordFile)
	if err := os.WriteFile(path, []byte("{\"kind\":\"open\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, recordOptions()); err == nil || !strings.Contains(err.Error(), "not the design") {
		t.Errorf("Open() of a record without a design = %v, want an error", err)
	}
	if err := os.WriteFile(path, []byte("a,b\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, recordOptions()); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("Open() of another file = %v, want an error that names the line", err)
	}
}

func TestOpen_RejectsInvalidOptions(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"no command":                        func(o *Options) { o.Command = nil },
		"--param is missing":                func(o *Options) { o.Space = nil },
		"--trials: 0":                       func(o *Options) { o.Trials = 0 },
		"4 is more than the 2 combinations": func(o *Options) { o.Space[0].Choices = []string{"a", "b"} },
		"--eta: 1":                          func(o *Options) { o.Eta = 1 },
		"--epochs: 0":                       func(o *Options) { o.Epochs = 0 },
		"--cpus: 2":                         func(o *Options) { o.CPUs = []int{2} },
		"--cpus-total: -1":                  func(o *Options) { o.Pool = -1 },
		"--max-time: -1":                    func(o *Options) { o.MaxTime = -1 },
		"--budget: -1":                      func(o *Options) { o.Budget = -1 },
		"are given together":                func(o *Options) { o.Budget, o.MaxTime = 1, 1 },
		"the command has {batch}":           func(o *Options) { o.Command = []string{"train", "{batch}"} },
		"the command has {lx}":              func(o *Options) { o.Command = []string{"train", "--lr={lx}", "{x}"} },
		"the command has {LX}":              func(o *Options) { o.Command = []string{"train", "{x}{LX}"} },
		"or use one of {x}, {epoch}":        func(o *Options) { o.Command = []string{"sh", "-c", "echo ${HOME} {y}"} },
	} {
		o := recordOptions()
		change(&o)
		if _, err := Open(t.TempDir(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open() = %v, want an error with %q", err, want)
		}
	}
}

// An interrupted tuning says so, stores what has ended, and continues.
func TestRun_ContinuesAfterAnInterruption(t *testing.T) {
	dir := t.TempDir()
	tuning, err := Open(dir, recordOptions())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	segments := 0
	_, err = tuning.Run(ctx, func(
		ctx context.Context, g Segment, values []string, report func(TrialEpoch),
	) (Ending, error) {
		if segments++; segments == 3 {
			cancel()
		}
		return instant(ctx, g, values, report)
	}, nil)
	if !errors.Is(err, ErrInterrupted) || segments != 3 {
		t.Fatalf("Run() = %v after %d segments, want an interruption after 3", err, segments)
	}
	if err := tuning.Close(); err != nil {
		t.Fatal(err)
	}
	if segments, r := complete(t, dir); segments != 5 || r.Trials[0].Trial != 4 {
		t.Errorf("%d more segments, %+v; want 5 and trial 4", segments, r.Trials)
	}
}

// A segment that has reported all of its epochs is done, also if it is stopped before its command
// ends.
func TestRun_DoesNotRepeatACompleteSegment(t *testing.T) {
	dir := t.TempDir()
	tuning, err := Open(dir, recordOptions())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = tuning.Run(ctx, func(
		ctx context.Context, g Segment, values []string, report func(TrialEpoch),
	) (Ending, error) {
		ending, err := instant(ctx, g, values, report)
		cancel()
		ending.Outcome = OutcomeStopped
		return ending, err
	}, nil)
	if !errors.Is(err, ErrInterrupted) {
		t.Fatalf("Run() = %v, want an interruption", err)
	}
	if err := tuning.Close(); err != nil {
		t.Fatal(err)
	}
	if segments, _ := complete(t, dir); segments != 6 {
		t.Errorf("%d more segments, want 6 of 7", segments)
	}
}

// No bytes crash the reader of a record or its fold, and what it reads is written alike.
func FuzzRecord(f *testing.F) {
	dir := f.TempDir()
	tuning, err := Open(dir, recordOptions())
	if err != nil {
		f.Fatal(err)
	}
	if _, err := tuning.Run(f.Context(), instant, nil); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(dir, recordFile))
	if err != nil {
		f.Fatal(err)
	}
	for _, n := range []int{0, 100, 700, len(data)} {
		f.Add(data[:n])
	}
	o := recordOptions().withDefaults()
	f.Fuzz(func(t *testing.T, data []byte) {
		lines, size, err := parseRecord(data)
		if err != nil {
			return
		}
		if size > len(data) || bytes.IndexByte(data[size:], '\n') >= 0 {
			t.Fatalf("%d of %d bytes are lines", size, len(data))
		}
		tuning := &Tuning{o: o, state: newState(o)}
		tuning.cpus = make([]int, len(tuning.state.stages))
		for i := range lines {
			tuning.state.apply(&lines[i])
			text, err := json.Marshal(&lines[i])
			if err != nil {
				t.Fatal(err)
			}
			if again, _, err := parseRecord(append(text, '\n')); err != nil || len(again) != 1 {
				t.Fatalf("%s is not read again: %v", text, err)
			}
		}
		tuning.state.candidates()
		tuning.next()
		tuning.result("", false)
	})
}
