package tune

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"

	"courier/runner"
	"courier/schemas"
)

// Objectives by which trials are ranked. The caller checks that an objective is one of them.
const (
	ObjectiveAuto     = "auto" // accuracy if the first epoch reports one, else loss
	ObjectiveAccuracy = "accuracy"
	ObjectiveLoss     = "loss"
)

const secondsPerHour = 3600

// Options of a tuning. Zero fields mean the documented defaults.
type Options struct {
	Command   []string `json:"command"`
	Space     Space    `json:"space"`
	Trials    int      `json:"trials"`
	Eta       int      `json:"eta"`       // each stage keeps one of Eta trials; default 2
	Epochs    int      `json:"epochs"`    // of a trial that reaches the last stage
	Objective string   `json:"objective"` // default ObjectiveAuto
	Seed      uint64   `json:"seed"`      // of the values of the parameters; default 1

	// The options below may change when a tuning is continued.
	CPUs []int `json:"-"` // numbers of CPUs of a trial to choose from; default 1
	Pool int   `json:"-"` // CPUs of all running trials; default 1

	// At most one of these is set. The resources are the cheapest within MaxTime, or the fastest within
	// Budget. Without both they are the fastest.
	MaxTime time.Duration `json:"-"` // of the tuning, without interruptions
	Budget  float64       `json:"-"` // core-hours

	Grace time.Duration `json:"-"` // that a stopped command has to end; default 2 s, at most 5 % of MaxTime
}

// Bounds of the options.
const (
	maxTrials  = 10_000
	maxOptions = 16 // numbers of CPUs
)

const defaultGrace = 2 * time.Second

func (o Options) withDefaults() Options {
	o.Eta = cmp.Or(o.Eta, 2)
	o.Objective = cmp.Or(o.Objective, ObjectiveAuto)
	o.Seed = cmp.Or(o.Seed, 1)
	o.Pool = cmp.Or(o.Pool, 1)
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	if o.MaxTime > 0 {
		o.Grace = min(o.Grace, o.MaxTime/20)
	}
	if len(o.CPUs) == 0 {
		o.CPUs = []int{1}
	}
	o.CPUs = slices.Compact(slices.Sorted(slices.Values(o.CPUs)))
	return o
}

func (o *Options) validate() error {
	switch {
	case len(o.Command) == 0:
		return errors.New("no command: give the training command after --")
	case len(o.Space) == 0:
		return errors.New("--param is missing: " + parameterForms)
	case o.Trials < 1 || o.Trials > maxTrials:
		return fmt.Errorf("--trials: %d is not between 1 and %d", o.Trials, maxTrials)
	case o.Space.combinations() < float64(o.Trials):
		return fmt.Errorf("--trials: %d is more than the %s of the parameters: lower it, or give more values",
			o.Trials, schemas.FormatCount(uint64(o.Space.combinations()), "combination"))
	case o.Eta < 2 || o.Eta > maxTrials:
		return fmt.Errorf("--eta: %d is not between 2 and %d", o.Eta, maxTrials)
	case o.Epochs < 1 || o.Epochs > schemas.MaxEpochs:
		return fmt.Errorf("--epochs: %d is not between 1 and %d", o.Epochs, schemas.MaxEpochs)
	}
	if unset := o.unsetPlaceholder(); unset != "" {
		return fmt.Errorf("the command has {%s}, but no parameter of that name: add --param %s=VALUES, or use "+
			"one of %s", unset, unset, o.placeholders())
	}
	for _, p := range o.Space {
		if !runner.HasPlaceholder(o.Command, "{"+p.Name+"}") {
			return fmt.Errorf("the command has no {%s}, so that all of its trials would be equal: write it where the "+
				"value belongs, for example --%[1]s {%[1]s}", p.Name)
		}
	}
	return o.validateResources()
}

// placeholderPattern matches a placeholder of a command, and ${name}, a variable of a shell.
var placeholderPattern = regexp.MustCompile(`(\$?)\{([A-Za-z][A-Za-z0-9_]*)\}`)

// unsetPlaceholder returns a placeholder that has no value; empty if the command has none.
func (o *Options) unsetPlaceholder() string {
	for _, argument := range o.Command {
		for _, match := range placeholderPattern.FindAllStringSubmatch(argument, -1) {
			name := match[2]
			isParameter := slices.ContainsFunc(o.Space, func(p Parameter) bool { return p.Name == name })
			if match[1] == "" && !isParameter && !slices.Contains(reservedNames, name) {
				return name
			}
		}
	}
	return ""
}

// placeholders returns all placeholders that have a value.
func (o *Options) placeholders() string {
	var names []string
	for _, p := range o.Space {
		names = append(names, "{"+p.Name+"}")
	}
	for _, name := range reservedNames {
		names = append(names, "{"+name+"}")
	}
	return strings.Join(names, ", ")
}

func (o *Options) validateResources() error {
	if o.Pool < 1 || o.Pool > schemas.MaxCPUs {
		return fmt.Errorf("--cpus-total: %d is not between 1 and %d", o.Pool, schemas.MaxCPUs)
	}
	if len(o.CPUs) > maxOptions {
		return fmt.Errorf("--cpus: %d numbers, want at most %d", len(o.CPUs), maxOptions)
	}
	for _, c := range o.CPUs {
		if c < 1 || c > o.Pool {
			return fmt.Errorf("--cpus: %d is not between 1 and the %s of --cpus-total", c,
				schemas.FormatCPUs(uint32(o.Pool)))
		}
	}
	switch {
	case o.MaxTime < 0 || o.MaxTime > schemas.MaxSLO:
		return fmt.Errorf("--max-time: %s is not between 0s and %s", o.MaxTime, schemas.MaxSLO)
	case !(o.Budget >= 0) || math.IsInf(o.Budget, 0):
		return fmt.Errorf("--budget: %g is not a number of core-hours", o.Budget)
	case o.MaxTime > 0 && o.Budget > 0:
		return errors.New("--max-time and --budget are given together: give the one that matters, " +
			"the other is minimized")
	}
	return nil
}

// usesProgress reports whether a command can continue a trial: it takes the number of completed
// epochs or the directory of the trial.
func usesProgress(command []string) bool {
	return runner.HasPlaceholder(command, epochPlaceholder) || runner.HasPlaceholder(command, dirPlaceholder)
}
