package study

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page.html
var pageFile embed.FS

var page = template.Must(template.New("page.html").Funcs(template.FuncMap{
	"capital":     capital,
	"digits":      Digits,
	"joined":      joined,
	"percent":     percent,
	"statistic":   Statistic,
	"probability": Probability,
	"share":       func(x float64) string { return fmt.Sprintf("%.3f", x) },
	"four": func(x float64) string {
		if !isNumber(x) {
			return "-"
		}
		return fmt.Sprintf("%.4f", x)
	},
}).ParseFS(pageFile, "page.html"))

type pageData struct {
	Study      *RunsAnalysis
	Best       string // sentence about regressors
	Responses  []responseData
	Resources  []section // of the paper's other figures
	Regressors []scoreTable
	Missing    []string
}

type section struct {
	ID, Title, Text string
	Figures         []figure
}

type responseData struct {
	*Analysis
	ID                string
	Means             []figure
	Interactions      []figure
	InteractionsText  string
	Residuals         []figure
	Distributions     []figure
	DistributionsText string
}

// WriteHTML writes the study as one page that needs no other file and no script.
func (s *RunsAnalysis) WriteHTML(out io.Writer) error {
	d := pageData{Study: s}
	for i := range s.Analyses {
		d.Responses = append(d.Responses, s.responseData(i))
	}
	d.addResources()
	d.addRegressors()
	var text bytes.Buffer
	if err := page.Execute(&text, d); err != nil {
		return err
	}
	_, err := out.Write(bytes.Map(allowed, text.Bytes()))
	return err
}

// allowed replaces a character that XML does not allow, such as a byte that is no UTF-8.
func allowed(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r == '\ufffe' || r == '\uffff' {
		return '\ufffd'
	}
	return r
}

func (s *RunsAnalysis) responseData(i int) responseData {
	a := &s.Analyses[i]
	r := responseData{
		Analysis:      a,
		ID:            fmt.Sprintf("response-%d", i+1),
		Means:         meansFigures(a),
		Residuals:     residualFigures(a),
		Distributions: s.distributionFigures(a.Column),
	}
	if rest := len(s.Settings) - maxSettings; rest > 0 {
		r.DistributionsText = fmt.Sprintf("%d of %d settings are drawn.", maxSettings,
			len(s.Settings))
	}
	var absent []string
	r.Interactions, absent = interactionFigures(a)
	hasInteraction := false
	for _, t := range a.Terms {
		hasInteraction = hasInteraction || strings.Contains(t.Name, ":")
	}
	switch {
	case !hasInteraction:
		r.InteractionsText = "The model has no interactions."
	case len(r.Interactions)+len(absent) == 0:
		r.InteractionsText = "No interaction has a clear influence."
	case len(absent) > 0:
		r.InteractionsText = "Not drawn: " + strings.Join(absent, ", ") + "."
	}
	return r
}

// addResources adds the CPU utilisation and the IO-wait by setting.
func (d *pageData) addResources() {
	for _, part := range []struct {
		role      ColumnRole
		id, title string
	}{
		{Utilization, "cpu", "CPU utilisation"},
		{IOWait, "io-wait", "IO-wait"},
	} {
		column := Column(d.Study.Table, part.role)
		if column == "" {
			d.missing(part.title, part.role)
			continue
		}
		d.Resources = append(d.Resources, section{
			ID:      part.id,
			Title:   part.title + " by setting",
			Text:    "Column " + column + ", a point per run.",
			Figures: d.Study.distributionFigures(column),
		})
	}
	if d.Study.processes() == "" {
		d.missing("Processes against time", Processes)
	}
}

func (d *pageData) missing(what string, role ColumnRole) {
	d.Missing = append(d.Missing, fmt.Sprintf("%s: no run has a value in a column %s.", what,
		strings.ReplaceAll(string(role), " ", " or ")))
}

func (d *pageData) addRegressors() {
	c := d.Study.Regressors
	if c == nil {
		d.Missing = append(d.Missing, "comparison of regressors: there is none.")
		return
	}
	d.Best, d.Regressors = c.sentence(), c.tables()
}

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// joined returns a text in which a line never begins with a percent sign.
func joined(text string) string { return strings.ReplaceAll(text, " %", "\u00a0%") }
