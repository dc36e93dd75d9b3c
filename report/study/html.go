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
	Regressors []scoreTable
}

type responseData struct {
	*Analysis
	ID               string
	Means            []figure
	Interactions     []figure
	InteractionsText string
	Residuals        []figure
}

// WriteHTML writes the study as one page that needs no other file and no script.
func (s *RunsAnalysis) WriteHTML(out io.Writer) error {
	d := pageData{Study: s}
	for i := range s.Analyses {
		d.Responses = append(d.Responses, s.responseData(i))
	}
	if c := s.Regressors; c != nil {
		d.Best, d.Regressors = c.sentence(), c.tables()
	}
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
		Analysis:  a,
		ID:        fmt.Sprintf("response-%d", i+1),
		Means:     meansFigures(a),
		Residuals: residualFigures(a),
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

func capital(text string) string {
	if text == "" {
		return ""
	}
	return strings.ToUpper(text[:1]) + text[1:]
}

// joined returns a text in which a line never begins with a percent sign.
func joined(text string) string { return strings.ReplaceAll(text, " %", "\u00a0%") }
