package top

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	tea "charm.land/bubbletea/v2"
	"github.com/google/go-cmp/cmp"
)

var updateScreens = flag.Bool("update", false, "write the screens in testdata")

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// cluster is a snapshot of a cluster with jobs of all kinds and a silent node.
func cluster() snapshot {
	number := func(v float64) *float64 { return &v }
	end := noon.Add(7*time.Minute + 38*time.Second)
	deadline := noon.Add(6 * time.Minute)
	f := &feed{nodes: map[string]*node{}}
	for _, name := range []string{"node-a", "node-b", "node-c"} {
		f.apply(&schemas.Sample{
			Node: name, Cores: 8, CPURatio: number(0.93), IOWaitRatio: number(0.02),
			MemoryAvailableBytes: number(3 << 30),
		}, noon.Add(-time.Second))
	}
	f.nodes["node-b"].at = noon.Add(-42 * time.Second)
	f.apply(&schemas.Risk{JobStamp: schemas.JobStamp{JobID: "late-1"}, Message: "a neighbour has started"}, noon)
	s := snapshot{at: noon}
	f.show(&s, "")
	s.jobs = schemas.JobList{
		AtRisk: 1,
		Totals: map[schemas.State]int{schemas.StateRunning: 2, schemas.StateQueued: 1, schemas.StateSubmitted: 40},
		Jobs: []schemas.JobStatus{
			{
				JobID: "late-1", State: schemas.StateRunning, Model: "resnet50", User: "ada",
				Nodes: []string{"node-a"}, BatchSize: 64, CPUs: 4, Epochs: 10, EpochsDone: 4, AtRisk: true,
				SLOSeconds: 600, DeadlineAt: &deadline, PredictedEndAt: &end, Probability: number(0.41),
				Proposal:     "batch size 128 on 4 CPUs: 6 epochs in 4m 10s",
				AccuracyLoss: number(0.004), SavedProbability: number(0.97),
			},
			{
				JobID: "a-nightly-job-with-a-rather-long-name-of-64-characters-0123456789", User: "grace",
				State: schemas.StateRunning, Nodes: []string{"node-a", "node-c"}, Epochs: 100, EpochsDone: 99,
				PredictedEndAt: &end, Probability: number(0.98),
			},
			{JobID: "next", State: schemas.StateQueued, Epochs: 3, SLOSeconds: 60, QueuePosition: 1},
		},
	}
	for range 40 {
		s.jobs.Jobs = append(s.jobs.Jobs, schemas.JobStatus{JobID: "j" + strings.Repeat("o", len(s.jobs.Jobs)%9) +
			string(rune('a'+len(s.jobs.Jobs)%26)), State: schemas.StateSubmitted, Epochs: 9})
	}
	return s
}

// terminal is a model of 80 columns and 24 lines that has read the cluster once.
func terminal(t *testing.T) *session {
	s := &session{t: t}
	s.model = model{read: func(filter string) tea.Cmd {
		s.asked = append(s.asked, filter)
		return nil
	}}
	s.send(tea.WindowSizeMsg{Width: 80, Height: 24}, cluster())
	return s
}

type session struct {
	t     *testing.T
	model tea.Model
	asked []string // filters with which the jobs were read
	quit  bool
}

func (s *session) send(messages ...tea.Msg) {
	for _, m := range messages {
		var c tea.Cmd
		s.model, c = s.model.Update(m)
		_, isKey := m.(tea.KeyPressMsg)
		s.quit = isKey && c != nil // no other key has a command
	}
}

// press presses keys: names such as "enter", or letters.
func (s *session) press(keys ...string) {
	special := map[string]rune{
		"enter": tea.KeyEnter, "esc": tea.KeyEscape, "tab": tea.KeyTab, "up": tea.KeyUp, "down": tea.KeyDown,
		"pgdown": tea.KeyPgDown, "pgup": tea.KeyPgUp, "backspace": tea.KeyBackspace,
	}
	for _, k := range keys {
		if code, ok := special[k]; ok {
			s.send(tea.KeyPressMsg{Code: code})
			continue
		}
		s.send(tea.KeyPressMsg{Code: []rune(k)[0], Text: k})
	}
}

