//go:build linux && amd64 && !noengine

package engine_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"courier/store/engine"
)

func TestEngine_StartsAnswersAndStops(t *testing.T) {
	for _, mode := range []string{fakeWell, fakeSlow, fakeHalfWritten} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			e := run(t, fake(t, mode))
			p := e.ready()
			if p.Version != "fake" || p.User != "courier" || p.Password == "" || p.ReaderPassword == "" ||
				p.Database != "courier" {
				t.Errorf("Ready() = %+v, want users, passwords, database and version", p)
			}
			if response, err := http.Get(p.HTTPURL); err != nil {
				t.Error(err)
			} else {
				response.Body.Close()
			}
			if strings.Contains(e.log.String(), p.Password) {
				t.Error("the log contains the password")
			}
			if err := e.stop(); err != nil {
				t.Errorf("Run() = %v after a clean end", err)
			}
			if alive(p.PID) {
				t.Error("the child still runs after Run has returned")
			}
			if _, err := e.Ready(t.Context()); !errors.Is(err, engine.ErrStopped) {
				t.Errorf("Ready() after the end = %v, want ErrStopped", err)
			}
		})
	}
}

func TestEngine_ReportsAPermanentFailure(t *testing.T) {
	for _, c := range []struct {
		mode, want string
		is         error
	}{
		{fakeUnable, "it is Tuesday", nil},
		{fakeSilent, "has not reported its ports", nil},
		{fakeOther, "another program answers", nil},
		{fakeException, "Code: 210", engine.ErrPortTaken},
		{fakeSelfKilled, "killed", nil},
	} {
		t.Run(c.mode, func(t *testing.T) {
			t.Parallel()
			o := fake(t, c.mode)
			o.StartTimeout = time.Second
			e := run(t, o)
			err := e.wait()
			for err != nil && !strings.Contains(err.Error(), c.want) &&
				o.StartTimeout < patience { // on a busy machine the child may need more time
				o.StartTimeout *= 2
				e = run(t, o)
				err = e.wait()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) || c.is != nil && !errors.Is(err, c.is) {
				t.Errorf("Run() = %v, want an error with %q that is %v", err, c.want, c.is)
			}
			if _, ready := e.Ready(t.Context()); ready == nil || ready.Error() != err.Error() {
				t.Errorf("Ready() = %v, want the error of Run", ready)
			}
		})
	}
}

func TestEngine_RestartsAfterACrash(t *testing.T) {
	e := run(t, fake(t, fakeWell))
	first := e.ready()
	must(t, syscall.Kill(first.PID, syscall.SIGKILL))
	second := e.readyAfter(first.PID)
	if second.HTTPURL != first.HTTPURL || second.NativeURL != first.NativeURL || second.Password != first.Password {
		t.Errorf("address after the restart = %v, want %v", second, first)
	}
	if n := e.restarts(); n != 1 {
		t.Errorf("restarts = %v, want 1", n)
	}
	if !strings.Contains(e.log.String(), "level=WARN") {
		t.Error("the log has no warning about the restart")
	}
}

func TestEngine_KeepsRestartingOnceItHasAnswered(t *testing.T) {
	o := fake(t, fakeOnce)
	o.MaxRestartDelay = 100 * time.Millisecond
	e := run(t, o)
	first := e.ready()
	must(t, syscall.Kill(first.PID, syscall.SIGKILL))
	eventually(t, "a third attempt", func() bool { return e.restarts() >= 3 })
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if p, err := e.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Ready() of an engine that is down = %v, %v, want a timeout", p, err)
	}
	if err := e.stop(); err != nil {
		t.Errorf("Run() = %v after a stop between two starts, want nil", err)
	}
}

func TestEngine_IsKilledIfItDoesNotStop(t *testing.T) {
	o := fake(t, fakeDeaf)
	o.StopTimeout = 300 * time.Millisecond
	e := run(t, o)
	p := e.ready()
	if err := e.stop(); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
	if alive(p.PID) {
		t.Error("the child still runs")
	}
	if !strings.Contains(e.log.String(), "did not stop") {
		t.Errorf("the log has no warning about the kill:\n%s", e.log)
	}
}

func TestEngine_StopsWhileItStarts(t *testing.T) {
	e := run(t, fake(t, fakeSilent))
	eventually(t, "a child", func() bool { return !strings.Contains(e.hostLog(), "no file") })
	if err := e.stop(); err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
}

