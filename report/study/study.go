package study

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"courier/regress/anova"
	"courier/regress/table"
)

// Options select what is analysed. The zero value is for tables of courier explore. The tags are those
// of the flags of courier anova.
type Options struct {
	Responses    []string `name:"response" help:"Columns to explain (default: the time and the accuracy)." placeholder:"COLUMN"`
	Factors      []string `help:"Columns whose values are levels (default: the settings that vary)." placeholder:"COLUMN"`
	Covariates   []string `help:"Columns of numbers whose effect is a straight line." placeholder:"COLUMN"`
	Blocks       []string `help:"Factors without interactions (default: the replication, if it varies)." placeholder:"COLUMN"`
	Interactions []string `help:"Interactions such as cpus:jobs, or a number N for all of up to N factors; 1: none (default: 2, as far as there are enough runs)." placeholder:"TERMS"`
	Logarithm    bool     `help:"Analyse the logarithm of the responses, for influences that multiply."`
	Seed         uint64   `help:"Seed of the folds of held-out runs." default:"1"`
	NoRegressors bool     `help:"Do not compare regressors."`
}

// RunsAnalysis is the analysis of the runs of a table.
type RunsAnalysis struct {
	Source string `json:"source,omitempty"`
	// Runs that were analysed. Unfinished runs were left out. Averaged counts the runs that are
	// part of a mean of jobs that ran together.
	Runs       int `json:"runs"`
	Unfinished int `json:"unfinished"`
	Averaged   int `json:"averaged"`

	Analyses []Analysis `json:"analyses"`
	// Regressors is nil if the table has too few runs or lacks a column.
	Regressors *RegressorComparison `json:"regressors,omitempty"`
	Notes      []string             `json:"notes,omitempty"`

	// Table has the runs, and Settings the columns that may influence them.
	Table    *table.Table `json:"-"`
	Settings []string     `json:"-"`
}

// Analysis is the analysis of variance of a response.
type Analysis struct {
	*anova.VarianceAnalysis
	// Column of the response, which may be its logarithm.
	Column string `json:"column"`
	// Incomplete counts the runs without the response or a factor.
	Incomplete int `json:"incomplete"`

	design *anova.TableDesign
}

// Analyse analyses the runs of a table.
func Analyse(ctx context.Context, t *table.Table, o Options) (*RunsAnalysis, error) {
	if err := checkRows(t); err != nil {
		return nil, err
	}
	s := &RunsAnalysis{Table: &table.Table{Header: t.Header, Rows: slices.Clone(t.Rows)}}
	s.keepFinished()
	if len(s.Table.Rows) == 0 {
		return nil, errors.New("there is no finished run")
	}
	responses, err := s.responses(&o)
	if err != nil {
		return nil, err
	}
	if err := s.setFactors(&o, responses); err != nil {
		return nil, err
	}
	s.average(&o, responses)
	s.Runs = len(s.Table.Rows)
	s.Settings = slices.Concat(o.Factors, o.Covariates)
	var refused []error
	for _, response := range responses {
		if err := s.analyse(response, &o); err != nil {
			refused = append(refused, err)
		}
	}
	if len(s.Analyses) == 0 || len(o.Responses) > 0 && len(refused) > 0 {
		return nil, refused[0]
	}
	for _, err := range refused {
		s.Notes = append(s.Notes, err.Error())
	}
	if !o.NoRegressors {
		err = s.compareRegressors(ctx, o.Seed)
	}
	return s, err
}

func (s *RunsAnalysis) keepFinished() {
	name := Column(s.Table, Status)
	if name == "" {
		return
	}
	k := slices.Index(s.Table.Header, name)
	before := len(s.Table.Rows)
	s.Table.Rows = slices.DeleteFunc(s.Table.Rows, func(row []string) bool {
		return strings.TrimSpace(row[k]) != "finished"
	})
	s.Unfinished = before - len(s.Table.Rows)
}