// check compares the screen with a file, and its size with the terminal.
func (s *session) check(name string) {
	s.t.Helper()
	got := s.model.(model).screen()
	lines := strings.Split(got, "\n")
	if len(lines) > 24 {
		s.t.Errorf("%s has %d lines", name, len(lines))
	}
	for _, l := range lines {
		if len([]rune(l)) > 80 {
			s.t.Errorf("%s: a line has %d columns: %s", name, len([]rune(l)), l)
		}
	}
	path := filepath.Join("testdata", name+".txt")
	if *updateScreens {
		if err := os.WriteFile(path, []byte(got+"\n"), 0o644); err != nil {
			s.t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got+"\n"); diff != "" {
		s.t.Errorf("%s (-want +got; -update writes it):\n%s", name, diff)
	}
}

func TestScreens(t *testing.T) {
	s := terminal(t)
	s.check("jobs")
	s.press("enter")
	s.check("job")
	s.press("esc", "pgdown", "pgdown", "down", "up")
	s.check("jobs-below")
	s.press("tab")
	s.check("nodes")

	s.press("enter") // the jobs of the silent node
	s.send(tick{})
	if got := s.asked[len(s.asked)-1]; got != "node-b" {
		t.Errorf("the jobs were read with the filter %q, want the selected node", got)
	}
	s.press("/", "backspace", "X", "enter")
	gone := cluster()
	gone.jobs.Jobs = gone.jobs.Jobs[:1]
	s.send(gone)
	s.check("filtered")

	s.send(snapshot{at: noon, err: schemas.Errorf(schemas.CodeUnavailable, "", "nats does not answer")})
	s.check("unreachable")
	if s.quit {
		t.Error("it has quit")
	}
	for want, j := range map[string]schemas.JobStatus{
		"done":    {State: schemas.StateRunning, Epochs: 3, EpochsDone: 3, PredictedEndAt: &noon},
		"overdue": {State: schemas.StateRunning, Epochs: 3, PredictedEndAt: new(noon.Add(-time.Second))},
		"-":       {State: schemas.StateQueued},
	} {
		if got := s.model.(model).ends(&j); got != want {
			t.Errorf("%+v ends in %q, want %q", j, got, want)
		}
	}
	if s.press("q"); !s.quit {
		t.Error("q does not quit")
	}
}

// A terminal of any size shows something, before and after the first answer.
func TestScreens_FitAnyTerminal(t *testing.T) {
	for _, size := range []tea.WindowSizeMsg{
		{}, {Width: 1, Height: 1}, {Width: 20, Height: 5}, {Width: 300, Height: 90},
	} {
		s := terminal(t)
		s.send(size)
		for _, key := range []string{"down", "enter", "esc", "tab", "pgdown", "tab"} {
			s.press(key)
			if got := s.model.(model).screen(); got == "" {
				t.Errorf("%v: the screen is empty after %s", size, key)
			}
		}
		s.send(snapshot{at: noon})
		if got := s.model.(model).screen(); size.Width >= 20 && !strings.Contains(got, "nothing to show") {
			t.Errorf("%v: an empty cluster is\n%s", size, got)
		}
	}
	if got := (model{}).screen(); !strings.Contains(got, "reading") {
		t.Errorf("before the first answer: %q", got)
	}
}

// New nodes beyond the bound are left out, and known ones stay current.
func TestFeed_IsBounded(t *testing.T) {
	f := &feed{nodes: map[string]*node{}}
	for i := range 2 * maxNodes {
		f.apply(&schemas.Sample{Node: schemas.NodeName(time.Duration(i).String())}, noon)
	}
	if len(f.nodes) != maxNodes {
		t.Errorf("%d nodes, want %d", len(f.nodes), maxNodes)
	}

	// A filter leaves the number of all nodes.
	s := snapshot{at: noon}
	if f.show(&s, "no such node"); s.known != maxNodes || len(s.nodes) > 0 {
		t.Errorf("%d of %d nodes are shown, want none of %d", len(s.nodes), s.known, maxNodes)
	}
}

// One thousand jobs on five hundred nodes: the CPU time of a second of courier top is that of one
// snapshot and ten screens.
func BenchmarkSecond(b *testing.B) {
	s := cluster()
	for len(s.jobs.Jobs) < pageSize {
		s.jobs.Jobs = append(s.jobs.Jobs, s.jobs.Jobs[0])
	}
	data, err := schemas.Marshal(s.jobs)
	if err != nil {
		b.Fatal(err)
	}
	var m tea.Model = model{read: func(string) tea.Cmd { return nil }}
	m, _ = m.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	for b.Loop() {
		var reply schemas.JobList
		if err := json.Unmarshal(data, &reply); err != nil {
			b.Fatal(err)
		}
		s.jobs = reply
		m, _ = m.Update(s)
		for range frameRate {
			_ = m.(model).screen()
		}
	}
}
