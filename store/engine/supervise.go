package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

const (
	// firstRestartDelay is the pause after a first failure; it doubles.
	firstRestartDelay = 100 * time.Millisecond
	// longLife is how long a child must have answered for its end to count as a
	// first failure again.
	longLife = 30 * time.Second
	// killedStarts is how often a child may be killed before it has answered
	// once; by what, the supervisor cannot know.
	killedStarts = 5
)

// supervisor is one Run of an Engine: what it knows once the directory is its own.
type supervisor struct {
	*Engine
	library  Library
	lock     *dataLock
	settings settings // ports and nonce change from start to start
	answered bool     // once at least
	failures int      // in a row
}

// supervise starts the engine again and again until ctx ends.
func (v *supervisor) supervise(ctx context.Context) error {
	for {
		err := v.once(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if !v.mayRestart(err) {
			return err
		}
		delay := restartDelay(v.failures, v.options.MaxRestartDelay)
		v.failures++
		v.metrics.restarts.Inc()
		v.log.Warn("engine will be started again", "reason", err.Error(), "delay_seconds", delay.Seconds())
		pause := time.NewTimer(delay)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return nil
		}
	}
}

// restartDelay is the pause after that many failures in a row before this one.
func restartDelay(failures int, longest time.Duration) time.Duration {
	delay := firstRestartDelay
	for ; failures > 0 && delay < longest; failures-- {
		delay *= 2
	}
	return min(delay, longest)
}

// mayRestart says whether the next start may end better: always, once the
// engine has answered; before, only if something killed the child.
func (v *supervisor) mayRestart(err error) bool {
	return v.answered || errors.Is(err, errKilled) && v.failures+1 < killedStarts
}

// once starts a child, waits until it answers, and stays with it until it ends
// or ctx does. It never returns while the child lives.
func (v *supervisor) once(ctx context.Context) error {
	started := time.Now()
	if err := v.prepare(); err != nil {
		return err
	}
	c, err := v.spawn()
	if err != nil {
		return err
	}
	endpoint, err := v.awaitReady(ctx, c)
	if err != nil {
		return errors.Join(err, v.endChild(ctx, c))
	}
	answering := time.Now()
	v.announce(endpoint, c, answering.Sub(started))
	select {
	case <-c.exited:
	case <-ctx.Done():
	}
	v.state.down()
	v.metrics.up.Set(0)
	if ctx.Err() != nil {
		return v.endChild(ctx, c)
	}
	if time.Since(answering) >= longLife {
		v.failures = 0
	}
	return fmt.Errorf("the engine ended unasked: %w", c.describeExit())
}

// prepare chooses ports and writes the files of this start.
func (v *supervisor) prepare() error {
	if err := v.choosePorts(); err != nil {
		return err
	}
	v.settings.nonce = newNonce()
	if err := os.Remove(v.settings.portsPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove the ports of the last start: %w", err)
	}
	config, err := configXML(v.settings)
	if err != nil {
		return fmt.Errorf("make config.xml: %w", err)
	}
	users, err := usersXML(v.settings)
	if err != nil {
		return fmt.Errorf("make users.xml: %w", err)
	}
	if err := errors.Join(writeFile(v.settings.configPath(), config), writeFile(v.settings.usersPath(), users)); err != nil {
		return fmt.Errorf("write the engine's configuration: %w", err)
	}
	if v.settings.queryLog {
		return seedSystemDatabase(filepath.Join(v.settings.store, "metadata"))
	}
	return nil
}

// choosePorts checks the ports before a child is started for them: the engine
// goes on without a listener, and another program's may well answer.
func (v *supervisor) choosePorts() error {
	for _, port := range []struct {
		name   string
		chosen *int
		asked  int
	}{{"http", &v.settings.httpPort, v.options.HTTPPort}, {"native", &v.settings.tcpPort, v.options.TCPPort}} {
		if *port.chosen == 0 {
			*port.chosen = port.asked
		}
		err := checkPort(*port.chosen)
		if errors.Is(err, ErrPortTaken) && (v.options.PortsAreDefaults || port.asked == 0) {
			v.log.Info("engine port is taken, a free one is used instead", "listener", port.name, "taken_port", *port.chosen)
			*port.chosen, err = 0, nil
		}
		if err == nil && *port.chosen == 0 && v.settings.server {
			*port.chosen, err = freePort()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// announce makes the endpoint known.
func (v *supervisor) announce(p Endpoint, c *child, took time.Duration) {
	v.answered = true
	v.settings.httpPort, v.settings.tcpPort = p.httpPort, p.tcpPort
	v.metrics.up.Set(1)
	v.metrics.start.Set(took.Seconds())
	v.log.Info("engine ready", "engine", p, "found", v.library.From, "start_seconds", took.Seconds())
	if reason := unconfined(c.log.text()); reason != "" {
		v.log.Warn("engine is not confined: who may select can read files of this user", "reason", reason)
	}
	v.state.up(p)
}

// endChild stops what is left of a child, within the time that Options give.
func (v *supervisor) endChild(ctx context.Context, c *child) error {
	stop := v.options.StopTimeout
	if ctx.Err() == nil {
		stop = 0 // it failed: nothing in it is worth waiting for
	}
	killed, err := c.stop(stop)
	if killed && stop > 0 {
		v.log.Warn("engine did not stop and was killed", "after_seconds", stop.Seconds())
	}
	return err
}
