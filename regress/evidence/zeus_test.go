package evidence_test

import (
	"compress/gzip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"courier/regress/evidence"
)

// shared is the directory with the data of published studies; tests are skipped without it.
const shared = "../../../shared/data"

// underRace is true under the race detector. Tests of figures are skipped there: they are slow and
// share nothing between goroutines.
var underRace bool

// table reads a CSV file, which may be compressed, as rows by column name.
func table(t testing.TB, path string) []map[string]string {
	t.Helper()
	if underRace {
		t.Skip("a question of numbers, not of races")
	}
	file, err := os.Open(filepath.Join(shared, path))
	if errors.Is(err, fs.ErrNotExist) {
		t.Skipf("data is absent: %s", path)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var text io.Reader = file
	if strings.HasSuffix(path, ".gz") {
		if text, err = gzip.NewReader(file); err != nil {
			t.Fatal(err)
		}
	}
	rows, err := csv.NewReader(text).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []map[string]string
	for _, row := range rows[1:] {
		byName := map[string]string{}
		for i, name := range rows[0] {
			byName[name] = row[i]
		}
		all = append(all, byName)
	}
	return all
}

func number(t testing.TB, s string) float64 {
	t.Helper()
	x, err := strconv.ParseFloat(s, 64)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// training is one run of the Zeus study: the epochs at which accuracies were first reached, and the
// assumed number of epochs.
type training struct {
	dataset string
	batch   int
	seed    int
	steps   []accuracyStep
	length  int
}

type accuracyStep struct {
	epoch    int
	accuracy float64
}

// accuracy after an epoch; false before the first step.
func (r *training) accuracy(epoch int) (float64, bool) {
	best, known := 0.0, false
	for _, s := range r.steps {
		if s.epoch <= epoch {
			best, known = max(best, s.accuracy), true
		}
	}
	return best, known
}

// first returns the first epoch that reaches a target, or a large number if none does.
func (r *training) first(target float64) int {
	at := math.MaxInt
	for _, s := range r.steps {
		if s.accuracy >= target-1e-9 {
			at = min(at, s.epoch)
		}
	}
	return at
}

type zeusSetting struct {
	dataset string
	batch   int
}

// study is the Zeus data: trainings by configuration, and seconds per epoch.
type study struct {
	trainings map[zeusSetting][]*training
	optimizer map[zeusSetting]string
	seconds   map[string]map[zeusSetting]map[int]float64 // by GPU, configuration, power limit
	datasets  []string
	batches   map[string][]int // with a time on the V100 and two trainings or more
	floor     map[string]float64
}

func readStudy(t testing.TB) *study {
	t.Helper()
	s := &study{trainings: map[zeusSetting][]*training{}, optimizer: map[zeusSetting]string{},
		seconds: map[string]map[zeusSetting]map[int]float64{},
		batches: map[string][]int{}, floor: map[string]float64{}}
	s.readTrainings(t)
	for _, gpu := range []string{"v100", "p100"} {
		s.seconds[gpu] = map[zeusSetting]map[int]float64{}
		for _, row := range table(t, "zeus/summary_power_"+gpu+".csv") {
			k := zeusSetting{row["dataset"], int(number(t, row["batch_size"]))}
			if s.optimizer[k] != row["optimizer"] {
				continue
			}
			if s.seconds[gpu][k] == nil {
				s.seconds[gpu][k] = map[int]float64{}
			}
			s.seconds[gpu][k][int(number(t, row["power_limit"]))] = number(t, row["time_per_epoch"])
		}
	}
	for k, of := range s.trainings {
		if len(of) > 1 && s.seconds["v100"][k][250] > 0 {
			s.batches[k.dataset] = append(s.batches[k.dataset], k.batch)
		}
	}
	for _, batches := range s.batches {
		slices.Sort(batches)
	}
	s.datasets = slices.Sorted(maps.Keys(s.batches))
	return s
}

func (s *study) readTrainings(t testing.TB) {
	byKey := map[string]*training{}
	for _, row := range table(t, "zeus/summary_train.csv") {
		k := zeusSetting{row["dataset"], int(number(t, row["batch_size"]))}
		s.optimizer[k] = row["optimizer"]
		name := fmt.Sprint(k, row["run"])
		r := byKey[name]
		if r == nil {
			r = &training{dataset: k.dataset, batch: k.batch, seed: int(number(t, row["run"]))}
			byKey[name] = r
			s.trainings[k] = append(s.trainings[k], r)
		}
		if row["target_epoch"] == "nan" {
			continue
		}
		accuracy := number(t, row["target_metric"])
		if k.dataset == "squad" {
			accuracy /= 100
		}
		accuracy = math.Round(accuracy*1e6) / 1e6
		r.steps = append(r.steps, accuracyStep{int(number(t, row["target_epoch"])), accuracy})
	}
	for k, of := range s.trainings {
		slices.SortFunc(of, func(a, b *training) int { return a.seed - b.seed })
		longest := 0
		for _, r := range of {
			for _, x := range r.steps {
				longest = max(longest, x.epoch)
				if low, ok := s.floor[k.dataset]; !ok || x.accuracy < low {
					s.floor[k.dataset] = x.accuracy
				}
			}
		}
		for _, r := range of {
			r.length = longest
		}
	}
}

// draw adds noise to epoch seconds: 2 % of a run and 3 % of an epoch, as measured
// times have none.
func draw(random *rand.Rand, seconds float64, epochs int) []float64 {
	own := math.Exp(0.02 * random.NormFloat64())
	all := make([]float64, epochs)
	for i := range all {
		all[i] = seconds * own * math.Exp(0.03*random.NormFloat64())
	}
	return all
}

// zeusSplit is the study, split into history and truth.
type zeusSplit struct {
	*study
	truth   map[zeusSetting]*training
	times   map[zeusSetting][]float64 // cumulative seconds of the true runs
	history map[zeusSetting][]*training
	unseen  map[zeusSetting]bool
}

// newWorld uses another training of each configuration as truth in each repetition.
func newWorld(s *study, repetition uint64, unseen map[zeusSetting]bool) *zeusSplit {
	w := &zeusSplit{study: s, truth: map[zeusSetting]*training{}, times: map[zeusSetting][]float64{},
		history: map[zeusSetting][]*training{}, unseen: unseen}
	random := rand.New(rand.NewPCG(repetition, 1))
	for _, d := range s.datasets {
		for _, b := range s.batches[d] {
			k := zeusSetting{d, b}
			of := s.trainings[k]
			at := (len(of) - 1 + int(repetition) - 1) % len(of)
			w.truth[k] = of[at]
			w.history[k] = slices.Delete(slices.Clone(of), at, at+1)
			sum := 0.0
			for _, x := range draw(random, s.seconds["v100"][k][250], 700) {
				sum += x
				w.times[k] = append(w.times[k], sum)
			}
		}
	}
	return w
}

func (w *zeusSplit) mean(d string, b int) float64 { return w.seconds["v100"][zeusSetting{d, b}][250] }
func (w *zeusSplit) time(d string, b, epochs int) float64 {
	return w.times[zeusSetting{d, b}][epochs-1]
}
func (w *zeusSplit) accuracy(d string, b, epochs int) float64 {
	if a, ok := w.truth[zeusSetting{d, b}].accuracy(epochs); ok {
		return a
	}
	return w.floor[d]
}

// pastAccuracy is the mean of the history.
func (w *zeusSplit) pastAccuracy(d string, b, epochs int) float64 {
	sum, of := 0.0, w.history[zeusSetting{d, b}]
	for _, r := range of {
		a, ok := r.accuracy(epochs)
		if !ok {
			a = w.floor[d]
		}
		sum += a
	}
	return sum / float64(len(of))
}

// runs returns the history as evidence; limit is how many runs of each configuration.
func (w *zeusSplit) runs(repetition uint64, limit int) []evidence.Run {
	random := rand.New(rand.NewPCG(repetition, 7))
	var runs []evidence.Run
	for _, d := range w.datasets {
		for _, b := range w.batches[d] {
			k := zeusSetting{d, b}
			if w.unseen[k] {
				continue
			}
			for i, r := range w.history[k] {
				if i >= limit {
					break
				}
				runs = append(runs, runOf(r, "v100", draw(random, w.mean(d, b), r.length)))
			}
		}
	}
	return runs
}

func configurationOf(d string, b int, node string) evidence.Configuration {
	return evidence.Configuration{Model: d, NodeType: node, BatchSize: b, CPUs: 1,
		NodeLoad: evidence.NodeLoad{ConcurrentJobs: 1}}
}

func runOf(r *training, node string, seconds []float64) evidence.Run {
	run := evidence.Run{ID: fmt.Sprint(node, r.dataset, "-", r.batch, "-", r.seed),
		Configuration: configurationOf(r.dataset, r.batch, node)}
	for i, s := range seconds {
		e := evidence.EpochRecord{Number: i + 1, Seconds: s}
		e.Accuracy, e.HasAccuracy = r.accuracy(i + 1)
		run.Epochs = append(run.Epochs, e)
	}
	return run
}

// known returns the first epochs with known accuracies, which all true runs had.
func (w *zeusSplit) known(d string) (low, high int) {
	low, high = 3, math.MaxInt
	for _, b := range w.batches[d] {
		k := zeusSetting{d, b}
		high = min(high, w.truth[k].length)
		for _, r := range append(slices.Clone(w.history[k]), w.truth[k]) {
			if len(r.steps) > 0 {
				first := math.MaxInt
				for _, s := range r.steps {
					first = min(first, s.epoch)
				}
				low = max(low, first)
			}
		}
	}
	return low, max(low, high)
}
