package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"courier/regress"
)

// regressorPaper prints the study's tables (DOI 10.1145/3427921.3450233) beside
// what its recovered runs give.
type regressorPaper struct {
	Data       string `help:"Directory with measured_runs.csv and paper_tables.csv." type:"path" default:"../shared/data/courier-paper" placeholder:"DIR"`
	Shuffles   int    `help:"How often the settings are dealt into folds." default:"20"`
	Threads    int    `help:"Most processors to use; 0: all but one." default:"0"`
	NoProgress bool   `help:"No progress bar."`
}

func (c *regressorPaper) Run(w *world) error {
	s, err := readStudy(c.Data)
	if err != nil {
		return err
	}
	if c.Shuffles < 1 || c.Shuffles > 1000 {
		return fmt.Errorf("shuffles is %d, want 1 to 1000", c.Shuffles)
	}
	p := &paperReport{study: s, out: w.stdout, w: w, shuffles: c.Shuffles, threads: c.Threads, bar: newBar(w.stderr, 1)}
	p.terminal = p.terminal && !c.NoProgress
	return p.print()
}

// study is the recovered data and what was published.
type study struct {
	runs      *exampleTable // the full factorial, all replications
	published map[string]string
}

func readStudy(dir string) (*study, error) {
	read := func(name string) (*exampleTable, error) {
		file, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			return nil, fmt.Errorf("the study's data: %w", err)
		}
		defer file.Close() // only read
		t, err := readExamples(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return t, nil
	}
	runs, err := read("measured_runs.csv")
	if err != nil {
		return nil, err
	}
	if err := runs.where(map[string]string{"campaign": "fullfact"}); err != nil {
		return nil, err
	}
	tables, err := read("paper_tables.csv")
	if err != nil {
		return nil, err
	}
	s := &study{runs: runs, published: map[string]string{}}
	for _, row := range tables.rows {
		if len(row) >= 4 {
			s.published[strings.Join(row[:3], "/")] = row[3]
		}
	}
	return s, nil
}

// figure is a number as it was published, - where there is none.
func (s *study) figure(table int, row, column string) string {
	if v := s.published[fmt.Sprintf("%d/%s/%s", table, row, column)]; v != "" {
		return v
	}
	return "-"
}

// times are the 77 usable runs of 72 settings.
func (s *study) times() (*regress.Dataset, error) { return s.dataset("time_s", "time_suspect") }

// accuracies are the runs with an accuracy of their own.
func (s *study) accuracies() (*regress.Dataset, error) { return s.dataset("final_accuracy", "") }

func (s *study) dataset(target, suspect string) (*regress.Dataset, error) {
	t := &exampleTable{header: s.runs.header, rows: slices.Clone(s.runs.rows)}
	at, err := t.column(target)
	if err != nil {
		return nil, err
	}
	t.rows = slices.DeleteFunc(t.rows, func(row []string) bool { return strings.TrimSpace(row[at]) == "" })
	if suspect != "" {
		if err := t.where(map[string]string{suspect: "0"}); err != nil {
			return nil, err
		}
	}
	f := &fittedRegressor{}
	c := regressorFit{Target: target, Features: []string{"batch", "cpu", "njobs", "network", "processes"}, Transform: "auto"}
	if target == "time_s" {
		c.Unit = "s"
	}
	if err := c.dataset(t, f); err != nil {
		return nil, fmt.Errorf("measured_runs.csv: %w", err)
	}
	return f.data, nil
}

// paperReport prints table after table.
type paperReport struct {
	*study
	out      io.Writer
	w        *world
	shuffles int
	threads  int
	*bar
	time, accuracy *regress.Dataset
}

func (p *paperReport) print() error {
	var err error
	if p.time, err = p.times(); err != nil {
		return err
	}
	if p.accuracy, err = p.accuracies(); err != nil {
		return err
	}
	p.say(`The tables of "Courier: Real-Time Optimal Batch Size Prediction for Latency SLOs in BigDL" (ICPE 2021), and what the runs
recovered from the study's notebooks give: %d times of %d settings and %d accuracies of the 288 runs of 96 settings.
Its raw runs are not public. Every figure under "recovered" is computed now; "published" is read from paper_tables.csv.`,
		p.time.Len(), settingsOf(p.time), p.accuracy.Len())
	for _, table := range []func() error{p.anova, p.linear, p.queueing, p.grid, p.forests, p.chosen, p.decisions} {
		if err := p.w.ctx.Err(); err != nil {
			return err
		}
		if err := table(); err != nil {
			return err
		}
	}
	return nil
}

// settingsOf counts the different rows of features.
func settingsOf(d *regress.Dataset) int {
	seen := make(map[string]struct{})
	for i := range d.Len() {
		seen[fmt.Sprint(d.Row(i, nil))] = struct{}{}
	}
	return len(seen)
}

func (p *paperReport) say(format string, values ...any) { fmt.Fprintf(p.out, format+"\n", values...) }

func (p *paperReport) title(format string, values ...any) {
	p.say("\n"+format, values...)
	p.say(strings.Repeat("-", 100))
}

// progress draws the bar of a longer step.
func (p *paperReport) progress(what string) (tell func(done, planned int), end func()) {
	last := -1
	return func(done, planned int) {
			if percent := 100 * done / planned; p.terminal && percent != last {
				last, p.total = percent, planned
				p.draw(done, what)
			}
		}, func() {
			if p.terminal {
				p.end()
			}
		}
}
