package importer

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"courier/schemas"
)

// Summary is the result of an import, as courier import --output json prints it.
type Summary struct {
	ReadResult
	Published
	DryRun   bool          `json:"dry_run,omitempty"` // nothing was published
	Rejected int           `json:"refused"`           // runs
	Reasons  []ReasonCount `json:"reasons"`           // of refusals, the most frequent first
	Trained  []string      `json:"trained,omitempty"` // outcomes of the fits

	// UnknownBatchSize is the number of runs without a batch size.
	UnknownBatchSize int `json:"unknown_batch_size,omitempty"`
}

// ReasonCount is the number of runs refused for a reason.
type ReasonCount struct {
	Reason string `json:"reason"`
	Runs   int    `json:"runs"`
}

// NewSummary returns the summary of runs before any is published.
func NewSummary(found ReadResult) *Summary {
	s := &Summary{ReadResult: found, Rejected: len(found.Refused) - found.Unreadable, Reasons: []ReasonCount{}}
	for _, run := range found.Runs {
		if run.Setting.BatchSize == 0 {
			s.UnknownBatchSize++
		}
	}
	for _, f := range found.Refused {
		i := slices.IndexFunc(s.Reasons, func(r ReasonCount) bool { return r.Reason == f.Reason })
		if i < 0 {
			i, s.Reasons = len(s.Reasons), append(s.Reasons, ReasonCount{Reason: f.Reason})
		}
		s.Reasons[i].Runs++
	}
	slices.SortStableFunc(s.Reasons, func(a, b ReasonCount) int { return cmp.Compare(b.Runs, a.Runs) })
	return s
}

// runs returns a number of runs as text.
func runs(n int) string { return schemas.FormatCount(uint64(n), "run") }

// writeRefusals writes the refusals. Those of one file with the same field and reason are one line.
func (s *Summary) writeRefusals(out io.Writer) {
	type kind struct{ file, field, reason string }
	more := map[kind]int{}
	var first []*Refusal
	for _, f := range s.Refused {
		k := kind{f.File, f.Field, f.Reason}
		if _, seen := more[k]; !seen {
			first = append(first, f)
		}
		more[k]++
	}
	for i, f := range first {
		if i == shownRefusals {
			fmt.Fprintf(out, "… and %d other messages: --output json lists all\n", len(first)-i)
			return
		}
		text := f.Error()
		if n := more[kind{f.File, f.Field, f.Reason}] - 1; n > 0 {
			text += fmt.Sprintf(" (and %d more)", n)
		}
		fmt.Fprintln(out, text)
	}
}

// shownRefusals is the maximum number of refusals in text; JSON has all.
const shownRefusals = 20

// WriteText writes the summary for people, with a tab between names and texts.
func (s *Summary) WriteText(out io.Writer) {
	if len(s.Columns) > 0 {
		var pairs []string
		for _, field := range Fields() {
			if name := s.Columns[field]; name != "" {
				pairs = append(pairs, field+"="+name)
			}
		}
		fmt.Fprintf(out, "columns\t%s\n", strings.Join(pairs, ","))
	}
	if len(s.Unused) > 0 {
		fmt.Fprintf(out, "not used\t%s\n", strings.Join(s.Unused, ", "))
	}
	fmt.Fprintf(out, "read\t%s", runs(s.Read))
	if s.LeftOut > 0 {
		rows := schemas.FormatCount(uint64(s.LeftOut), "row")
		fmt.Fprintf(out, "; %s left out by --where", rows)
	}
	if s.LaidOut > 0 {
		fmt.Fprintf(out, "; %s without timestamps, scheduled sequentially", runs(s.LaidOut))
	}
	verb := "imported"
	if s.DryRun {
		verb = "would be imported"
	}
	refused := runs(s.Rejected)
	if s.Unreadable > 0 {
		refused += ", " + schemas.FormatCount(uint64(s.Unreadable), "source")
	}
	fmt.Fprintf(out, "\n%s\t%s, %s\nexisting\t%s\nrefused\t%s\n", verb, runs(s.Imported),
		schemas.FormatCount(uint64(s.Events), "event"), runs(s.Existing), refused)
	if s.UnknownBatchSize > 0 {
		fmt.Fprintf(out, "%s without a known batch size of all devices, from which nothing is learned about known"+
			" ones: name its column with --columns batch_size=NAME, or give --batch-size\n", runs(s.UnknownBatchSize))
	}
	s.writeRefusals(out)
	for _, line := range s.Trained {
		fmt.Fprintf(out, "%s\n", line)
	}
}
