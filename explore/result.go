package explore

import (
	"fmt"
	"io"
	"slices"
	"time"

	"courier/schemas"
)

// Findings is what a study shows.
type Findings struct {
	Reason  string   `json:"reason"` // why the study ended
	Runs    int      `json:"runs"`   // measured
	Design  int      `json:"design"` // runs of the whole design
	Cells   []Row    `json:"cells"`  // measured and predicted cells
	Advice  []Answer `json:"advice"` // for each SLO and number of concurrent jobs
	Missing int      `json:"incomplete_runs"`
	Failed  int      `json:"failed_combinations"` // left out; the same command runs them again
}

// Row is a cell with its predictions. Nil figures are unknown.
type Row struct {
	Cell
	Runs         int      `json:"runs"` // measured
	Seconds      *float64 `json:"predicted_seconds,omitempty"`
	BoundSeconds *float64 `json:"upper_bound_seconds,omitempty"` // at the confidence
	Accuracy     *float64 `json:"predicted_accuracy,omitempty"`
	Support      string   `json:"support"` // as in the evidence of an advice, or StatusFailed
}

// Answer is the advice for one SLO.
type Answer struct {
	SLOSeconds  float64 `json:"slo_seconds"`
	Jobs        int     `json:"jobs"`
	Chosen      Row     `json:"chosen"`
	Probability float64 `json:"probability"` // of meeting the SLO and the target accuracy
	IsPromised  bool    `json:"promised"`
}

// result returns the advice of the runs so far.
func (s *Study) result(f *fitted, reason string) *Findings {
	r := &Findings{Reason: reason, Runs: len(s.records), Cells: []Row{}, Advice: []Answer{}}
	r.Failed = len(s.failed)
	for _, b := range s.blocks {
		r.Design += b.Jobs
	}
	for i := range s.records {
		if s.records[i].Status == StatusIncomplete {
			r.Missing++
		}
	}
	for _, c := range s.o.Factors.Cells() {
		p := f.cell(c)
		row := f.row(&p)
		if s.onlyFailed(f, c) {
			row.Support = StatusFailed
			row.Seconds, row.BoundSeconds, row.Accuracy = nil, nil, nil
		}
		r.Cells = append(r.Cells, row)
	}
	for _, cells := range s.o.conditions() {
		working := slices.DeleteFunc(slices.Clone(cells), func(c Cell) bool { return s.onlyFailed(f, c) })
		if len(working) > 0 {
			cells = working
		}
		for _, slo := range s.o.SLOs {
			p, isPromised := f.choose(cells, slo)
			r.Advice = append(r.Advice, Answer{
				SLOSeconds:  slo.Seconds(),
				Jobs:        cells[0].Jobs,
				Chosen:      f.row(&p),
				Probability: f.meets(&p, slo),
				IsPromised:  isPromised,
			})
		}
	}
	return r
}

// onlyFailed reports whether a combination has failed and no run of it has succeeded.
func (s *Study) onlyFailed(f *fitted, c Cell) bool { return s.failed[c] && f.runs[c] == 0 }

func (f *fitted) row(p *cellPrediction) Row {
	r := Row{Cell: p.Cell, Runs: p.runs, Support: p.time.Support.String()}
	if p.time.Known() {
		median, bound := p.time.Median(), p.time.Quantile(f.o.Confidence)
		r.Seconds, r.BoundSeconds = &median, &bound
	}
	if p.accuracy.Known {
		r.Accuracy = &p.accuracy.Mean
	}
	return r
}

// WriteText writes the result as two tables.
func (r *Findings) WriteText(w io.Writer) {
	fmt.Fprintf(w, "%d of %s measured: %s\n", r.Runs,
		schemas.FormatCount(uint64(r.Design), "run"), r.Reason)
	if r.Missing > 0 {
		fmt.Fprintf(w, "%s incomplete: fewer epochs than asked for, or none recognized\n",
			schemas.FormatCount(uint64(r.Missing), "run"))
	}
	if r.Failed > 0 {
		fmt.Fprintf(w, "%s failed and left out: the same command runs them again\n",
			schemas.FormatCount(uint64(r.Failed), "combination"))
	}
	fmt.Fprintln(w, "\nbatch\tcpus\tjobs\truns\ttime\tbound\taccuracy\tevidence\t")
	for i := range r.Cells {
		c := &r.Cells[i]
		fmt.Fprintf(w, "%d\t%s\t%d\t%d\t%s\t%s\t%s\t%s\t\n", c.BatchSize, c.shape(), c.Jobs, c.Runs,
			schemas.OptionalSeconds(c.Seconds), schemas.OptionalSeconds(c.BoundSeconds),
			schemas.OptionalNumber(c.Accuracy, "%.4f"), c.Support)
	}
	if len(r.Advice) > 0 {
		fmt.Fprintln(w, "\nSLO\tjobs\tbatch\tcpus\ttime\tbound\taccuracy\tprobability\tpromise\t")
	}
	for i := range r.Advice {
		a := &r.Advice[i]
		promise := map[bool]string{true: "yes", false: "no"}[a.IsPromised]
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t\n",
			time.Duration(a.SLOSeconds*float64(time.Second)), a.Jobs, a.Chosen.BatchSize,
			a.Chosen.shape(), schemas.OptionalSeconds(a.Chosen.Seconds), schemas.OptionalSeconds(a.Chosen.BoundSeconds),
			schemas.OptionalNumber(a.Chosen.Accuracy, "%.4f"), schemas.FormatProbability(a.Probability), promise)
	}
}
