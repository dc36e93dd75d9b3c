package study_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"courier/report/study"
)

// studyRuns is a study of two models, one of which has a name that is markup.
func studyRuns() string {
	var b strings.Builder
	b.WriteString("replication,model,batch_size,cpus,jobs,total_seconds,accuracy\n")
	i := 0
	for replication := 1; replication <= 2; replication++ {
		for _, model := range []string{`"<script>alert(""1"")</script>"`, "a&b's"} {
			for _, batch := range []float64{32, 64, 128} {
				for _, cpus := range []float64{1, 2, 4} {
					for _, jobs := range []float64{1, 2} {
						i++
						noise := float64(i*7919%13) / 13
						seconds := 1000*jobs/batch/cpus + 20*noise + float64(len(model))
						fmt.Fprintf(&b, "%d,%s,%g,%g,%g,%.3f,%.4f\n", replication, model, batch, cpus,
							jobs, seconds, 0.99-batch/2000+noise/100)
					}
				}
			}
		}
	}
	return b.String()
}

// pageOf returns the report of a table.
func pageOf(t *testing.T, runs string, o study.Options) string {
	t.Helper()
	read, err := study.Read(strings.NewReader(runs))
	if err != nil {
		t.Fatal(err)
	}
	s, err := study.Analyse(t.Context(), read, o)
	if err != nil {
		t.Fatal(err)
	}
	s.Source = "runs.csv"
	var page bytes.Buffer
	if err := s.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	return page.String()
}

var svg = regexp.MustCompile(`(?s)<svg .*?</svg>`)

// checkDrawings checks that each SVG is well-formed XML, that all coordinates are finite numbers
// within the view box, and returns the drawings of charts.
func checkDrawings(t *testing.T, page string) []string {
	t.Helper()
	var charts []string
	for _, drawing := range svg.FindAllString(page, -1) {
		if err := checkDrawing(drawing); err != nil {
			t.Errorf("%v in %.300s", err, drawing)
		}
		if strings.Contains(drawing, `class="chart"`) {
			charts = append(charts, drawing)
		}
	}
	return charts
}

var coordinate = regexp.MustCompile(`[^MLHVZa\s]+`)

func checkDrawing(drawing string) error {
	d := xml.NewDecoder(strings.NewReader(drawing))
	width, height := 0.0, 0.0
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		element, isElement := token.(xml.StartElement)
		if !isElement {
			continue
		}
		for _, a := range element.Attr {
			switch a.Name.Local {
			case "viewBox":
				if _, err := fmt.Sscanf(a.Value, "0 0 %g %g", &width, &height); err != nil {
					return fmt.Errorf("view box %q: %w", a.Value, err)
				}
			case "d", "x", "y":
				for _, text := range coordinate.FindAllString(a.Value, -1) {
					v, err := strconv.ParseFloat(text, 64)
					if err != nil || math.IsNaN(v) || math.Abs(v) > max(width, height) {
						return fmt.Errorf("%s has the coordinate %q outside %g × %g", a.Name.Local,
							text, width, height)
					}
				}
			}
		}
	}
}

var figureTitle = regexp.MustCompile(`aria-label="(.*?)"`)

