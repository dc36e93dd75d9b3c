package top

import (
	"slices"
	"strings"
	"time"

	"courier/report/columns"

	tea "charm.land/bubbletea/v2"
)

// view is the content of the screen.
type view int

const (
	viewJobs  view = iota
	viewNodes      // all nodes
	viewJob        // one job
)

// model is the state of the screen.
type model struct {
	read   func(filter string) tea.Cmd // its message is a snapshot
	layout columns.Layout
	height int

	snapshot
	view     view
	selected string // ID of the job, or name of the node
	filter   string // part of the ID, model, dataset, user or node of a job
	editing  bool   // the keys change the filter
}

// tick asks for the next snapshot.
type tick struct{}

// Init implements tea.Model.
func (m model) Init() tea.Cmd { return m.read("") }

// Update implements tea.Model.
func (m model) Update(message tea.Msg) (tea.Model, tea.Cmd) {
	switch message := message.(type) {
	case tea.WindowSizeMsg:
		m.layout.Width, m.height = message.Width, message.Height
	case tick:
		return m, m.read(m.filter)
	case snapshot:
		if message.err != nil {
			message.jobs = m.jobs
		}
		m.snapshot = message
		return m.move(0), tea.Tick(refresh, func(time.Time) tea.Msg { return tick{} })
	case tea.KeyPressMsg:
		if m.editing {
			return m.edit(message)
		}
		return m.press(message.String())
	}
	return m, nil
}

// edit changes the filter by a key. The next snapshot has the jobs that it selects.
func (m model) edit(key tea.KeyPressMsg) (tea.Model, tea.Cmd) {
	switch key.String() {
	case "ctrl+c":
		return m, tea.Quit
	case "enter":
		m.editing = false
	case "esc":
		m.editing, m.filter = false, ""
	case "backspace":
		if letters := []rune(m.filter); len(letters) > 0 {
			m.filter = string(letters[:len(letters)-1])
		}
	default:
		m.filter += strings.ToLower(key.Text)
	}
	return m, nil
}

// press changes the view by a key.
func (m model) press(key string) (tea.Model, tea.Cmd) {
	switch key {
	case "q", "ctrl+c":
		return m, tea.Quit
	case "up", "k":
		m = m.move(-1)
	case "down", "j":
		m = m.move(1)
	case "pgup":
		m = m.move(-m.rows())
	case "pgdown":
		m = m.move(m.rows())
	case "/":
		m.editing = true
	case "tab":
		m.view = map[view]view{viewJobs: viewNodes, viewNodes: viewJobs, viewJob: viewJobs}[m.view]
		m.selected = ""
		m = m.move(0)
	case "enter":
		switch {
		case m.view == viewJobs && m.selected != "":
			m.view = viewJob
		case m.view == viewNodes: // the jobs of the node
			m.view, m.filter, m.selected = viewJobs, m.selected, ""
		}
	case "esc", "left":
		if m.view == viewJobs {
			m.filter = ""
		}
		m.view = viewJobs
	}
	return m, nil
}

// names returns the IDs of the jobs, or the names of the nodes, in the order of the screen.
func (m model) names() (all []string) {
	if m.view == viewNodes {
		for _, n := range m.nodes {
			all = append(all, n.Node)
		}
		return all
	}
	for i := range m.jobs.Jobs {
		all = append(all, m.jobs.Jobs[i].JobID)
	}
	return all
}

// move selects a line relative to the selected one, or to the first one if that is no longer shown.
func (m model) move(lines int) model {
	all := m.names()
	if len(all) == 0 || m.view == viewJob {
		return m
	}
	at := max(0, slices.Index(all, m.selected))
	m.selected = all[max(0, min(len(all)-1, at+lines))]
	return m
}
