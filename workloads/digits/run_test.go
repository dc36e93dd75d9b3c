package digits_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"courier/workloads/digits"
)

type epoch struct {
	Epoch     int     `json:"epoch"`
	Seconds   float64 `json:"seconds"`
	Loss      float64 `json:"loss"`
	Accuracy  float64 `json:"accuracy"`
	BatchSize int     `json:"batch_size"`
	CPUs      int     `json:"cpus"`
	Samples   int     `json:"samples"`
	HeldOut   int     `json:"validation_samples"`
}

// train runs a command line and returns its epochs.
func train(t testing.TB, args ...string) []epoch {
	t.Helper()
	var out bytes.Buffer
	if err := digits.Run(t.Context(), args, &out); err != nil {
		t.Fatal(err)
	}
	var epochs []epoch
	lines := json.NewDecoder(&out)
	lines.DisallowUnknownFields()
	for {
		var e epoch
		err := lines.Decode(&e)
		if errors.Is(err, io.EOF) {
			return epochs
		}
		if err != nil {
			t.Fatal(err)
		}
		epochs = append(epochs, e)
	}
}

func TestRun_Learns(t *testing.T) {
	if digits.RaceDetector {
		t.Skip("the results are the same under the race detector, but very slow; the other tests run" +
			" the workers")
	}
	flags := []string{"--epochs", "3", "--augment", "7", "--learning-rate", "0.003"}
	small := train(t, append(flags, "--batch-size", "4")...)
	large := train(t, append(flags, "--batch-size", "128")...)
	for i, e := range small {
		if e.Epoch != i+1 || e.BatchSize != 4 || e.Samples != 9600 || e.HeldOut != 597 || e.Seconds <= 0 {
			t.Errorf("line %d = %+v, want epoch %d of 9600 images in batches of 4", i, e, i+1)
		}
	}
	last, coarse := small[len(small)-1], large[len(large)-1]
	if last.Accuracy < 0.9 || last.Loss >= small[0].Loss {
		t.Errorf("after %d epochs accuracy %g, want 0.9; loss %g, was %g", len(small), last.Accuracy,
			last.Loss, small[0].Loss)
	}
	if last.Accuracy < coarse.Accuracy+0.02 {
		t.Errorf("accuracy %g at batch size 4 and %g at 128, want 0.02 more at 4", last.Accuracy, coarse.Accuracy)
	}
}

func TestRun_RepeatsItself(t *testing.T) {
	for _, cpus := range []string{"1", "3"} {
		run := func(seed string) []epoch {
			epochs := train(t, "--cpus", cpus, "--epochs", "2", "--augment", "1", "--seed", seed)
			for i := range epochs {
				epochs[i].Seconds = 0
			}
			return epochs
		}
		first := run("5")
		if diff := cmp.Diff(first, run("5")); diff != "" {
			t.Errorf("cpus %s: a second run with the same seed differs (-first +second):\n%s", cpus,
				diff)
		}
		if cmp.Equal(first, run("6")) {
			t.Errorf("cpus %s: a different seed gives the same epochs", cpus)
		}
	}
}

func TestRun_RefusesBadFlags(t *testing.T) {
	tests := []struct {
		args string
		want string
	}{
		{"--batch-size 3", "--batch-size 3: want 4 to 128"},
		{"--batch-size 129", "--batch-size 129: want 4 to 128"},
		{"--batch-size many", "-batch-size"},
		{"--batch-size 99999999999999999999", "-batch-size"},
		{"--cpus 0", "--cpus 0: want 1 to 256"},
		{"--cpus 257", "--cpus 257: want 1 to 256"},
		{"--epochs 0", "--epochs 0: want 1 to 100000"},
		{"--learning-rate 0", "--learning-rate 0: want above 0 and at most 10"},
		{"--learning-rate NaN", "--learning-rate NaN: want"},
		{"--learning-rate Inf", "--learning-rate +Inf: want"},
		{"--momentum 1", "--momentum 1: want 0 to below 1"},
		{"--seed -1", "-seed"},
		{"--augment -1", "--augment -1: want 0 to 1000"},
		{"--size 4", "-size"},
		{"train", `unexpected argument "train"`},
		{"--cpus 0 --epochs 0", "--epochs 0"},
	}
	for _, tt := range tests {
		var out bytes.Buffer
		err := digits.Run(t.Context(), strings.Fields(tt.args), &out)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("Run(%s) = %v, want %s", tt.args, err, tt.want)
		}
		if out.Len() > 0 {
			t.Errorf("Run(%s) wrote %q, want nothing", tt.args, out.String())
		}
	}
}