func TestWriteHTML_ShowsAllFactorsAndFigures(t *testing.T) {
	page := pageOf(t, studyRuns(), study.Options{})
	charts := checkDrawings(t, page)
	var titles []string
	for _, chart := range charts {
		title := figureTitle.FindStringSubmatch(chart)
		if title == nil {
			t.Fatalf("a chart has no title: %.200s", chart)
		}
		titles = append(titles, title[1])
	}
	var want []string
	for _, response := range []string{"total_seconds", "accuracy"} {
		want = append(want, "Residuals of "+response+" against fitted values",
			"Normal quantile plot of the residuals of "+response, "Mean of "+response+" by replication")
		for _, factor := range []string{"model", "batch_size", "cpus", "jobs"} {
			want = append(want, "Mean of "+response+" by "+factor)
		}
	}
	want = append(want, "Mean of total_seconds by batch_size, a line per cpus")
	for _, title := range want {
		if !slices.Contains(titles, title) {
			t.Errorf("there is no chart %q", title)
		}
	}
	if captions := strings.Count(page, "<figcaption>"); captions != len(charts) {
		t.Errorf("%d captions for %d charts", captions, len(charts))
	}
	for _, sentence := range []string{
		"batch_size influences accuracy most. It explains ", "influences total_seconds most.",
		"predicts the total_seconds of configurations that were never measured best",
		"<h3>Error on configurations with other runs</h3>", "<th scope=\"row\">random forest</th><td>72</td>",
		"Equal variances (Brown-Forsythe): model F ",
	} {
		if !strings.Contains(page, sentence) {
			t.Errorf("the page lacks %q", sentence)
		}
	}
}

// Names are texts everywhere, and the page loads nothing.
func TestWriteHTML_EscapesNames(t *testing.T) {
	page := pageOf(t, studyRuns(), study.Options{})
	for _, forbidden := range []string{
		"<script", "http:", "https:", "@import", "url(", "ZgotmplZ", "NaN",
	} {
		if strings.Contains(page, forbidden) {
			t.Errorf("the page contains %q", forbidden)
		}
	}
	if !strings.Contains(page, "&lt;script&gt;alert(&#34;1&#34;)&lt;/script&gt;") {
		t.Error("the name of the model is not on the page")
	}
}

// What a table lacks is said in a line and not drawn.
func TestWriteHTML_NamesWhatIsAbsent(t *testing.T) {
	page := pageOf(t, "batch,time\n1,5\n2,3\n1,6\n2,4\n1,5.5\n", study.Options{})
	for _, line := range []string{
		"Regressors are not compared: 5 runs have a time, want at least 10.",
		"The model has no interactions.",
	} {
		if !strings.Contains(page, line) {
			t.Errorf("the page lacks %q", line)
		}
	}
	charts := checkDrawings(t, page)
	if len(charts) != 3 {
		t.Errorf("%d charts, want 3: means, and 2 of residuals", len(charts))
	}
	if n := strings.Count(strings.Join(charts, ""), `class="dot s1"`); n != 5 {
		t.Errorf("%d points of runs beside the means, want 5", n)
	}
	if strings.Contains(page, `id="regressors"`) {
		t.Error("the page has a section without data")
	}
}

// A large study has a page of bounded size, which says how many runs are drawn.
func TestWriteHTML_BoundsTheDrawnRuns(t *testing.T) {
	var b strings.Builder
	b.WriteString("batch_size,cpus,total_seconds\n")
	for i := range 9000 {
		fmt.Fprintf(&b, "%d,%d,%d.5\n", 1+i%60, 1+i/60%2, 1+i*7919%101)
	}
	page := pageOf(t, b.String(), study.Options{NoRegressors: true})
	checkDrawings(t, page)
	if !strings.Contains(page, "2000 of 9000 runs are drawn.") {
		t.Error("the page does not say how many runs are drawn")
	}
	if len(page) > 2<<20 {
		t.Errorf("the page has %d bytes, want at most 2 MiB", len(page))
	}
}

// Covariates are lines, and their interactions have a line per level of the factor.
func TestWriteHTML_DrawsCovariates(t *testing.T) {
	page := pageOf(t, studyRuns(), study.Options{
		Responses:    []string{"total_seconds"},
		Factors:      []string{"model", "cpus"},
		Covariates:   []string{"batch_size"},
		Interactions: []string{"2"},
		NoRegressors: true,
	})
	checkDrawings(t, page)
	if !strings.Contains(page, "Mean of total_seconds by batch_size, a line per cpus") {
		t.Error("there is no chart of cpus:batch_size")
	}
}
