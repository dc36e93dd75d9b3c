//go:build unix

package trainer

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	monthJobs = "COURIER_MONTH_JOBS_PER_DAY" // number of jobs a day of TestTrainer_LearnsFromAMonth
	monthURL  = "COURIER_MONTH_TRAINER_OF"   // set for the process that the test starts
)

// A trainer that starts on the log of a month fits all targets within its memory limit. The log is
// published to a NATS server and the trainer is a process of its own:
//
//	COURIER_MONTH_JOBS_PER_DAY=10000 go test ./trainer -run LearnsFromAMonth -v -timeout 1h
func TestTrainer_LearnsFromAMonth(t *testing.T) {
	jobsPerDay, err := strconv.Atoi(os.Getenv(monthJobs))
	if err != nil {
		t.Skipf("set %s to a number of jobs, such as 10000", monthJobs)
	}
	server := bustest.NewServer(t)
	server.Connect(t) // declares the streams
	begin := time.Now()
	t.Logf("%d events published in %v", publishMonth(t, server.URL(), jobsPerDay),
		time.Since(begin).Round(time.Second))
	c := exec.Command(os.Args[0], "-test.run=^TestMonthTrainer$", "-test.v", "-test.timeout=1h")
	c.Env = append(os.Environ(), monthURL+"="+server.URL())
	out, err := c.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatal(err)
	}
}

// publishMonth publishes the events of 30 days and returns their number.
func publishMonth(t *testing.T, url string, jobsPerDay int) (events int) {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stream, err := js.Stream(t.Context(), schemas.StreamJob)
	if err != nil {
		t.Fatal(err)
	}
	config := stream.CachedInfo().Config
	config.MaxBytes = -1
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	y := newYear(func(e schemas.Event, _ uint64) {
		data, err := schemas.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		// Every 2,000th publish waits until the stream has that event and all previous ones.
		if events++; events%2000 != 0 {
			err = nc.Publish(e.Subject(), data)
		} else {
			_, err = js.Publish(t.Context(), e.Subject(), data)
		}
		if err != nil {
			t.Fatal(err)
		}
	})
	y.now = time.Now().UTC().Add(-31 * 24 * time.Hour)
	y.days(30, jobsPerDay)
	if err := nc.Flush(); err != nil {
		t.Fatal(err)
	}
	return events
}

// TestMonthTrainer is the process that TestTrainer_LearnsFromAMonth starts.
func TestMonthTrainer(t *testing.T) {
	url := os.Getenv(monthURL)
	if url == "" {
		t.Skip("it is a process of TestTrainer_LearnsFromAMonth")
	}
	begin := time.Now()
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	b, err := bus.Connect(t.Context(), bus.Options{URL: url}, log, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close(context.Background())
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	tr := New(b, nil, Options{}, log, nil)
	go func() { ended <- tr.Run(ctx) }()
	asking, cancel := context.WithTimeout(ctx, 30*time.Minute)
	defer cancel()
	again := time.NewTicker(time.Second)
	defer again.Stop()
	var reply schemas.TrainReply
	for q := (schemas.TrainRequest{}); ; {
		err := b.Request(asking, schemas.SubjectRegressorTrain, &q, &reply)
		if err == nil {
			break
		}
		if !errors.Is(err, schemas.ErrUnavailable) || asking.Err() != nil {
			t.Fatal(err)
		}
		<-again.C // the trainer is starting or still replaying the log
	}
	t.Logf("fitted %+v", reply)
	stop()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	peak := peakMegabytes(t)
	t.Logf("read and fitted in %v, at most %d MB resident", time.Since(begin).Round(time.Second), peak)
	if peak > 600 {
		t.Errorf("%d MB resident, want at most 600", peak)
	}
}

// peakMegabytes returns the maximum resident memory of this process.
func peakMegabytes(t *testing.T) int {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Skip("needs /proc")
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			kb, err := strconv.Atoi(strings.TrimSuffix(strings.TrimSpace(rest), " kB"))
			if err != nil {
				t.Fatal(err)
			}
			return kb >> 10
		}
	}
	return 0
}
