// Package doctor checks the connection to a cluster and its parts, as courier doctor.
//
// Examine asks the servers and the services what they know, changes nothing, and returns a line for
// each check with what to do. What the user may not read is a warning, not a failure. The judgements
// are pure functions of the answers.
package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"courier/bus"
	"courier/schemas"
)

// Result is the result of a check.
type Result string

// The results of a check.
const (
	OK   Result = "ok"
	Warn Result = "warn" // it works, and something should be done
	Fail Result = "fail" // it does not work
)

// Check is a line of the examination.
type Check struct {
	Name   string `json:"name"`
	Result Result `json:"result"`
	Found  string `json:"found"`
	Do     string `json:"do,omitempty"` // what to do; empty if it is ok
}

// Examination is the result of Examine.
type Examination struct {
	Checks []Check `json:"checks"`
}

// Failed reports whether a check failed.
func (e *Examination) Failed() bool {
	return slices.ContainsFunc(e.Checks, func(c Check) bool { return c.Result == Fail })
}

// WriteText writes a line for each check.
func (e *Examination) WriteText(out io.Writer) error {
	fmt.Fprintln(out, "check\tresult\tfound")
	for _, c := range e.Checks {
		text := c.Found
		if c.Do != "" {
			text += ": " + c.Do
		}
		if _, err := fmt.Fprintf(out, "%s\t%s\t%s\n", c.Name, c.Result, text); err != nil {
			return err
		}
	}
	return nil
}

// Options are what Examine checks.
type Options struct {
	Connect    func(context.Context) (*bus.Bus, error)
	Version    string                           // of this program
	SpoolDir   string                           // for events of jobs that could not be published
	FreeBytes  func(dir string) (uint64, error) // of the file system of a directory
	FindEngine func() (string, error)
}

// patience is how long a check waits for its answers.
const patience = 3 * time.Second

// Examine runs all checks. Without a connection it only runs those of this machine.
func Examine(ctx context.Context, o Options) *Examination {
	e := &Examination{}
	b, err := o.Connect(ctx)
	if err != nil {
		e.add(Check{"connection", Fail, schemas.Plain(err), ""})
	} else {
		e.add(Check{"connection", OK, b.Address(), ""})
		for _, examine := range []func(context.Context, *bus.Bus){
			e.streams,
			func(ctx context.Context, b *bus.Bus) { e.services(ctx, b, o.Version) },
			e.store, e.jobs, e.regressors, e.letters,
		} {
			one, cancel := context.WithTimeout(ctx, patience)
			examine(one, b)
			cancel()
		}
	}
	e.add(spoolCheck(o.SpoolDir, o.FreeBytes))
	library, err := o.FindEngine()
	e.add(engineCheck(library, err))
	return e
}

func (e *Examination) add(c Check) { e.Checks = append(e.Checks, c) }

// unread adds a check whose answer was not received.
func (e *Examination) unread(name string, err error) {
	c := Check{name, Fail, schemas.Plain(err), "see the log of the service or of the NATS server"}
	switch {
	case errors.Is(err, schemas.ErrForbidden):
		c.Result, c.Do = Warn, "ask as the operator"
	case errors.Is(err, schemas.ErrNotFound):
		c.Do = "start a service of Courier, which creates it"
	case errors.Is(err, schemas.ErrUnavailable):
		c.Do = "start the service, or check that JetStream has a leader"
	}
	e.add(c)
}

// streams checks the streams of the log, and the clock of this machine against that of the server.
func (e *Examination) streams(ctx context.Context, b *bus.Bus) {
	for _, s := range schemas.Streams() {
		asked := time.Now()
		info, err := b.StreamInfo(ctx, s.Name)
		if err != nil {
			e.unread("stream "+s.Name, err)
			continue
		}
		answered := time.Now()
		e.add(streamCheck(s.Name, info))
		if s.Name == schemas.StreamJob {
			e.add(clockCheck(asked, info.At, answered))
		}
	}
}

// nearlyFull is the share of its maximum size from which a stream will soon drop its oldest events.
const nearlyFull = 0.9

func streamCheck(name string, info bus.StreamInfo) Check {
	c := Check{"stream " + name, OK, schemas.FormatCount(info.Messages, "message"), ""}
	if info.Messages > 0 {
		c.Found += " since " + info.FirstAt.UTC().Format("2006-01-02 15:04Z")
	}
	if used := float64(info.Bytes) / float64(info.MaxBytes); info.MaxBytes > 0 && used > nearlyFull {
		c.Result = Warn
		c.Found += fmt.Sprintf(", %.0f %% of its maximum size", 100*used)
		c.Do = "raise it with nats stream edit, or the oldest events are dropped"
	}
	return c
}

