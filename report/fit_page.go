package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"courier/regress"
)

// threeDigits formats three significant digits with trailing zeros, and all digits before the
// point.
func threeDigits(x float64) string {
	if math.Abs(x) >= 1000 && math.Abs(x) < 1e9 {
		return fmt.Sprintf("%.0f", x)
	}
	return strings.TrimSuffix(fmt.Sprintf("%#.3g", x), ".")
}

// levelTable has the errors at held-out levels: a line per level, a column per method.
type levelTable struct {
	Methods []string
	Lines   []levelLine
}

type levelLine struct {
	regress.LevelCheck                       // result of the first method
	Cells              []*regress.LevelCheck // nil where a method could not be fitted
}

func levelsOf(checks []regress.LevelCheck) levelTable {
	var t levelTable
	for _, c := range checks {
		k := slices.Index(t.Methods, c.Method)
		if k < 0 {
			k, t.Methods = len(t.Methods), append(t.Methods, c.Method)
		}
		line := slices.IndexFunc(t.Lines, func(l levelLine) bool {
			return l.Feature == c.Feature && l.Level == c.Level
		})
		if line < 0 {
			line, t.Lines = len(t.Lines), append(t.Lines, levelLine{LevelCheck: c})
		}
		for len(t.Lines[line].Cells) < k {
			t.Lines[line].Cells = append(t.Lines[line].Cells, nil)
		}
		t.Lines[line].Cells = append(t.Lines[line].Cells, &c)
	}
	for i := range t.Lines {
		for len(t.Lines[i].Cells) < len(t.Methods) {
			t.Lines[i].Cells = append(t.Lines[i].Cells, nil)
		}
	}
	return t
}

// pageStyle is the style sheet of all pages that the program writes.
const pageStyle = `:root{color-scheme:light dark;--ink:#1b1f24;--faint:#d6dae0;--soft:#5b6570;--blue:#1f5fa8;--red:#b3261e;--page:#fff}
@media (prefers-color-scheme:dark){:root{--ink:#e6e9ed;--faint:#3a4149;--soft:#9aa4ae;--blue:#7fb2ec;--red:#ff8a80;--page:#15181c}}
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--page);max-width:1080px;margin:2rem auto;padding:0 1rem}
h1{font-size:1.5rem}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:right;vertical-align:bottom;padding:.2rem .5rem;border-bottom:1px solid var(--faint)}th:first-child,td:first-child,.reason{text-align:left}
td{white-space:nowrap}.first td{border-top:2px solid var(--soft)}.wide{overflow-x:auto}.chosen{font-weight:600}.soft{color:var(--soft)}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(320px,1fr));gap:1rem}figure{margin:0}svg{width:100%;height:auto}
svg text{fill:var(--ink);font-size:11px}svg .title{font-size:13px;font-weight:600}svg .tick{fill:var(--soft)}
.axis{fill:none;stroke:var(--soft)}.grid{stroke:var(--faint)}.dot{fill:var(--blue);fill-opacity:.75}.bar{fill:var(--blue)}
.even,.bound,.missed,.curve,.level{fill:none;stroke-width:1.2}.even{stroke:var(--soft);stroke-dasharray:4 3}.bound{stroke:var(--blue);stroke-opacity:.6;stroke-width:1.6}.missed{stroke:var(--red);stroke-width:2}.level{stroke:var(--blue);stroke-width:2}.curve{stroke:var(--blue);stroke-width:2}
`

var reportPage = template.Must(template.New("report").Funcs(template.FuncMap{
	"three":    threeDigits,
	"four":     func(x float64) string { return known("%.4f", x) },
	"share":    func(x float64) string { return known("%.3f", x) },
	"percent":  func(x float64) string { return known("%.1f %%", 100*x) },
	"mses":     mseRange,
	"mapes":    mapeRange,
	"shuffles": shufflesText,
	"reason":   reasonOf,
	"feature":  featureText,
	"unit":     inUnit,
	"shape":    transformText,
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>Regressor of {{.Target}}</title>
<style>
` + pageStyle + `</style></head><body>
<h1>Regressor of {{.Target}}{{unit .Unit}}</h1>
<p>Selected: <b>{{.Winner}}</b>, {{shape .Transform}}, from {{.Examples}} examples of {{.Settings}} configurations{{with .Version}}, by courier {{.}}{{end}}.{{if .Constant}} All examples had the same {{.Target}}: there was nothing to learn.{{end}}</p>
{{if not .Constant}}{{with .Why}}<p>{{.}}</p>{{end}}{{with .Beware}}<p><b>{{.}}</b></p>{{end}}{{end}}
<ul>{{range .Features}}<li>{{feature .}}</li>{{end}}
{{if .Empty}}<li>{{.Empty}} rows without {{.Target}} were skipped</li>{{end}}{{range .Dropped}}<li>{{.Count}} examples were dropped: {{.Reason}}</li>{{end}}</ul>
<h2>Families</h2>
<p>Measured on held-out configurations: {{.Folds}} folds, {{shuffles .Shuffles}}, sorted by the pinball loss of the bound at {{.Confidence}}. The figures of the best are slightly optimistic, because it was selected by them. The last lines are simple rules, which are never served.</p>
<div class="wide"><table><tr><th>method</th><th>pinball</th><th>MSE</th><th>R2</th><th>MAPE</th><th>under bound</th><th>bound / prediction</th></tr>
{{range .Candidates}}<tr{{if eq .Name $.Winner}} class="chosen"{{end}}>{{template "judged" .}}</tr>
{{end}}{{range $i, $b := .Baselines}}<tr{{if not $i}} class="first"{{end}}>{{template "judged" $b}}</tr>
{{end}}</table></div>
<h2>How it predicts</h2>
<div class="plots">{{range .Plots}}<figure>{{.}}</figure>{{end}}</div>
{{with .Without}}{{if .Lines}}<h2>Interpolation and extrapolation</h2>
<p>Mean absolute error at held-out levels, and coverage of the bound, which is wider for extrapolation.</p>
<div class="wide"><table><tr><th>level</th><th></th><th>examples</th>{{range .Methods}}<th>{{.}}</th>{{end}}</tr>
{{range .Lines}}<tr><td>{{.Feature}} {{.Level}}</td><td>{{if .Between}}interpolation{{else}}extrapolation{{end}}</td><td>{{.Count}}</td>{{range .Cells}}<td>{{with .}}{{if ge .MAPE 0.0}}{{percent .MAPE}}{{end}}{{if ge .Covered 0.0}} <span class="soft">{{share .Covered}}</span>{{end}}{{end}}</td>{{end}}</tr>
{{end}}</table></div>{{end}}{{end}}
</body></html>
{{define "judged"}}<td>{{.Name}}</td>{{if .Error}}<td colspan="6" class="reason soft">{{reason .}}</td>{{else}}<td>{{three .Pinball.Value}}</td><td>{{three .MSE.Value}} <span class="soft">{{mses .MSE}}</span></td><td>{{four .R2.Value}}</td><td>{{percent .MAPE.Value}} <span class="soft">{{mapes .MAPE}}</span></td><td>{{share .Coverage.Value}}</td><td>{{share .Width.Value}}</td>{{end}}{{end}}
`))
