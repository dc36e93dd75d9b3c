package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"courier/schemas"
)

// replayCommand plays a recorded log through the fold and the decisions of the
// advisor: to see that it comes to the same numbers, and what others had come to.
type replayCommand struct {
	natsFlags
	outputFlags
	Data       string   `help:"Data directory of a courier all whose log is replayed, running or not." type:"path" placeholder:"DIR" xor:"source"`
	Log        string   `help:"Saved log to replay, JSON lines; - is standard input." placeholder:"FILE" xor:"source"`
	Save       string   `help:"Write the log with its regressors as JSON lines, and do nothing else; - is standard output." placeholder:"FILE"`
	Rules      []string `help:"Who answers anew: ${past_rules}; none: only verify." default:"${past_rules}"`
	Regressor  []string `help:"Let the rules answer with this regressor, too: a directory of courier regressor fit, or a digest of the log (6 digits or more)." placeholder:"DIR"`
	Confidence float64  `help:"Let the rules answer as if every job had asked for this confidence, too, between 0 and 1." placeholder:"RATIO"`
	Promise    string   `help:"Let the rules answer as if every job's confidence had been of this, too: each promise, or the mean of all." enum:",each,mean" default:""`
}

// replayed is what courier replay --output json prints.
type replayed struct {
	Events       int           `json:"events"`
	FirstOfJobs  uint64        `json:"first_sequence"` // of JOB; more than 1: its beginning was dropped
	Verification *verification `json:"verification"`
	Referee      string        `json:"referee,omitempty"` // what predicts that was not measured
	Rules        []replayScore `json:"rules,omitempty"`
}

func (c *replayCommand) Run(w *world) error {
	if err := c.check(); err != nil {
		return err
	}
	l, err := c.read(w)
	if err != nil {
		return err
	}
	if c.Save != "" {
		if err := writeOut(w, c.Save, l.write); err != nil {
			return err
		}
		_, err = fmt.Fprintf(w.stderr, "written: %d events and %d files of regressors\n", len(l.records), len(l.artifacts))
		return err
	}
	r, err := c.replay(w, l)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		e := json.NewEncoder(w.stdout)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	return r.print(w.stdout)
}

func (c *replayCommand) check() error {
	if c.Confidence < 0 || c.Confidence >= 1 {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", c.Confidence)
	}
	if slices.Equal(c.Rules, []string{"none"}) {
		c.Rules = nil
	}
	for i, name := range c.Rules {
		if !slices.Contains(replayRules, name) {
			return fmt.Errorf("rule %q is not one of %s", name, strings.Join(replayRules, ", "))
		}
		if slices.Contains(c.Rules[:i], name) {
			return fmt.Errorf("rule %q is given twice", name)
		}
	}
	return nil
}

func (c *replayCommand) read(w *world) (*replayLog, error) {
	switch {
	case c.Data != "":
		return readDirectory(w, c.Data)
	case c.Log == "":
		return readURL(w, c.natsFlags)
	}
	in := io.Reader(os.Stdin)
	if c.Log != "-" {
		file, err := os.Open(c.Log)
		if err != nil {
			return nil, err
		}
		defer file.Close() // only read
		in = file
	}
	l, err := parseLog(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c.Log, err)
	}
	return l, nil
}

func (c *replayCommand) replay(w *world, l *replayLog) (*replayed, error) {
	r := &replayed{Events: len(l.records)}
	for i := range l.records {
		if ofJobs(&l.records[i]) {
			r.FirstOfJobs = l.records[i].Sequence
			break
		}
	}
	var err error
	if r.Verification, err = l.verify(w.ctx); err != nil || len(c.Rules) == 0 {
		return r, err
	}
	settings, err := c.settings(l)
	if err != nil {
		return nil, err
	}
	h, err := l.lookBack(w.ctx)
	if err != nil {
		return nil, err
	}
	recorded := map[string]*schemas.Advice{}
	for _, e := range h.submissions {
		recorded[e.JobID] = &e.Advice
	}
	r.Referee, r.Rules = h.referee, append(r.Rules, h.score(ruleRecorded, "", recorded))
	for _, name := range c.Rules {
		for _, s := range settings {
			rule := newPastRule(w.ctx, name)
			if s.name != "" && !rule.heeds(s) {
				continue
			}
			answers, err := l.answers(w.ctx, rule, s)
			if err != nil {
				return nil, fmt.Errorf("replay rule %s: %w", name, err)
			}
			r.Rules = append(r.Rules, h.score(name, s.name, answers))
		}
	}
	return r, nil
}