func TestEngine_ReleasesTheDirectoryAfterAnEarlyStop(t *testing.T) {
	o := fake(t, fakeWell)
	for range 10 {
		if err := run(t, o).stop(); err != nil {
			t.Fatalf("Run() = %v, want nil", err)
		}
	}
	run(t, o).ready()
}

func TestEngine_RejectsADataDirectoryInUse(t *testing.T) {
	o := fake(t, fakeWell)
	first := run(t, o)
	p := first.ready()
	before := snapshot(t, o.DataDir)
	second := run(t, o)
	if err := second.wait(); !errors.Is(err, engine.ErrInUse) || !strings.Contains(err.Error(), o.DataDir) {
		t.Errorf("Run() of the second = %v, want ErrInUse for %s", err, o.DataDir)
	}
	if after := snapshot(t, o.DataDir); after != before {
		t.Errorf("the second engine changed files of the first:\n%s\nwant\n%s", after, before)
	}
	if err := errors.Join(first.stop(), second.stop()); !errors.Is(err, engine.ErrInUse) {
		t.Error(err)
	}
	third := run(t, o)
	if third.ready().Password != p.Password {
		t.Error("the third engine has different passwords")
	}
}

func TestEngine_RejectsAPortInUse(t *testing.T) {
	taken := occupied(t)
	for name, set := range map[string]func(*engine.Options){
		"http":   func(o *engine.Options) { o.HTTPPort = taken },
		"native": func(o *engine.Options) { o.TCPPort = taken },
	} {
		o := fake(t, fakeWell)
		set(&o)
		o.StartTimeout = 2 * patience // not reached
		err := run(t, o).wait()
		if !errors.Is(err, engine.ErrPortTaken) || !strings.Contains(err.Error(), fmt.Sprint(taken)) {
			t.Errorf("%s: Run() = %v, want ErrPortTaken for %d", name, err, taken)
		}
	}
}

func TestEngine_WarnsIfItIsNotConfined(t *testing.T) {
	e := run(t, fake(t, fakeUnconfined))
	e.ready()
	if log := e.log.String(); !strings.Contains(log, "not confined") || !strings.Contains(log, "no Landlock") {
		t.Errorf("the log has no warning:\n%s", log)
	}
}

// superviseAlone runs an Engine, prints its endpoint and never returns.
func superviseAlone(library, data string) int {
	program, err := os.Executable()
	if err != nil {
		return 1
	}
	e, err := engine.New(
		engine.Options{
			DataDir:      data,
			Library:      library,
			HostCommand:  []string{program, roleHost},
			MemoryBytes:  1 << 30,
			StartTimeout: patience,
		},
		slog.New(slog.DiscardHandler),
		nil,
	)
	if err != nil {
		return 1
	}
	go func() {
		p, err := e.Ready(context.Background())
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(p)
		}
		if err != nil {
			os.Exit(1)
		}
	}()
	fmt.Fprintln(os.Stderr, e.Run(context.Background()))
	return 1
}

// The engine of a killed supervisor ends, although a client stays connected, and the next one waits
// for that.
func TestEngine_EndsWithItsSupervisor(t *testing.T) {
	t.Parallel()
	o := withEngine(t)
	supervisor := exec.Command(testProgram(t), roleSupervisor, o.Library, o.DataDir)
	output, err := supervisor.StdoutPipe()
	must(t, err)
	must(t, supervisor.Start())
	var p engine.Connection
	line, err := bufio.NewReader(output).ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &p)
	}
	must(t, err)
	query(t, p, "CREATE TABLE kept (x Int8) ENGINE = MergeTree ORDER BY x")
	query(t, p, "INSERT INTO kept SELECT 1")
	idle, err := dial(p.HTTPURL)
	must(t, err)
	idle.send(request(p, "SELECT 1", ""))
	idle.receive(10)
	defer idle.reset()

	must(t, supervisor.Process.Kill())
	_ = supervisor.Wait() // it was killed
	next := run(t, o).ready()
	if got := query(t, next, "SELECT count() FROM kept"); got != "1" {
		t.Errorf("the next engine has %s rows, want 1", got)
	}
	if response, err := http.Get(p.HTTPURL); err == nil {
		response.Body.Close()
		t.Error("the engine of the killed supervisor still answers")
	}
}
