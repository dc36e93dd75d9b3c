package report

import (
	"fmt"
	"html/template"
	"time"

	"courier/schemas"
)

var lifePage = template.Must(template.New("life").Funcs(template.FuncMap{
	"at":       func(t time.Time) string { return second(t) },
	"day":      func(t time.Time) string { return dash(!t.IsZero(), second(t)) },
	"error":    schemas.FormatError,
	"duration": schemas.FormatSeconds,
	"digest":   func(s string) string { return fmt.Sprintf("%.12s", s) },
	"figure":   func(v *float64) string { return Optional(v, "%.4g") },
	"share":    func(v *float64) string { return Optional(v, "%.3f") },
	"why":      reasonFor,
	"state":    stateText,
	"words":    judgementText,
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>History of the regressors</title>
<style>
` + pageStyle + `
.hollow{fill:var(--page);stroke:var(--blue);stroke-width:1.4}.promoted{fill:var(--blue)}.drift path{fill:none;stroke:var(--red);stroke-dasharray:3 3}.drift .head{fill:var(--red);stroke:none}
body{max-width:1240px}td.words{white-space:normal;text-align:left;min-width:26rem}.what{text-align:left}td.words,td.what{vertical-align:top}.wide table{font-size:.85rem}td,th{padding:.2rem .35rem}td{vertical-align:top}.drifted td{color:var(--red)}code{font-size:.9em}nav a{margin-right:1rem;color:var(--blue)}
</style></head><body>
<h1>History of the regressors</h1>
<p>From the event log at {{at .At}}, by courier {{.Version}}. Errors are medians on held-out configurations, or, for the family hierarchy, means on held-out runs. Comparisons use later jobs that neither regressor has learned from.</p>
{{if not .Lives}}<p>No regressor was fitted yet.</p>{{else}}<nav>{{range .Lives}}<a href="#{{.Target}}">{{.Target}}</a>{{end}}</nav>{{end}}
{{range $life := .Lives}}
<h2 id="{{.Target}}">{{.Target}}</h2>
<p>{{len .Versions}} fitted, {{.Judged}} compared, {{.Drifts}} drift alarms.
{{with .Champion}}The champion is version {{$life.Name .ModelDigest}}: {{.Family}} on {{.Examples}} examples of {{.Settings}} configurations, {{error .Target .Family .MedianAbsoluteRatio}}; {{state .}}, {{with .DecidedBy}}decided by {{.}}: {{end}}{{why .}}.{{else}}There is no champion.{{end}}</p>
{{with .Challenger}}<p>Version {{$life.Name .ModelDigest}} is the challenger: {{.Family}} on {{.Examples}} examples of {{.Settings}} configurations, {{error .Target .Family .MedianAbsoluteRatio}}, fitted because of {{.TrainedFor}}.</p>{{end}}
<div class="plots">{{range .Plots}}<figure>{{.}}</figure>{{end}}</div>
<p class="soft">Dashed red line: drift alarm. Triangle: promotion. Filled: current or former champion; hollow: other versions. Vertical bars: 95 % intervals.</p>
<h3>Versions</h3>
<div class="wide"><table><tr><th>version</th><th class="what">state</th><th class="what">family</th><th>examples</th><th>configurations</th><th>held-out error</th><th>fit</th><th>fitted</th><th>in use from</th><th>until</th></tr>
{{range .Versions}}<tr{{if eq .State "champion"}} class="chosen"{{end}}><td class="what">{{$life.Name .ModelDigest}}</td><td class="what">{{.State}}</td><td class="what">{{.Family}}</td><td>{{.Examples}}</td><td>{{.Settings}}</td><td>{{error .Target .Family .MedianAbsoluteRatio}}</td><td>{{duration .FitSeconds}}</td><td>{{at .TrainedAt}}</td><td>{{day .PromotedAt}}</td><td>{{if ne .State "champion"}}{{day .ReplacedAt}}{{end}}</td></tr>
{{end}}</table></div>
<h3>Events</h3>
<div class="wide"><table><tr><th>when</th><th class="what">what</th><th class="what">version</th><th>compared jobs</th><th>loss (of the other)</th><th>coverage (of the other)</th><th class="reason">reason</th></tr>
{{range .Moments}}<tr{{if eq .Kind "drift"}} class="drifted"{{end}}><td>{{at .At}}</td><td class="what">{{.Kind}}{{with .DecidedBy}}, by {{.}}{{end}}</td><td class="what">{{$life.Name .ModelDigest}}</td><td>{{with .JudgedJobs}}{{.}}{{end}}</td><td>{{if .Loss}}{{figure .Loss}} <span class="soft">({{figure .RivalLoss}})</span>{{end}}</td><td>{{if .CoverageRatio}}{{share .CoverageRatio}} <span class="soft">({{share .RivalCoverageRatio}})</span>{{end}}</td><td class="words">{{.Reason}}</td></tr>
{{end}}</table></div>
{{end}}
</body></html>
`))

func dash(known bool, text string) string {
	if known {
		return text
	}
	return "–"
}
