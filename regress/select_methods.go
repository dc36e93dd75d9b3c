package regress

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
)

// Method is a family with its options, which Select compares.
type Method struct {
	// Name appears in reports; Family is one of the families.
	Name, Family string
	// Fit fits all examples; Folds below 0 skips the calibration.
	Fit func(ctx context.Context, d *Dataset, o FitOptions) (*Regressor, error)
}

// FitOptions are the options that Select sets for every method.
type FitOptions struct {
	Transform                                Transform
	Seed                                     uint64
	Folds, MinExamples, MinSettings, Threads int
	Progress                                 func(done, planned int)
}

// Families returns the valid values of SelectOptions.Families.
func Families() []string {
	return []string{FamilyForest, FamilyBoosting, FamilyLaw, FamilyLawTrees, FamilyGaussian}
}

// methodsOf returns the methods of a family. Small datasets get more methods, large ones those
// that finish in time.
func methodsOf(family string, d *Dataset) []Method {
	switch family {
	case FamilyForest:
		return forestMethods(d)
	case FamilyBoosting:
		return boostingMethods(d)
	case FamilyLaw:
		return []Method{LawMethod("law", LawOptions{})}
	case FamilyLawTrees:
		return []Method{
			LawMethod("law + forest", LawOptions{
				Forest: &ForestOptions{
					Trees:     100,
					MaxDepth:  6,
					MinLeaf:   3,
					Bootstrap: true,
					Criterion: Squared,
				},
			}),
			LawMethod("law + boosting", LawOptions{
				Boosting: &BoostingOptions{
					Trees:        100,
					Leaves:       8,
					LearningRate: 0.05,
					Criterion:    Squared,
				},
			}),
		}
	case FamilyGaussian:
		if d.Len() > maxGaussianSelected {
			return nil
		}
		return []Method{GaussianMethod("gaussian", GaussianOptions{})}
	}
	return nil
}

// maxGaussianSelected is the maximum number of examples for which Select compares a Gaussian
// process.
const maxGaussianSelected = 500

func forestMethods(d *Dataset) []Method {
	if d.Len() > 20_000 {
		return []Method{
			ForestMethod("forest squared, depth 12", ForestOptions{
				Trees:     60,
				MaxDepth:  12,
				MinLeaf:   5,
				Bootstrap: true,
				Criterion: Squared,
			}),
		}
	}
	var methods []Method
	features := []int{0}
	if third := len(d.Features) / 3; third > 1 {
		features = append(features, third)
	}
	for _, criterion := range []Criterion{Absolute, Squared} {
		for _, depth := range []int{6, 12} {
			for _, f := range features {
				name := fmt.Sprintf("forest %s, depth %d", criterion, depth)
				if f > 0 {
					name += fmt.Sprintf(", %d features", f)
				}
				methods = append(methods, ForestMethod(name, ForestOptions{
					Trees:            200,
					MaxDepth:         depth,
					FeaturesPerSplit: f,
					Bootstrap:        true,
					Criterion:        criterion,
				}))
			}
		}
	}
	return methods
}

func boostingMethods(d *Dataset) []Method {
	var methods []Method
	leaves := []int{4, 8}
	if d.Len() > 1000 {
		leaves = []int{8, 31}
	}
	for _, criterion := range []Criterion{Squared, Absolute} {
		for _, n := range leaves {
			methods = append(methods, BoostingMethod(fmt.Sprintf("boosting %s, %d leaves",
				criterion, n),
				BoostingOptions{Trees: 300, Leaves: n, LearningRate: 0.08, Criterion: criterion}))
		}
	}
	return methods
}

// ForestMethod returns a method that fits a forest with these options.
func ForestMethod(name string, o ForestOptions) Method {
	return Method{
		name,
		FamilyForest,
		func(ctx context.Context, d *Dataset, f FitOptions) (*Regressor, error) {
			o := o
			o.Transform, o.Seed, o.Folds, o.Threads = f.Transform, f.Seed, f.Folds, f.Threads
			o.MinExamples, o.MinSettings, o.Progress = f.MinExamples, f.MinSettings, f.Progress
			return FitForest(ctx, d, o)
		},
	}
}

