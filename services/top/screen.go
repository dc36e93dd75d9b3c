package top

import (
	"fmt"
	"slices"
	"strings"

	"courier/report"
	"courier/schemas"

	tea "charm.land/bubbletea/v2"
)

// Lines that are not part of the table: the counts, the header of the table, the last warning, the keys.
const frameLines = 5

// rows returns the number of lines of the table that fit the screen.
func (m model) rows() int { return max(1, m.height-frameLines) }

// View implements tea.Model.
func (m model) View() tea.View {
	v := tea.NewView(m.screen())
	v.AltScreen = true
	v.WindowTitle = fmt.Sprintf("(%d) courier", m.jobs.AtRisk)
	return v
}

// screen returns the lines of the screen.
func (m model) screen() string {
	if m.at.IsZero() {
		return "reading the jobs…"
	}
	body := strings.Split(strings.TrimSuffix(m.body(), "\n"), "\n")
	body = body[:min(len(body), m.rows()+1)]
	lines := append([]string{m.counts(), ""}, body...)
	for len(lines) < m.height-2 {
		lines = append(lines, "")
	}
	lines = append(lines, m.status(), m.keys())
	for i, line := range lines {
		lines[i] = cut(line, m.layout.Width)
	}
	return strings.Join(lines, "\n")
}

// counts returns the first line.
func (m model) counts() string {
	totals := m.jobs.Totals
	line := fmt.Sprintf("%d at risk, %d running, %d queued, %d submitted; %s",
		m.jobs.AtRisk, totals[schemas.StateRunning], totals[schemas.StateQueued],
		totals[schemas.StateSubmitted], schemas.FormatCount(uint64(m.known), "node"))
	if m.silent > 0 {
		line += fmt.Sprintf(", %d silent", m.silent)
	}
	return line + "; " + m.at.UTC().Format("15:04:05Z")
}

// status returns the line above the keys: an error, the filter, the advice for the selected job, or the
// last warning.
func (m model) status() string {
	switch {
	case m.err != nil:
		return "not current: " + schemas.Plain(m.err)
	case m.editing:
		return "filter: " + m.filter + "_"
	case m.view == viewJobs && m.advice(m.job()) != "":
		return m.selected + ": " + m.advice(m.job())
	case m.filter != "":
		return "only with " + m.filter + " (esc: all)"
	case m.warning != "":
		return "last warning " + m.warning
	}
	return ""
}

func (m model) keys() string {
	switch {
	case m.editing:
		return "enter keep the filter   esc drop it"
	case m.view == viewJob:
		return "esc back   q quit"
	case m.view == viewNodes:
		return "↑↓ select   enter its jobs   tab jobs   / filter   q quit"
	}
	return "↑↓ select   enter details   tab nodes   / filter   q quit"
}

// body returns the table of jobs or nodes, or the text about a job.
func (m model) body() string {
	switch m.view {
	case viewNodes:
		return m.table("node\tstate\tjobs\tCPU\tIO wait\tCPU pressure\tmemory free\tcores", m.nodeRow)
	case viewJob:
		j := m.job()
		if j == nil {
			return m.selected + " has ended: courier receipt " + m.selected
		}
		var b strings.Builder
		report.Job(&b, j, m.ends(j))
		return m.layout.Format(schemas.Printable(b.String()))
	}
	return m.table("job\tstate\tmeets SLO\tends in\tepochs\tadvice", m.jobRow)
}

// table returns a table with the selected line on the screen, marked.
func (m model) table(head string, row func(i int) string) string {
	all := m.names()
	if len(all) == 0 {
		return "nothing to show"
	}
	at := max(0, slices.Index(all, m.selected))
	first := max(0, min(at-m.rows()/2, len(all)-m.rows()))
	text := "  " + head + "\n"
	for i := first; i < min(len(all), first+m.rows()); i++ {
		mark := "  "
		if i == at {
			mark = "> "
		}
		text += mark + row(i) + "\n"
	}
	lines := m.layout
	lines.OneLine = true
	return lines.Format(schemas.Printable(text))
}

func (m model) jobRow(i int) string {
	j := &m.jobs.Jobs[i]
	state := string(j.State)
	if j.AtRisk {
		state = "at risk"
	}
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%d/%d\t%s", j.JobID, state,
		schemas.OptionalProbability(j.Probability), m.ends(j), j.EpochsDone, j.Epochs, m.advice(j))
}

// job returns the selected job; nil if there is none.
func (m model) job() *schemas.JobStatus {
	at := slices.IndexFunc(m.jobs.Jobs, func(j schemas.JobStatus) bool { return j.JobID == m.selected })
	if at < 0 {
		return nil
	}
	return &m.jobs.Jobs[at]
}

// advice returns the change that is advised for a job, with its cost; empty if there is none.
func (m model) advice(j *schemas.JobStatus) string {
	if j == nil || j.Proposal == "" {
		return ""
	}
	if cost := report.CostText(j); cost != "" {
		return j.Proposal + " (" + cost + ")"
	}
	return j.Proposal
}

// ends returns the time until the predicted end of a job.
func (m model) ends(j *schemas.JobStatus) string {
	switch {
	case report.IsTrained(j):
		return "done"
	case j.PredictedEndAt == nil:
		return "-"
	case j.PredictedEndAt.Before(m.at):
		return "overdue"
	}
	return schemas.FormatSeconds(j.PredictedEndAt.Sub(m.at).Round(1e9).Seconds())
}

func (m model) nodeRow(i int) string {
	n := m.nodes[i]
	jobs := 0
	for k := range m.jobs.Jobs {
		j := &m.jobs.Jobs[k]
		if j.State == schemas.StateRunning && slices.Contains(j.Nodes, n.Node) {
			jobs++
		}
	}
	state := "ok"
	if n.isSilent(m.at) {
		state = "silent " + schemas.FormatSeconds(m.at.Sub(n.at).Round(1e9).Seconds())
	}
	memory := "-"
	if n.MemoryAvailableBytes != nil {
		memory = fmt.Sprintf("%.1f GiB", *n.MemoryAvailableBytes/(1<<30))
	}
	return fmt.Sprintf("%s\t%s\t%d\t%s\t%s\t%s\t%s\t%d", n.Node, state, jobs, percent(n.CPURatio),
		percent(n.IOWaitRatio), percent(n.CPUPressureRatio), memory, n.Cores)
}

func percent(ratio *float64) string {
	if ratio == nil {
		return "-"
	}
	return fmt.Sprintf("%.0f %%", 100**ratio)
}

// cut shortens a line to a width. A line with colours comes from columns and fits already.
func cut(line string, width int) string {
	letters := []rune(line)
	if len(letters) <= width || strings.Contains(line, "\x1b") {
		return line
	}
	return strings.TrimRight(string(letters[:max(0, width)]), " ")
}
