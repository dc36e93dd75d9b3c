package tune

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"courier/runner"
	"courier/schemas"
)

// Ranking is the result of a tuning.
type Ranking struct {
	Reason      string        `json:"reason"` // why it ended
	Complete    bool          `json:"complete"`
	StagesDone  int           `json:"stages_done"`
	Objective   string        `json:"objective,omitempty"` // accuracy or loss; empty: neither was reported
	Seconds     float64       `json:"seconds"`             // without interruptions
	CoreSeconds float64       `json:"core_seconds"`
	Best        []string      `json:"best_command,omitempty"` // see bestCommand
	Environment []string      `json:"best_environment,omitempty"`
	Trials      []RankedTrial `json:"trials"` // the best first
	Stages      []StageRow    `json:"stages"`
	ProbeCost   float64       `json:"probe_core_seconds"` // of repeated epochs that measured a time

	parameters  []string // names, in the order of the command line
	epochs      int      // of a complete trial
	checkpoints string   // directory of the best trial; empty: the command has no {dir}
}

// RankedTrial is a trial of a ranking.
type RankedTrial struct {
	Rank        int               `json:"rank"` // from 1; 0: without the figure that ranks
	Trial       int               `json:"trial"`
	Parameters  map[string]string `json:"parameters"`
	Stage       int               `json:"stage"`        // completed stages
	Epochs      int               `json:"epochs"`       // last epoch
	SpentEpochs int               `json:"spent_epochs"` // with repeated ones
	Loss        *float64          `json:"loss,omitempty"`
	Accuracy    *float64          `json:"accuracy,omitempty"`
	Seconds     float64           `json:"seconds"` // of its command
	CoreSeconds float64           `json:"core_seconds"`
	Reason      string            `json:"reason,omitempty"` // why it is out
}

// StageRow compares the plan of a stage with what was measured. Figures that are not known are 0.
type StageRow struct {
	Stage                int     `json:"stage"`  // from 1
	Epochs               int     `json:"epochs"` // that its trials have reached at its end
	CPUs                 int     `json:"cpus"`   // of each trial
	PlannedTrials        int     `json:"planned_trials"`
	Trials               int     `json:"trials"`
	PredictedSeconds     float64 `json:"predicted_seconds"`
	Seconds              float64 `json:"seconds"`
	PredictedCoreSeconds float64 `json:"predicted_core_seconds"`
	CoreSeconds          float64 `json:"core_seconds"`
}

// result returns the ranking of the trials so far, with why the tuning ended.
func (t *Tuning) result(reason string, isComplete bool) *Ranking {
	s := t.state
	r := &Ranking{
		Reason:      reason,
		Complete:    isComplete,
		Objective:   s.objective,
		Seconds:     s.elapsed,
		CoreSeconds: s.spent,
		Trials:      t.ranked(),
		ProbeCost:   s.probed,
		epochs:      t.o.Epochs,
	}
	for _, p := range t.o.Space {
		r.parameters = append(r.parameters, p.Name)
	}
	if b := s.best(); b != nil {
		r.Best, r.Environment = t.bestCommand(b)
		if runner.HasPlaceholder(t.o.Command, dirPlaceholder) {
			r.checkpoints = trialDir(t.dir, &Segment{Trial: b.Trial})
		}
	}
	for i := range s.rows {
		row := s.rows[i].StageRow
		row.CPUs = cmp.Or(row.CPUs, t.cpus[i])
		r.Stages = append(r.Stages, row)
	}
	for i, n := range s.expectedTrials() {
		if s.finishedTrials(i) >= n {
			r.StagesDone++
		}
	}
	return r
}

// bestDir is the directory for the checkpoints of the printed command.
func (t *Tuning) bestDir() string { return filepath.Join(t.dir, "best") }

// bestCommand returns the command that trains with the parameters of a trial, from the beginning and
// for all epochs, with the environment variable that replaces a missing {epochs}.
func (t *Tuning) bestCommand(b *trialState) (command, environment []string) {
	g := Segment{Trial: b.Trial, CPUs: b.cpus, Epochs: t.o.Epochs}
	command = t.o.filled(t.o.Command, &g, t.bestDir(), b.values)
	command = runner.FillPlaceholders(command,
		epochsPlaceholder, strconv.Itoa(g.Epochs), cpusPlaceholder, strconv.Itoa(g.CPUs))
	if !runner.HasPlaceholder(t.o.Command, epochsPlaceholder) {
		environment = append(environment, "COURIER_EPOCHS="+strconv.Itoa(g.Epochs))
	}
	return command, environment
}

// ranked returns the trials that have started, the best first. Those that are out come last.
func (t *Tuning) ranked() []RankedTrial {
	s := t.state
	rows := []RankedTrial{}
	for i := range s.trials {
		if s.trials[i].entered > 0 {
			rows = append(rows, s.trials[i].RankedTrial)
		}
	}
	isOut := func(r *RankedTrial) int {
		if r.Reason != "" || s.figure(r) == nil {
			return 1
		}
		return 0
	}
	slices.SortFunc(rows, func(a, b RankedTrial) int {
		return cmp.Or(isOut(&a)-isOut(&b), s.compareTrials(&a, &b))
	})
	for i := range rows {
		if isOut(&rows[i]) == 0 {
			rows[i].Rank = i + 1
		}
	}
	return rows
}