// settings are what the rules answer with: what was, and what was asked for.
func (c *replayCommand) settings(l *replayLog) ([]pastSetting, error) {
	all := []pastSetting{{}}
	if len(c.Regressor) == 0 && c.Confidence == 0 && c.Promise == "" {
		return all, nil
	}
	other, versions := pastSetting{regressors: regressorSet{}, confidence: c.Confidence, promise: schemas.Promise(c.Promise)}, l.versions()
	var names []string
	for _, name := range c.Regressor {
		target, v, err := versions.given(name)
		if err != nil {
			return nil, err
		}
		if other.regressors[target] != nil {
			return nil, fmt.Errorf("%s is the second regressor of %s", name, target)
		}
		other.regressors[target] = v
		names = append(names, target+" of "+name)
	}
	if c.Confidence > 0 {
		names = append(names, fmt.Sprintf("confidence %g", c.Confidence))
	}
	if c.Promise != "" {
		names = append(names, "promise "+c.Promise)
	}
	other.name = strings.Join(names, ", ")
	return append(all, other), nil
}

// print writes the result for people.
func (r *replayed) print(out io.Writer) error {
	fmt.Fprintf(out, "%d events", r.Events)
	if r.FirstOfJobs > 1 {
		fmt.Fprintf(out, "; the log begins with event %d of the jobs, what came before was dropped", r.FirstOfJobs)
	}
	fmt.Fprintln(out)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nmade again\tequal\tdifferent\tunrepeatable\t")
	v := r.Verification
	for _, line := range []struct {
		name string
		tally
	}{{"answers", v.Answers}, {"predictions", v.Predictions}, {"warnings", v.Warnings}, {"all", v.total()}} {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t\n", line.name, line.Equal, line.Different, line.Unrepeatable)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, u := range v.Unknown {
		fmt.Fprintf(out, "unrepeatable: %d because %s\n", u.Events, u.Reason)
	}
	for _, d := range v.Differences {
		fmt.Fprintf(out, "first difference: %s, event %d: %s was %s, is %s\n", d.EventID, d.Sequence, d.Field, d.Recorded, d.Replayed)
	}
	if len(r.Rules) == 0 {
		return nil
	}
	return r.printRules(out)
}

func (r *replayed) printRules(out io.Writer) error {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "\nrule\tpromised\trefused\texplored\tmeasured\tkept\tinterval\taccuracy\tCPU s\tpredicted\tkept\tCPU s\taccuracy\tregret\t")
	for _, s := range r.Rules {
		interval := "-"
		if s.MeasuredKeptLow != nil {
			interval = fmt.Sprintf("%.3f-%.3f", *s.MeasuredKeptLow, *s.MeasuredKeptHigh)
		}
		name := s.Rule
		if s.Setting != "" {
			name += " *"
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s\t%.1f\t%d\t%d\t%.1f\t%s\t%s\t\n", name, s.Promised, s.Refused, s.Explored, s.Measured, figure(s.MeasuredKeptRatio, "%.3f"), interval,
			figure(s.MeasuredAccuracy, "%.4f"), s.MeasuredCPUSeconds, s.Predicted, s.PredictedKept, s.PredictedCPUSeconds, figure(s.AllPredictedAccuracy, "%.4f"), figure(s.AllPredictedRegret, "%.4f"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, s := range r.Rules {
		if s.Setting != "" {
			fmt.Fprintf(out, "*          with %s\n", s.Setting)
			break
		}
	}
	_, err := fmt.Fprintf(out, replayLegend, r.Referee)
	return err
}

// replayLegend explains each column.
const replayLegend = `recorded   what the advisor of the log decided; the others answered anew, from the events before
measured   promises whose job ran as the rule chose and ended: their kept (with its 95 %% interval), accuracy and CPU time are measured
predicted  the other promises: their kept and CPU time are predicted, for jobs ran in one way only
accuracy, regret at the end: of all promises, predicted; regret is to the best alternative that would have kept the SLO
who predicts: %s; corrected by how much longer the job itself took, with the neighbours that it had
`