// Differences of clocks from which predictions suffer, and from which deadlines are wrong.
const (
	warnClock = time.Second
	failClock = 10 * time.Second
)

// clockCheck compares the clock of the server with that of this machine before and after the request.
func clockCheck(asked, server, answered time.Time) Check {
	apart := max(asked.Sub(server), server.Sub(answered))
	c := Check{"clock", OK, "this machine and the NATS server agree", ""}
	if apart >= warnClock {
		c.Result = Warn
		c.Found = fmt.Sprintf("this machine and the NATS server differ by %s", apart.Round(100*time.Millisecond))
		c.Do = "synchronize both with NTP"
	}
	if apart >= failClock {
		c.Result = Fail
	}
	return c
}

// services checks which services answer, and whether they have the version of this program.
func (e *Examination) services(ctx context.Context, b *bus.Bus, version string) {
	all, err := b.Services(ctx)
	if err != nil {
		e.unread("services", err)
		return
	}
	for _, name := range []string{"courier-advisor", "courier-trainer"} {
		e.add(serviceCheck(name, version, all))
	}
}

func serviceCheck(name, version string, all []bus.ServiceInfo) Check {
	var versions []string
	instances := 0
	for _, s := range all {
		if s.Name == name {
			instances++
			versions = append(versions, s.Version)
		}
	}
	slices.Sort(versions)
	versions = slices.Compact(versions)
	short := strings.TrimPrefix(name, "courier-")
	switch {
	case instances == 0 && short == "advisor":
		return Check{short, Fail, "none answers", "start courier advisor"}
	case instances == 0:
		return Check{short, Warn, "none answers", "start courier " + short + ", or nothing new is learned"}
	case !slices.Equal(versions, []string{version}):
		return Check{
			short, Warn, fmt.Sprintf("version %s, this program is %s", strings.Join(versions, " and "), version),
			"run the same version everywhere",
		}
	}
	count := schemas.FormatCount(uint64(instances), "instance")
	return Check{short, OK, fmt.Sprintf("%s, version %s", count, version), ""}
}

// lateStore is how long an event may wait for the store, which writes a batch each second.
const lateStore = time.Minute

// store checks how far the tables are behind the log.
func (e *Examination) store(ctx context.Context, b *bus.Bus) {
	var messages uint64
	var waited time.Duration
	for _, d := range schemas.StoreDurables() {
		backlog, err := b.Backlog(ctx, d)
		if err != nil {
			e.unread("store", err)
			return
		}
		messages += backlog.Messages
		if !backlog.Oldest.IsZero() {
			waited = max(waited, time.Since(backlog.Oldest))
		}
	}
	c := Check{"store", OK, schemas.FormatCount(messages, "message") + " not in the tables yet", ""}
	if waited > lateStore {
		c.Result = Warn
		c.Found += ", for " + schemas.FormatSeconds(waited.Seconds())
		c.Do = "start courier store, or see its log; without it SQL has no new events"
	}
	e.add(c)
}

// jobs checks the last ended jobs for those that are not learned from, and the nodes of running ones.
func (e *Examination) jobs(ctx context.Context, b *bus.Bus) {
	q := schemas.JobListRequest{State: schemas.SelectEnded}
	var ended schemas.JobList
	if err := b.Request(ctx, q.Subject(), &q, &ended); err != nil {
		e.unread("jobs", err)
		return
	}
	e.add(learnedCheck(ended.Jobs))

	q.State = schemas.StateSelection(schemas.StateRunning)
	var running schemas.JobList
	if err := b.Request(ctx, q.Subject(), &q, &running); err != nil {
		e.unread("jobs", err)
		return
	}
	var nodes []string
	for i := range running.Jobs {
		nodes = append(nodes, running.Jobs[i].Nodes...)
	}
	slices.Sort(nodes)
	nodes = slices.Compact(nodes)
	if len(nodes) > 0 {
		e.add(nodesCheck(nodes, b.LastSamples(ctx, nodes...), time.Now()))
	}
}