// WriteCSV writes the trials as CSV.
func (r *Ranking) WriteCSV(out io.Writer) error {
	w := csv.NewWriter(out)
	head := append([]string{"rank", "trial"}, r.parameters...)
	_ = w.Write(append(head, "stage", "epochs", "spent_epochs", "loss", "accuracy", "seconds", "core_seconds",
		"reason")) // an error stays until Flush
	for i := range r.Trials {
		_ = w.Write(r.Trials[i].fields(r.parameters, "", func(v float64) string {
			return strconv.FormatFloat(v, 'f', 3, 64)
		}))
	}
	w.Flush()
	return w.Error()
}

// fields returns the columns of a trial, with a text for unknown figures.
func (t *RankedTrial) fields(parameters []string, unknown string, seconds func(float64) string) []string {
	rank := unknown
	if t.Rank > 0 {
		rank = strconv.Itoa(t.Rank)
	}
	fields := []string{rank, strconv.Itoa(t.Trial)}
	for _, name := range parameters {
		fields = append(fields, t.Parameters[name])
	}
	fields = append(fields, strconv.Itoa(t.Stage), strconv.Itoa(t.Epochs), strconv.Itoa(t.SpentEpochs))
	for _, v := range []*float64{t.Loss, t.Accuracy} {
		if v == nil {
			fields = append(fields, unknown)
		} else {
			fields = append(fields, formatFigure(v))
		}
	}
	return append(fields, seconds(t.Seconds), seconds(t.CoreSeconds), t.Reason)
}

// WriteText writes the ranking and the plan as tables.
func (r *Ranking) WriteText(out io.Writer) {
	fmt.Fprintf(out, "%s after %s and %s", schemas.FormatCount(uint64(len(r.Trials)), "trial"),
		schemas.FormatRunning(r.Seconds), formatCoreHours(r.CoreSeconds))
	if !r.Complete {
		fmt.Fprintf(out, ", %d of %s done", r.StagesDone,
			schemas.FormatCount(uint64(len(r.Stages)), "stage"))
	}
	fmt.Fprintf(out, ": %s\n\n", r.Reason)
	fmt.Fprintf(out, "rank\ttrial\t%s\tstages\tepochs\tspent\tloss\taccuracy\tseconds\tcore-seconds\t\n",
		strings.Join(r.parameters, "\t"))
	for i := range r.Trials {
		fields := r.Trials[i].fields(r.parameters, "-", func(v float64) string {
			return strconv.FormatFloat(v, 'f', 1, 64)
		})
		fmt.Fprintln(out, strings.TrimRight(strings.Join(fields, "\t"), "\t")+"\t")
	}
	r.writeStages(out)
}

// writeStages writes the plan against what was measured.
func (r *Ranking) writeStages(out io.Writer) {
	fmt.Fprintln(out, "\nstage\tepochs\tCPUs\ttrials\tplanned\tseconds\tpredicted\tcore-seconds\tpredicted\t")
	for _, s := range r.Stages {
		fmt.Fprintf(out, "%d\t%d\t%d\t%d\t%d\t%.1f\t%s\t%.1f\t%s\t\n", s.Stage, s.Epochs, s.CPUs, s.Trials,
			s.PlannedTrials, s.Seconds, predicted(s.PredictedSeconds), s.CoreSeconds,
			predicted(s.PredictedCoreSeconds))
	}
	if r.ProbeCost > 0 {
		fmt.Fprintf(out, "%.1f core-seconds measured the time of an epoch by CPUs; their time is part of a stage\n",
			r.ProbeCost)
	}
	r.writeBest(out)
}

// writeBest writes the command with the parameters of the best trial, for a shell.
func (r *Ranking) writeBest(out io.Writer) {
	if len(r.Best) == 0 {
		return
	}
	label := "best"
	if !r.Complete {
		label = fmt.Sprintf("best so far, after %d of %s", r.Trials[0].Epochs,
			schemas.FormatCount(uint64(r.epochs), "epoch"))
	}
	var words []string
	for _, variable := range r.Environment {
		name, value, _ := strings.Cut(variable, "=")
		words = append(words, name+"="+shellWord(value))
	}
	for _, argument := range r.Best {
		words = append(words, shellWord(argument))
	}
	fmt.Fprintf(out, "%s: %s\n", label, strings.Join(words, " "))
	if r.checkpoints != "" {
		fmt.Fprintf(out, "its checkpoints: %s\n", shellWord(r.checkpoints))
	}
}

// plainWord matches a word that a shell does not change.
var plainWord = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// shellWord quotes a word for a shell if it needs quotes.
func shellWord(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func predicted(v float64) string {
	if v == 0 {
		return "-"
	}
	return strconv.FormatFloat(v, 'f', 1, 64)
}
