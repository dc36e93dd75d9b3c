package tune_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"courier/runner"
	"courier/tune"
)

// TestMain lets the test program be a training command (--train).
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "--train" {
		os.Exit(train(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// train is a training command: X EPOCH EPOCHS DIR. It continues from the checkpoint of EPOCH
// in DIR, unless that is empty, and says how long its epochs took.
func train(arguments []string) int {
	x, _ := strconv.ParseFloat(arguments[0], 64)
	epochs, _ := strconv.Atoi(arguments[2])
	if x > 0.9 {
		fmt.Fprintln(os.Stderr, "diverged")
		return 3
	}
	dir, done := arguments[3], 0
	if dir != "" {
		done, _ = strconv.Atoi(arguments[1])
		if _, err := os.Stat(filepath.Join(dir, arguments[1])); done > 0 && err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 4
		}
	}
	for epoch := done + 1; epoch <= epochs; epoch++ {
		if dir != "" {
			if err := os.WriteFile(filepath.Join(dir, strconv.Itoa(epoch)), nil, 0o600); err != nil {
				return 5
			}
		}
		fmt.Printf("{\"epoch\":%d,\"seconds\":1,\"loss\":%g}\n", epoch, x+1/float64(epoch))
	}
	return 0
}

// trainingOptions are those of a tuning of the command.
func trainingOptions(dir string) tune.Options {
	return tune.Options{
		Command: []string{os.Args[0], "--train", "{x}", "{epoch}", "{epochs}", dir},
		Space:   tune.Space{{Name: "x", Low: 0, High: 1}},
		Trials:  8,
		Epochs:  8,
		Pool:    2,
	}
}

func runTuning(dir string, o tune.Options) (*tune.Ranking, error) {
	tuning, err := tune.Open(dir, o)
	if err != nil {
		return nil, err
	}
	l := tune.Launcher{
		Dir: dir, Options: o, Log: slog.New(slog.DiscardHandler),
		Job: runner.Options{Node: "node-a", NoCgroup: true},
	}
	r, err := tuning.Run(context.Background(), l.Measure, nil)
	return r, errors.Join(err, tuning.Close())
}

// Real processes continue from their checkpoints, or repeat their epochs where they cannot, and fail
// with the end of their output.
func TestLauncher_RunsRealCommands(t *testing.T) {
	for name, c := range map[string]struct {
		dir   string
		spent int
	}{
		"with checkpoints":    {"{dir}", 8},
		"without checkpoints": {"", 1 + 2 + 4 + 8},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r, err := runTuning(dir, trainingOptions(c.dir))
			if err != nil {
				t.Fatal(err)
			}
			best := r.Trials[0]
			if r.Objective != tune.ObjectiveLoss || best.Epochs != 8 || best.SpentEpochs != c.spent {
				t.Errorf("%s: the best trial %+v, want 8 epochs and %d spent ones", r.Objective, best, c.spent)
			}
			for _, row := range r.Trials {
				x, _ := strconv.ParseFloat(row.Parameters["x"], 64)
				if isOut := row.Reason == "exit code 3: diverged"; isOut != (x > 0.9) {
					t.Errorf("trial %+v, want it out if x is above 0.9", row)
				}
				if least, _ := strconv.ParseFloat(best.Parameters["x"], 64); x < least {
					t.Errorf("the best trial has x = %g, and trial %d has %g", least, row.Trial, x)
				}
			}
			var table strings.Builder
			if err := r.WriteCSV(&table); err != nil || strings.Count(table.String(), "\n") != 9 ||
				!strings.HasPrefix(table.String(), "rank,trial,x,stage,epochs,spent_epochs,loss,accuracy,") {
				t.Errorf("WriteCSV() = %v\n%s", err, table.String())
			}
		})
	}
}

// The printed command can be pasted into a shell: it trains with the parameters of the best trial from
// the beginning, for all epochs and with a directory of its own.
func TestRanking_PrintsACommandForAShell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ada's tuning")
	o := trainingOptions("{dir}")
	o.Space = append(o.Space, tune.Parameter{Name: "mode", Choices: []string{"a b"}})
	o.Command = append([]string{"env", "MODE={mode}"}, o.Command...)
	r, err := runTuning(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	r.WriteText(&text)
	_, line, _ := strings.Cut(text.String(), "\nbest: ")
	line, rest, _ := strings.Cut(line, "\n")
	begin := "env 'MODE=a b' " + os.Args[0] + " --train " + r.Trials[0].Parameters["x"] + " 0 8 "
	if !strings.HasPrefix(line, begin) {
		t.Errorf("the command is %q", line)
	}
	if want := fmt.Sprintf("trials/%d'", r.Trials[0].Trial); !strings.HasPrefix(rest, "its checkpoints: ") ||
		!strings.HasSuffix(strings.TrimSpace(rest), want) {
		t.Errorf("after the command: %q, want the directory of the trial", rest)
	}
	out, err := exec.Command("sh", "-c", line).Output()
	if err != nil || !strings.HasPrefix(string(out), `{"epoch":1,`) || strings.Count(string(out), "\n") != 8 {
		t.Errorf("%s: %v, want 8 epochs:\n%s", line, err, out)
	}
	if best, err := os.ReadDir(filepath.Join(dir, "best")); err != nil || len(best) == 0 {
		t.Errorf("checkpoints of the command: %v, %v", best, err)
	}
}