func TestRun_Help(t *testing.T) {
	for _, ask := range []string{"-h", "--help"} {
		var out bytes.Buffer
		if err := digits.Run(t.Context(), []string{ask}, &out); err != nil {
			t.Errorf("Run(%s) = %v, want no error", ask, err)
		}
		for _, flag := range []string{
			"-batch-size", "-cpus", "-epochs", "-learning-rate", "-seed", "-augment",
			"-control",
		} {
			if !strings.Contains(out.String(), flag) {
				t.Errorf("Run(%s) does not explain %s:\n%s", ask, flag, out.String())
			}
		}
	}
}

// writer calls a function for each line.
type writer func(line []byte) error

func (w writer) Write(line []byte) (int, error) { return len(line), w(line) }

func TestRun_StopsWhenContextEnds(t *testing.T) {
	for _, cpus := range []string{"1", "2"} {
		ctx, cancel := context.WithCancel(t.Context())
		lines := 0
		err := digits.Run(ctx, []string{
			"--cpus", cpus, "--epochs", "1000", "--augment", "0",
		}, writer(func([]byte) error {
			lines++
			cancel()
			return nil
		}))
		if !errors.Is(err, context.Canceled) || lines != 1 {
			t.Errorf("Run(--cpus %s) cancelled in its first line = %v after %d lines, want %v"+
				" after 1",
				cpus, err, lines, context.Canceled)
		}
	}
}

func TestRun_StopsWithinAnEpoch(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	// An epoch of 1.2 million images, which would take longer than the test.
	go func() {
		ended <- digits.Run(ctx, []string{"--cpus", "2", "--augment", "1000"}, io.Discard)
	}()
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Run() = %v, want %v", err, context.Canceled)
	}
}

func TestRun_StopsAfterAFailedWrite(t *testing.T) {
	full := errors.New("disk full")
	err := digits.Run(t.Context(), []string{"--epochs", "1000", "--augment", "0"},
		writer(func([]byte) error {
			return full
		}))
	if !errors.Is(err, full) || !strings.Contains(err.Error(), "write epoch 1") {
		t.Errorf("Run() = %v, want %v at epoch 1", err, full)
	}
}

// A job with a control file continues with another batch size and number of workers at the next epoch.
// An invalid file or value changes nothing.
func TestRun_ChangesItsBatchSizeAndCPUsBetweenEpochs(t *testing.T) {
	path := filepath.Join(t.TempDir(), "control")
	files := []string{ // what the file holds when epoch 1, 2, … is reported
		`{"batch_size":64,"cpus":3,"from_epoch":3}`, // not yet
		`{"batch_size":64,"cpus":3,"from_epoch":3}`,
		`{"batch_size":8,"cpus":2}`,
		`not JSON`,
		`{"batch_size":100000,"cpus":257}`,
		`{"batch_size":0,"cpus":0}`,
		`{"batch_size":16}`,
		`{"cpus":1}`,
		`{}`,
	}
	var got []string
	err := digits.Run(t.Context(), []string{
		"--control", path, "--cpus", "1", "--batch-size", "16", "--augment", "0",
		"--epochs", fmt.Sprint(len(files)),
	}, writer(func(text []byte) error {
		var e epoch
		if err := json.Unmarshal(text, &e); err != nil {
			return err
		}
		got = append(got, fmt.Sprint(e.CPUs, "x", e.BatchSize))
		return os.WriteFile(path, []byte(files[e.Epoch-1]), 0o600)
	}))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"1x16", "1x16", "3x64", "2x8", "2x8", "2x8", "2x8", "2x16", "1x16"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CPUs x batch size of the epochs (-want +got):\n%s", diff)
	}
}