// responses returns the columns to analyse: by default the time of the runs, or of their epochs if
// the runs have different numbers of epochs, and the accuracy.
func (s *RunsAnalysis) responses(o *Options) ([]string, error) {
	if len(o.Responses) > 0 {
		return o.Responses, nil
	}
	var names []string
	total, epoch := Column(s.Table, TotalSeconds), Column(s.Table, EpochSeconds)
	epochs := Column(s.Table, Epochs)
	different := epochs != "" && !slices.Contains(o.Factors, epochs) &&
		!slices.Contains(o.Covariates, epochs) && len(levels(s.Table, epochs)) > 1
	switch {
	case epoch != "" && (different || total == ""):
		names = append(names, epoch)
		if different && total != "" {
			s.Notes = append(s.Notes, fmt.Sprintf("the runs have different numbers of epochs, so"+
				" %s is analysed and not %s; an accuracy depends on them, too: see --factors %s", epoch, total, epochs))
		}
	case total != "":
		names = append(names, total)
	}
	if name := Column(s.Table, Accuracy); name != "" {
		names = append(names, name)
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("there is no column total_seconds or accuracy: name the response"+
			" with --response, one of %s", strings.Join(s.Table.Header, ", "))
	}
	return names, nil
}

// settingRoles are the columns that are factors by default.
var settingRoles = []ColumnRole{Model, Dataset, BatchSize, CPUs, GPUs, Jobs}

// setFactors sets the default factors: the settings with several levels.
func (s *RunsAnalysis) setFactors(o *Options, responses []string) error {
	isFree := func(name string) bool {
		return name != "" && !slices.Contains(o.Covariates, name) &&
			!slices.Contains(o.Blocks, name) && !slices.Contains(o.Factors, name) &&
			!slices.Contains(responses, name) && len(levels(s.Table, name)) > 1
	}
	byDefault := len(o.Factors) == 0 && len(o.Covariates) == 0
	if o.Blocks == nil && byDefault {
		if name := Column(s.Table, Replication); isFree(name) {
			o.Blocks = []string{name}
		}
	}
	for _, role := range settingRoles {
		if name := Column(s.Table, role); byDefault && isFree(name) {
			o.Factors = append(o.Factors, name)
		}
	}
	if len(o.Factors)+len(o.Covariates) == 0 {
		return fmt.Errorf("no setting varies: name the factors with --factors, of %s",
			strings.Join(s.Table.Header, ", "))
	}
	return nil
}

// analyse adds the analysis of a response. Without a chosen order, interactions that leave no
// residual degrees of freedom, or make the model too large, are left out.
func (s *RunsAnalysis) analyse(response string, o *Options) error {
	order, interactions, chosen := 0, o.Interactions, len(o.Interactions) > 0
	if !chosen {
		order = 2
	}
	if n, err := strconv.Atoi(strings.Join(interactions, ",")); err == nil {
		if order, interactions = n, nil; order < 1 {
			return fmt.Errorf("--interactions is %d, want 1 or more", order)
		}
	}
	fit := func(order int) (*anova.TableDesign, *anova.VarianceAnalysis, error) {
		d, err := anova.FromTable(s.Table, anova.ColumnChoice{
			Response: response, Factors: o.Factors, Covariates: o.Covariates, Blocks: o.Blocks,
			Interactions: interactions, Order: order,
		})
		if err != nil {
			return nil, nil, err
		}
		if o.Logarithm {
			if err := takeLogarithm(d); err != nil {
				return nil, nil, err
			}
		}
		r, err := anova.Fit(d.Design)
		return d, r, err
	}
	d, r, err := fit(order)
	saturated, tooLarge := errors.Is(err, anova.ErrSaturated), errors.Is(err, anova.ErrTooLarge)
	if !chosen && (saturated || tooLarge) {
		note := "there are too few runs for interactions, so the model has none"
		if tooLarge {
			note = "a model with interactions is too large, so it has none"
		}
		if d, r, err = fit(1); err == nil {
			r.Notes = append(r.Notes, note)
		}
	}
	if err != nil {
		return err
	}
	s.Analyses = append(s.Analyses, Analysis{r, response, d.Incomplete, d})
	return nil
}

func takeLogarithm(d *anova.TableDesign) error {
	for i, y := range d.Y {
		if y <= 0 {
			return fmt.Errorf("%s of row %d is %g, which has no logarithm", d.Response, d.Rows[i]+1, y)
		}
		d.Y[i] = math.Log(y)
	}
	d.Response = "log " + d.Response
	return nil
}

func isNumber(x float64) bool { return !math.IsNaN(x) }