// BoostingMethod returns a method that fits boosting with these options.
func BoostingMethod(name string, o BoostingOptions) Method {
	return Method{
		name,
		FamilyBoosting,
		func(ctx context.Context, d *Dataset, f FitOptions) (*Regressor, error) {
			o := o
			o.Transform, o.Seed, o.Folds, o.Threads = f.Transform, f.Seed, f.Folds, f.Threads
			o.MinExamples, o.MinSettings, o.Progress = f.MinExamples, f.MinSettings, f.Progress
			return FitBoosting(ctx, d, o)
		},
	}
}

// LawMethod returns a method that fits a law with these options.
func LawMethod(name string, o LawOptions) Method {
	family := FamilyLaw
	if o.Forest != nil || o.Boosting != nil {
		family = FamilyLawTrees
	}
	return Method{
		name,
		family,
		func(ctx context.Context, d *Dataset, f FitOptions) (*Regressor, error) {
			o := o
			o.Transform, o.Seed, o.Folds, o.Threads = f.Transform, f.Seed, f.Folds, f.Threads
			o.MinExamples, o.MinSettings, o.Progress = f.MinExamples, f.MinSettings, f.Progress
			return FitLaw(ctx, d, o)
		},
	}
}

// GaussianMethod returns a method that fits a Gaussian process with these options.
func GaussianMethod(name string, o GaussianOptions) Method {
	return Method{
		name,
		FamilyGaussian,
		func(ctx context.Context, d *Dataset, f FitOptions) (*Regressor, error) {
			o := o
			o.Transform, o.Seed, o.Folds, o.Threads = f.Transform, f.Seed, f.Folds, f.Threads
			o.MinExamples, o.MinSettings, o.Progress = f.MinExamples, f.MinSettings, f.Progress
			return FitGaussian(ctx, d, o)
		},
	}
}

// Baseline is a simple rule for comparison in reports; it is never served. Fit returns a prediction
// function in the unit of the target.
type Baseline struct {
	Name string
	Fit  func(train *Dataset) (func(row []float64) float64, error)
}

// LinearBaseline is the linear model of an analysis of variance on the plain target: with all
// interactions, or without any if there are too many for the examples.
func LinearBaseline() Baseline {
	return Baseline{
		"linear model (ANOVA)",
		func(train *Dataset) (func(row []float64) float64, error) {
			inputs, terms, err := linearTerms(train)
			if err != nil || 2*len(terms) > train.Len() {
				names := make([]string, len(train.Features))
				for f, feature := range train.Features {
					names[f] = feature.Name
				}
				if inputs, terms, err = namedTerms(train, names); err != nil {
					return nil, err
				}
			}
			if len(inputs) > maxInputs {
				return nil, fmt.Errorf("%w: a linear model of %d inputs, want at most %d",
					ErrBadExamples, len(inputs), maxInputs)
			}
			return leastSquares(train, train.Target, inputs, terms, -1).predict, nil
		},
	}
}

// NearestBaseline predicts the mean of the most similar measured configuration.
func NearestBaseline() Baseline {
	return Baseline{"same as last time", func(train *Dataset) (func(row []float64) float64, error) {
		inputs := mainInputs(train)
		if len(inputs) > maxInputs {
			inputs = inputs[:maxInputs]
		}
		points := make([][]float64, train.Len())
		for i := range points {
			points[i] = scaled(inputs, train.Row(i, nil))
		}
		return func(row []float64) float64 {
			at := scaled(inputs, row)
			least, sum, count := math.Inf(1), 0.0, 0
			for i, p := range points {
				far := 0.0
				for k, x := range p {
					far += (x - at[k]) * (x - at[k])
				}
				switch c := cmp.Compare(far, least-1e-12); {
				case c < 0:
					least, sum, count = far, train.Target[i], 1
				case far <= least+1e-12:
					sum, count = sum+train.Target[i], count+1
				}
			}
			return sum / float64(count)
		}, nil
	}}
}

// transformOf returns Log for targets above 0 that span a factor of 2 or more, as durations do,
// else None.
func transformOf(target []float64) Transform {
	if low, high := slices.Min(target), slices.Max(target); low > 0 && high >= 2*low && high > 1 {
		return Log
	}
	return None
}

