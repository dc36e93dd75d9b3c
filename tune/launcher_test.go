package tune_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/runner"
	"courier/tune"
)

// TestMain lets the test program be a training command (--train) or a tuning of it (--tune DIR).
func TestMain(m *testing.M) {
	if len(os.Args) > 2 {
		switch os.Args[1] {
		case "--train":
			os.Exit(train(os.Args[2:]))
		case "--tune":
			os.Exit(tuneProcess(os.Args[2]))
		}
	}
	os.Exit(m.Run())
}

// train is a training command: X EPOCH EPOCHS DIR [SECONDS]. It continues from the checkpoint of EPOCH
// in DIR, unless that is empty, and says how long its epochs took.
func train(arguments []string) int {
	x, _ := strconv.ParseFloat(arguments[0], 64)
	epochs, _ := strconv.Atoi(arguments[2])
	seconds := "1"
	if len(arguments) > 4 {
		seconds = arguments[4]
	}
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
		fmt.Printf("{\"epoch\":%d,\"seconds\":%s,\"loss\":%g}\n", epoch, seconds, x+1/float64(epoch))
	}
	return 0
}

// trainingOptions are those of a tuning of the command.
func trainingOptions(dir string, seconds string) tune.Options {
	return tune.Options{
		Command: []string{os.Args[0], "--train", "{x}", "{epoch}", "{epochs}", dir, seconds},
		Space:   tune.Space{{Name: "x", Low: 0, High: 1}},
		Trials:  8,
		Epochs:  8,
		Pool:    2,
	}
}

func runTuning(dir string, o tune.Options, report func(tune.TuningProgress)) (*tune.Ranking, error) {
	tuning, err := tune.Open(dir, o)
	if err != nil {
		return nil, err
	}
	l := tune.Launcher{
		Dir: dir, Options: o, Log: slog.New(slog.DiscardHandler),
		Job: runner.Options{Node: "node-a", NoCgroup: true},
	}
	r, err := tuning.Run(context.Background(), l.Measure, report)
	return r, errors.Join(err, tuning.Close())
}

// tuneProcess runs a tuning and prints its messages.
func tuneProcess(dir string) int {
	_, err := runTuning(dir, trainingOptions("{dir}", "1"), func(p tune.TuningProgress) {
		if p.Message != "" {
			fmt.Println(p.Message)
		}
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	return 0
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
			r, err := runTuning(dir, trainingOptions(c.dir, "1"), nil)
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
			table, err := os.ReadFile(filepath.Join(dir, "trials.csv"))
			if err != nil || strings.Count(string(table), "\n") != 9 ||
				!strings.HasPrefix(string(table), "rank,trial,x,stage,epochs,spent_epochs,loss,accuracy,") {
				t.Errorf("trials.csv: %v\n%s", err, table)
			}
		})
	}
}

// The printed command can be pasted into a shell: it trains with the parameters of the best trial from
// the beginning, for all epochs and with a directory of its own.
func TestRanking_PrintsACommandForAShell(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "ada's tuning")
	o := trainingOptions("{dir}", "1")
	o.Space = append(o.Space, tune.Parameter{Name: "mode", Choices: []string{"a b"}})
	r, err := runTuning(dir, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	_, line, _ := strings.Cut(text.String(), "\nbest: ")
	line, rest, _ := strings.Cut(line, "\n")
	begin := "COURIER_PARAM_MODE='a b' " + os.Args[0] + " --train " + r.Trials[0].Parameters["x"] + " 0 8 "
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

// Epochs that take 100 s by their own account do not fit into the time, although they end at once.
func TestTuning_BelievesTheTimesThatTheCommandReports(t *testing.T) {
	o := trainingOptions("{dir}", "100")
	o.MaxTime = 300 * time.Second // the last stage alone takes 400 s by the account of the command
	_, err := runTuning(t.TempDir(), o, nil)
	var incomplete *tune.IncompleteTuning
	if !errors.As(err, &incomplete) {
		t.Fatalf("Run() = %v, want an incomplete tuning", err)
	}
}

// A tuning that is killed at any moment continues with its checkpoints, and ends like one that was
// not.
func TestTuning_ContinuesAfterAKill(t *testing.T) {
	want, err := runTuning(t.TempDir(), trainingOptions("{dir}", "1"), nil)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kills := 0
	for lines := 2; ; lines += 3 {
		command := exec.Command(os.Args[0], "--tune", dir)
		out, err := command.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		read := 0
		for s := bufio.NewScanner(out); s.Scan(); {
			if read++; read == lines {
				_ = command.Process.Kill() // it may have ended
			}
		}
		if command.Wait() == nil {
			break
		}
		kills++
	}
	got, err := runTuning(dir, trainingOptions("{dir}", "1"), nil) // it is complete
	if err != nil || kills < 2 {
		t.Fatalf("%v after %d kills, want 2 or more", err, kills)
	}
	for i, row := range got.Trials {
		w := want.Trials[i]
		row.Seconds, row.CoreSeconds, w.Seconds, w.CoreSeconds = 0, 0, 0, 0
		row.SpentEpochs, w.SpentEpochs = 0, 0 // an epoch whose checkpoint was written is not repeated
		a, _ := json.Marshal(row)
		b, _ := json.Marshal(w)
		if string(a) != string(b) {
			t.Errorf("rank %d after %d kills: %s\nwant %s", i+1, kills, a, b)
		}
	}
}
