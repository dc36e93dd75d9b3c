package deploy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts run jobs like users of Slurm and Spark, against a running courier all. Commands:
//
//   - cluster DIR waits until the courier all with the data directory DIR answers
//   - slurm creates a configuration of Slurm with the prolog and epilog of Courier
//   - events JOB prints the events of a job in the log, one per line
//   - awaitfile FILE waits for a file and removes it
func TestWrap(t *testing.T) {
	for _, tool := range []string{"setsid", "ps"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the replacements of the Slurm commands require %s", tool)
		}
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Dir(program(t, "courier"))
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("DEPLOY", here)
			e.Setenv("IN_AN_HOUR", time.Now().Add(time.Hour).UTC().Format("2006-01-02T15:04:05Z"))
			e.Setenv("SLURM_CONF", filepath.Join(e.WorkDir, "slurm", "slurm.conf"))
			e.Setenv("PATH", strings.Join([]string{
				bin, filepath.Join(here, "testdata/slurm"), filepath.Join(here, "testdata/spark"),
				os.Getenv("PATH"),
			}, ":"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"cluster":   awaitCluster,
			"slurm":     configureSlurm,
			"events":    printEvents,
			"awaitfile": awaitFile,
		},
	})
}

// await repeats try until it returns true.
func await(ts *testscript.TestScript, what string, try func() bool) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	deadline := time.After(patience)
	for !try() {
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("%s", what)
		}
	}
}

func awaitFile(ts *testscript.TestScript, _ bool, args []string) {
	path := ts.MkAbs(args[0])
	await(ts, args[0]+" does not come", func() bool { return os.Remove(path) == nil })
}

func awaitCluster(ts *testscript.TestScript, _ bool, args []string) {
	path := filepath.Join(ts.MkAbs(args[0]), "run", "endpoints.json")
	await(ts, "the cluster in "+args[0]+" does not answer", func() bool {
		var e struct {
			NATSURL string `json:"nats_url"`
		}
		data, err := os.ReadFile(path)
		if err != nil || json.Unmarshal(data, &e) != nil {
			return false
		}
		ts.Setenv("COURIER_NATS_URL", e.NATSURL)
		ts.Setenv("NATS_URL", e.NATSURL)
		return ts.Exec("courier", "jobs") == nil
	})
}

// configureSlurm installs the scripts of Courier as on a cluster, except that the program and the
// configuration of the cluster are in the directory of the test script.
func configureSlurm(ts *testscript.TestScript, _ bool, _ []string) {
	dir := ts.MkAbs("slurm")
	ts.Check(os.MkdirAll(dir, 0o755))
	settings := filepath.Join(dir, "client.env")
	ts.Check(os.WriteFile(settings,
		[]byte("# of the cluster\nCOURIER_NATS_URL="+ts.Getenv("COURIER_NATS_URL")+
			"\nCOURIER_SPOOL_DIR="+ts.MkAbs("spool")+"\nCOURIER_SLURM_COMMENT=1\n"),
		0o600))
	var conf strings.Builder
	for key, name := range map[string]string{
		"TaskProlog": "task_prolog.sh",
		"Epilog":     "epilog.sh",
	} {
		text, err := os.ReadFile(filepath.Join(ts.Getenv("DEPLOY"), "slurm", name))
		ts.Check(err)
		fakes := filepath.Join(ts.Getenv("DEPLOY"), "testdata", "slurm")
		installed := strings.NewReplacer("/etc/courier/client.env", settings,
			"PATH=/usr/local/bin:", "PATH="+programs.dir+":"+fakes+":").Replace(string(text))
		if !strings.Contains(installed, settings) {
			ts.Fatalf("%s does not read the cluster's settings", name)
		}
		ts.Check(os.WriteFile(filepath.Join(dir, name), []byte(installed), 0o755))
		fmt.Fprintf(&conf, "%s=%s\n", key, filepath.Join(dir, name))
	}
	ts.Check(os.WriteFile(ts.Getenv("SLURM_CONF"), []byte(conf.String()), 0o600))
	ts.Setenv("COURIER_NATS_URL", "") // jobs get it from the prolog
}

// printEvents waits for the end of a job and prints its events in the log.
func printEvents(ts *testscript.TestScript, _ bool, args []string) {
	nc, err := nats.Connect(ts.Getenv("NATS_URL"))
	ts.Check(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	ts.Check(err)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := js.OrderedConsumer(ctx, "JOB", jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{"job." + args[0] + ".*"},
	})
	ts.Check(err)
	for {
		m, err := c.Next(jetstream.FetchMaxWait(patience))
		if err != nil {
			ts.Fatalf("%s has not ended: %v", args[0], err)
		}
		var e jobEvent
		ts.Check(json.Unmarshal(m.Data(), &e))
		kind := m.Subject()[strings.LastIndexByte(m.Subject(), '.')+1:]
		e.print(ts.Stdout(), kind)
		switch kind {
		case "finished", "failed", "cancelled", "lost":
			return
		}
	}
}

// jobEvent contains the fields of a job's events that are printed.
type jobEvent struct {
	Run            int      `json:"run"`
	BatchSize      int      `json:"batch_size"`
	CPUs           int      `json:"cpus"`
	Epochs         int      `json:"epochs"`
	Epoch          int      `json:"epoch"`
	Accuracy       *float64 `json:"accuracy"`
	DurationSource string   `json:"duration_source"`
	Command        string   `json:"command"`
	ExitCode       int      `json:"exit_code"`
	Reason         string   `json:"reason"`
	Advice         struct {
		Decision string `json:"decision"`
		Chosen   struct {
			BatchSize int `json:"batch_size"`
			CPUs      int `json:"cpus"`
		} `json:"chosen"`
	} `json:"advice"`
}

func (e *jobEvent) print(out io.Writer, kind string) {
	switch kind {
	case "submitted":
		fmt.Fprintf(out, "submitted %s batch=%d cpus=%d\n", e.Advice.Decision,
			e.Advice.Chosen.BatchSize, e.Advice.Chosen.CPUs)
	case "started":
		fmt.Fprintf(out, "started run=%d batch=%d cpus=%d epochs=%d command=%s\n", e.Run,
			e.BatchSize, e.CPUs, e.Epochs, e.Command)
	case "epoch":
		fmt.Fprintf(out, "epoch %d batch=%d accuracy=%v %s\n", e.Epoch, e.BatchSize, *e.Accuracy,
			e.DurationSource)
	case "failed":
		fmt.Fprintf(out, "failed exit %d\n", e.ExitCode)
	case "cancelled":
		fmt.Fprintln(out, "cancelled", e.Reason)
	case "finished":
		fmt.Fprintln(out, "finished")
	}
}
