package importer

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
)

// Summary is the result of an import, as courier import --output json prints it.
type Summary struct {
	DryRun   bool              `json:"dry_run,omitempty"` // nothing was published
	Read     int               `json:"read"`              // runs in the sources
	Imported int               `json:"imported"`          // runs with new events
	Events   int               `json:"events"`            // new events
	Existing int               `json:"already_there"`     // runs that the log had already
	Refused  int               `json:"refused"`
	LeftOut  int               `json:"left_out,omitempty"` // rows excluded by --where
	LaidOut  int               `json:"laid_out,omitempty"` // runs scheduled from --since
	Columns  map[string]string `json:"columns,omitempty"`  // column of each field
	Reasons  []ReasonCount     `json:"reasons"`            // of refusals, the most frequent first
	Refusals []*Refusal        `json:"refusals"`           // all
	Trained  []string          `json:"trained,omitempty"`  // outcomes of the fits
}

// ReasonCount is the number of runs refused for a reason.
type ReasonCount struct {
	Reason string `json:"reason"`
	Runs   int    `json:"runs"`
}

// NewSummary returns the summary of runs before any is published.
func NewSummary(found *ReadResult) *Summary {
	s := &Summary{
		Read:     found.Read,
		Refused:  len(found.Refused),
		LeftOut:  found.LeftOut,
		LaidOut:  found.LaidOut,
		Columns:  found.Columns,
		Reasons:  []ReasonCount{},
		Refusals: append([]*Refusal{}, found.Refused...),
	}
	for _, f := range found.Refused {
		i := slices.IndexFunc(s.Reasons, func(r ReasonCount) bool { return r.Reason == f.Reason })
		if i < 0 {
			i, s.Reasons = len(s.Reasons), append(s.Reasons, ReasonCount{Reason: f.Reason})
		}
		s.Reasons[i].Runs++
	}
	slices.SortStableFunc(s.Reasons, func(a, b ReasonCount) int {
		return cmp.Compare(b.Runs, a.Runs)
	})
	return s
}

// Count sets the numbers of imported and existing runs.
func (s *Summary) Count(p *Publisher) {
	s.Imported, s.Existing, s.Events = p.Imported, p.Existing, p.Events
}

// shownRefusals is the maximum number of refusals in text; JSON has all.
const shownRefusals = 20

// WriteText writes the summary for people.
func (s *Summary) WriteText(out io.Writer) error {
	if len(s.Columns) > 0 {
		var pairs []string
		for _, field := range Fields() {
			if name := s.Columns[field]; name != "" {
				pairs = append(pairs, field+"="+name)
			}
		}
		fmt.Fprintf(out, "columns   %s\n", strings.Join(pairs, ","))
	}
	fmt.Fprintf(out, "read      %d runs", s.Read)
	if s.LeftOut > 0 {
		fmt.Fprintf(out, "; %d rows left out by --where", s.LeftOut)
	}
	if s.LaidOut > 0 {
		fmt.Fprintf(out, "; %d runs without timestamps, scheduled sequentially", s.LaidOut)
	}
	verb := "imported"
	if s.DryRun {
		verb = "would be imported"
	}
	fmt.Fprintf(out, "\n%s  %d runs, %d events\nexisting  %d runs\nrefused   %d runs\n", verb,
		s.Imported, s.Events, s.Existing, s.Refused)
	for _, r := range s.Reasons {
		fmt.Fprintf(out, "%8d  %s\n", r.Runs, r.Reason)
	}
	for i, f := range s.Refusals {
		if i == shownRefusals {
			fmt.Fprintf(out, "… and %d more: --output json lists all\n", len(s.Refusals)-i)
			break
		}
		fmt.Fprintln(out, f)
	}
	for _, line := range s.Trained {
		if _, err := fmt.Fprintf(out, "%s\n", line); err != nil {
			return err
		}
	}
	return nil
}