// learnedCheck counts the jobs that are not learned from by reason.
func learnedCheck(ended []schemas.JobStatus) Check {
	byReason := map[string][]string{}
	for i := range ended {
		if reason := ended[i].NotLearned; reason != "" {
			byReason[reason] = append(byReason[reason], ended[i].JobID)
		}
	}
	count := schemas.FormatCount(uint64(len(ended)), "ended job")
	c := Check{"learning", OK, "from the last " + count, ""}
	if len(byReason) == 0 {
		return c
	}
	var parts []string
	for reason, jobs := range byReason {
		parts = append(parts, fmt.Sprintf("%d because %s (%s)", len(jobs), reason, jobs[0]))
	}
	slices.SortFunc(parts, func(a, b string) int { return cmp.Compare(b, a) })
	c.Result = Warn
	c.Found = fmt.Sprintf("not from all of the last %s: %s", count, strings.Join(parts, "; "))
	c.Do = "courier status JOB has the details"
	return c
}

// silentNode is the age of the last sample of a node whose collector has stopped.
const silentNode = 30 * time.Second

// nodesCheck names nodes of running jobs without current samples or with another time.
func nodesCheck(nodes []string, samples map[string]bus.Record, now time.Time) Check {
	var silent, apart []string
	for _, name := range nodes {
		r, ok := samples[name]
		if !ok || now.Sub(r.StoredAt) > silentNode {
			silent = append(silent, name)
		} else if s, ok := r.Event.(*schemas.Sample); ok && r.StoredAt.Sub(s.At).Abs() > warnClock {
			apart = append(apart, name)
		}
	}
	c := Check{"nodes", OK, schemas.FormatCount(uint64(len(nodes)), "node") + " with running jobs", ""}
	if len(apart) > 0 {
		c.Result, c.Do = Warn, "synchronize them with NTP"
		c.Found += "; the clock differs on " + strings.Join(apart, ", ")
	}
	if len(silent) > 0 {
		c.Result, c.Do = Warn, "start courier collector there"
		c.Found += "; no samples of " + strings.Join(silent, ", ")
	}
	return c
}

// regressors checks that each target has a champion.
func (e *Examination) regressors(ctx context.Context, b *bus.Bus) {
	var list schemas.RegressorList
	q := schemas.RegressorListRequest{}
	if err := b.Request(ctx, q.Subject(), &q, &list); err != nil {
		e.unread("regressors", err)
		return
	}
	var missing []string
	for _, target := range schemas.Targets() {
		isChampion := func(v schemas.RegressorVersion) bool {
			return v.Target == target && v.State == schemas.RegressorChampion
		}
		if !slices.ContainsFunc(list.Regressors, isChampion) {
			missing = append(missing, target)
		}
	}
	c := Check{"regressors", OK, "a champion for each target", ""}
	if len(missing) > 0 {
		c = Check{
			"regressors", Warn, "none yet for " + strings.Join(missing, ", "),
			"run jobs, or courier import; courier regressor train says what is missing",
		}
	}
	e.add(c)
}

// letters checks for messages that could not be decoded.
func (e *Examination) letters(ctx context.Context, b *bus.Bus) {
	all, err := b.Letters(ctx)
	if err != nil {
		e.unread("dead letters", err)
		return
	}
	open := slices.DeleteFunc(all, func(l bus.Letter) bool { return l.Replayed != nil })
	c := Check{"dead letters", OK, "none", ""}
	if len(open) > 0 {
		last := open[len(open)-1]
		c = Check{
			"dead letters", Warn, fmt.Sprintf("%d, the last of %s: %s", len(open), last.OriginSubject, last.Reason),
			"correct the sender; nats stream view DEAD shows them, courier dead replay publishes them again",
		}
	}
	e.add(c)
}

// lowDisk is the free space below which events may soon not be kept.
const lowDisk = 1 << 30

// spoolCheck checks the directory for events that could not be published.
func spoolCheck(dir string, freeBytes func(string) (uint64, error)) Check {
	waiting, _ := filepath.Glob(filepath.Join(dir, "*", "*.jsonl")) // The pattern is valid.
	c := Check{"disk", OK, "no event waits in " + dir, ""}
	if len(waiting) > 0 {
		c.Result = Warn
		c.Found = fmt.Sprintf("events of %s wait in %s", schemas.FormatCount(uint64(len(waiting)), "run"), dir)
		c.Do = "they are published by the next courier run that reaches their cluster"
	}
	for !isDir(dir) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
	}
	free, err := freeBytes(dir)
	if err == nil && free < lowDisk {
		c.Result = Warn
		c.Found += fmt.Sprintf("; only %d MiB are free", free>>20)
		c.Do = "free some space, so that jobs can keep their events while NATS is unreachable"
	}
	return c
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

func engineCheck(library string, err error) Check {
	if err != nil {
		return Check{
			"engine", Warn, "no ClickHouse engine on this machine",
			"courier engine install, if courier all should have SQL",
		}
	}
	return Check{"engine", OK, library, ""}
}
