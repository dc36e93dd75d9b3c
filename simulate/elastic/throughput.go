package elastic

import (
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"courier/policy"
	"courier/regress/table"
)

// Throughputs maps a model and a global batch size to iterations per second by number of GPUs.
type Throughputs map[string]map[int]policy.Curve

// maxGPUs is the largest number of GPUs of one job (ElasticFlow's tables end there).
const maxGPUs = 64

// ReadThroughputs reads the tables of a directory: one file MODEL.csv per model, one row per global
// batch size, one column per number of GPUs. Empty cells, nan and 0 were not profiled.
func ReadThroughputs(dir string) (Throughputs, error) {
	paths, err := filepath.Glob(filepath.Join(dir, "*.csv"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("no throughput tables (MODEL.csv) in %s", dir)
	}
	all := Throughputs{}
	for _, path := range paths {
		rows, err := readThroughput(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".csv")] = rows
	}
	return all, nil
}

// missing returns an error about a batch size without rates, which names those that have some.
func (t Throughputs) missing(model string, batch int) error {
	if t[model] == nil {
		models := strings.Join(slices.Sorted(maps.Keys(t)), ", ")
		return fmt.Errorf("model %q has no throughput table; there are tables of %s", model, models)
	}
	var sizes []string
	for _, size := range slices.Sorted(maps.Keys(t[model])) {
		if len(t[model][size]) > 0 {
			sizes = append(sizes, strconv.Itoa(size))
		}
	}
	return fmt.Errorf("model %q with batch size %d has no throughput; its batch sizes are %s", model, batch,
		strings.Join(sizes, ", "))
}

func readThroughput(path string) (map[int]policy.Curve, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	t, err := table.Read(file)
	if err != nil {
		return nil, err
	}
	if t.Header[0] != "global_batch_size" {
		return nil, fmt.Errorf("the first column is not global_batch_size")
	}

	gpus := make([]int, len(t.Header))
	for i, name := range t.Header[1:] {
		if gpus[i+1], err = strconv.Atoi(name); err != nil || gpus[i+1] < 1 {
			return nil, fmt.Errorf("column %q is not a number of GPUs", name)
		}
	}
	rows := map[int]policy.Curve{}
	for n, record := range t.Rows {
		batch, err := strconv.Atoi(strings.TrimSpace(record[0]))
		if err != nil || batch < 1 {
			return nil, fmt.Errorf("line %d: batch size %q", n+2, record[0])
		}
		if rows[batch] != nil {
			return nil, fmt.Errorf("line %d: batch size %d occurs twice", n+2, batch)
		}
		if rows[batch], err = curveOf(batch, gpus, record); err != nil {
			return nil, fmt.Errorf("line %d: %w", n+2, err)
		}
	}
	return rows, nil
}

// curveOf returns the profiled numbers of GPUs that a job with this batch size may hold.
func curveOf(batch int, gpus []int, record []string) (policy.Curve, error) {
	curve := policy.Curve{}
	for i, cell := range record[1:] {
		if cell = strings.TrimSpace(cell); cell == "" {
			continue
		}
		rate, err := strconv.ParseFloat(cell, 64)
		if err != nil || rate < 0 || math.IsInf(rate, 0) {
			return nil, fmt.Errorf("column %d: the rate %q is not a number of iterations per second", gpus[i+1], cell)
		}
		if rate > 0 && gpus[i+1] <= min(batch, maxGPUs) {
			curve = append(curve, policy.CurvePoint{Units: gpus[i+1], Rate: rate})
		}
	}
	slices.SortFunc(curve, func(a, b policy.CurvePoint) int { return a.Units - b.Units })
	return curve, nil
}
