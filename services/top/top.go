// Package top shows the open jobs and the nodes of a cluster on a terminal, as courier top.
//
// Run reads one page of job.list each second, those with the lowest probability first, and listens to
// the samples of nodes and to warnings. It changes nothing. The model is a value: update and View are
// pure functions of it and of messages, and tests compare their screens. Only this package imports the
// library for terminals.
package top

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"courier/bus"
	"courier/schemas"

	tea "charm.land/bubbletea/v2"
)

// Options are the options of Run.
type Options struct {
	Bus     *bus.Bus
	User    string // only jobs of this user; empty: of all
	Color   bool
	Input   io.Reader
	Output  io.Writer
	Environ []string // of the terminal
}

const (
	refresh   = time.Second
	pageSize  = 200 // jobs; the filter finds others
	maxNodes  = 4096
	silentAge = 10 * time.Second // of the last sample of a silent node
	frameRate = 10               // per second: keys feel immediate over SSH
)

// Run shows the cluster until the user quits or ctx ends.
func Run(ctx context.Context, o Options) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	f := &feed{bus: o.Bus, user: o.User, nodes: map[string]*node{}}
	listening := make(chan error, 1)
	go func() { listening <- f.listen(ctx) }()

	m := model{read: func(filter string) tea.Cmd {
		return func() tea.Msg { return f.read(ctx, filter) }
	}}
	m.layout.Color = o.Color
	program := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(o.Input), tea.WithOutput(o.Output),
		tea.WithEnvironment(o.Environ), tea.WithFPS(frameRate), tea.WithoutSignalHandler())
	_, err := program.Run()
	stopped := ctx.Err() != nil
	cancel()
	if err == nil || stopped && errors.Is(err, tea.ErrProgramKilled) {
		err = nil
	}
	return errors.Join(err, <-listening)
}

// node is the last sample of a node, and when it arrived.
type node struct {
	*schemas.Sample
	at time.Time
}

func (n node) isSilent(now time.Time) bool { return now.Sub(n.at) > silentAge }

// feed holds the data received from the cluster. listen and read may run concurrently.
type feed struct {
	bus  *bus.Bus
	user string

	mu      sync.Mutex
	nodes   map[string]*node
	warning string // the last one
}

// listen receives samples and warnings until ctx ends.
func (f *feed) listen(ctx context.Context) error {
	subjects := []string{
		schemas.NodeSubject("*", schemas.EventSample), schemas.JobSubject("*", schemas.EventRisk),
	}
	return f.bus.ListenPersons(ctx, subjects, func(_ string, e schemas.Event) { f.apply(e, time.Now()) })
}

func (f *feed) apply(e schemas.Event, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch e := e.(type) {
	case *schemas.Sample:
		if f.nodes[e.Node] != nil || len(f.nodes) < maxNodes {
			f.nodes[e.Node] = &node{e, now}
		}
	case *schemas.Risk:
		f.warning = fmt.Sprintf("%s %s: %s", now.UTC().Format("15:04:05Z"), e.JobID, e.Message)
	}
}

// snapshot is the state of the cluster at an instant.
type snapshot struct {
	at      time.Time
	jobs    schemas.JobList
	nodes   []node // that the filter selects; silent ones first, then by name
	known   int    // all nodes
	silent  int    // of all nodes
	warning string
	err     error // why the jobs are those of an earlier snapshot
}

// read reads the jobs, those with the lowest probability first.
func (f *feed) read(ctx context.Context, filter string) snapshot {
	q := schemas.JobListRequest{
		State: schemas.SelectOpen, Search: filter, User: f.user, Sort: "probability", Limit: pageSize,
	}
	var s snapshot
	s.err = f.bus.Request(ctx, q.Subject(), &q, &s.jobs)
	s.at = time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.show(&s, filter)
	return s
}

// show sets the nodes of a snapshot, of which a filter selects some. The caller holds f.mu.
func (f *feed) show(s *snapshot, filter string) {
	var silent, live []node
	for _, name := range slices.Sorted(maps.Keys(f.nodes)) {
		if n := *f.nodes[name]; n.isSilent(s.at) {
			silent = append(silent, n)
		} else {
			live = append(live, n)
		}
	}
	s.warning, s.known, s.silent = f.warning, len(f.nodes), len(silent)
	isOther := func(n node) bool { return !strings.Contains(n.Node, filter) }
	s.nodes = slices.DeleteFunc(append(silent, live...), isOther)
}