// LeastSquares fits the plain target by a sum of terms, written as in LawOptions, and returns the
// prediction function. An error wraps ErrBadExamples or ErrBadOptions.
func LeastSquares(d *Dataset, terms []string) (func(row []float64) float64, error) {
	if err := d.Validate(); err != nil {
		return nil, err
	}
	inputs, products, err := namedTerms(d, terms)
	if err != nil {
		return nil, err
	}
	return leastSquares(d, d.Target, inputs, products, -1).predict, nil
}

// Constants of the queueing law of the ICPE 2021 study: service time of the CPU in seconds per
// iteration, number of workers, and images in all ten epochs.
const (
	queueServiceSeconds = 0.045
	queueWorkers        = 3
	queueImages         = 600_000
	queueName           = "queueing law"
)

// queueFeatures are the features of the law: the name in the study and the name in Courier.
var queueFeatures = [3][2]string{
	{"batch", "batch_size"},
	{"cpu", "cpus"},
	{"njobs", "concurrent_jobs"},
}

// QueueingBaseline returns the queueing law of the ICPE 2021 study (DOI
// 10.1145/3427921.3450233, section 4.2). A job makes a number of iterations. In each it is served
// by a CPU without a queue and waits for a disk, an M/M/1 queue whose rate mu is linear in batch
// size and processes:
//
//	time = iterations (S + 1 / (mu - lambda)),  lambda = max(1, cpus jobs / workers) / S
//
// mu - lambda is kept at or above the smallest value of the training set, because on other data it
// would cross zero. A dataset without the features of the study gets a baseline whose Fit returns
// an error that names the missing feature.
func QueueingBaseline(d *Dataset) Baseline {
	q := queueingLaw{}
	for i, names := range queueFeatures {
		q.columns[i] = slices.IndexFunc(d.Features, func(f Feature) bool {
			return slices.Contains(names[:], f.Name) && f.Levels == nil
		})
		if q.columns[i] < 0 || slices.Min(d.Columns[q.columns[i]]) <= 0 {
			err := fmt.Errorf("needs a feature %s or %s with positive values", names[0], names[1])
			return Baseline{
				Name: queueName,
				Fit:  func(*Dataset) (func(row []float64) float64, error) { return nil, err },
			}
		}
	}
	return Baseline{Name: queueName, Fit: q.fit}
}

// queueingLaw knows the columns of batch size, CPUs and concurrent jobs.
type queueingLaw struct{ columns [3]int }

func (q *queueingLaw) batch(row []float64) float64 { return row[q.columns[0]] }

func (q *queueingLaw) processes(row []float64) float64 {
	return row[q.columns[1]] * row[q.columns[2]]
}

// arrivals returns lambda, the arrival rate at the disk.
func (q *queueingLaw) arrivals(row []float64) float64 {
	return max(1, q.processes(row)/queueWorkers) / queueServiceSeconds
}

func (q *queueingLaw) fit(train *Dataset) (func(row []float64) float64, error) {
	rates := &Dataset{
		Features: []Feature{{Name: "batch"}, {Name: "processes"}},
		Columns:  make([][]float64, 2),
	}
	smallest := math.Inf(1)
	for i, seconds := range train.Target {
		row := train.Row(i, nil)
		wait := seconds*q.batch(row)/queueImages - queueServiceSeconds
		if wait <= 0 {
			continue // the run is faster than the service time of the CPU
		}

		smallest = min(smallest, 1/wait)
		rates.Columns[0] = append(rates.Columns[0], q.batch(row))
		rates.Columns[1] = append(rates.Columns[1], q.processes(row))
		rates.Target = append(rates.Target, 1/wait+q.arrivals(row))
	}
	if n := len(rates.Target); n < 3 {
		return nil, fmt.Errorf("%d runs take longer than the CPU alone, want 3", n)
	}

	mu, err := LeastSquares(rates, []string{"batch", "processes"})
	if err != nil {
		return nil, err
	}
	return func(row []float64) float64 {
		spare := max(mu([]float64{q.batch(row), q.processes(row)})-q.arrivals(row), smallest)
		return queueImages / q.batch(row) * (queueServiceSeconds + 1/spare)
	}, nil
}
