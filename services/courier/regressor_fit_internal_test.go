package main

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"courier/regress"
)

// fitTable fits a table and returns the files in the directory.
func fitTable(
	t *testing.T, header []string, rows [][]string, arguments ...string,
) map[string]string {
	t.Helper()
	dir := t.TempDir()
	table, out := filepath.Join(dir, "runs.csv"), filepath.Join(dir, "fitted")
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(append([][]string{header}, rows...)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	arguments = append([]string{
		"regressor", "fit", "--examples", table, "--out", out, "--no-progress",
	}, arguments...)
	if !slices.Contains(arguments, "--shuffles") {
		arguments = append(arguments, "--shuffles", "1")
	}
	var told bytes.Buffer
	if err := run(context.Background(), arguments, os.Getenv, &told, &bytes.Buffer{}); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"stdout": told.String()}
	for _, name := range []string{
		modelFile, manifestFile, "report.txt", "report.json", "report.html",
	} {
		text, err := os.ReadFile(filepath.Join(out, name))
		if err != nil {
			t.Fatal(err)
		}
		files[name] = string(text)
	}
	return files
}

// studyLike returns runs of all configurations, with times from seconds.
func studyLike(seconds func(batch, cpus float64, jobs, network int) float64) (rows [][]string) {
	for _, batch := range []float64{64, 128, 256, 512} {
		for _, cpus := range []float64{1, 2, 4} {
			for _, jobs := range []int{1, 3} {
				for network := range 2 {
					rows = append(rows, []string{
						fmt.Sprint(batch), fmt.Sprint(cpus), fmt.Sprint(jobs),
						[]string{"lenet5", "simplenet"}[network], fmt.Sprint(seconds(batch, cpus,
							jobs, network)),
					})
				}
			}
		}
	}
	return rows
}

func aboutTheStudy(batch, cpus float64, jobs, network int) float64 {
	wobble := 1 + 0.02*math.Sin(batch+3*cpus+5*float64(jobs)+7*float64(network))
	return wobble * (40 + 30000/batch*(0.3+0.7/cpus)*(1+0.1*float64(jobs))*(1-0.3*float64(network)))
}

// Every report has the three simple rules, or the reason why one cannot be fitted. Feature names may
// be names of the study or of Courier.
func TestRegressorFit_ReportShowsEveryBaseline(t *testing.T) {
	for _, c := range []struct {
		header  string
		missing string
	}{
		{"batch,cpu,njobs,network", ""},
		{"batch_size,cpus,concurrent_jobs,model", ""},
		{"b,c,j,n", "needs a feature batch or batch_size"},
	} {
		files := fitTable(t, strings.Split(c.header+",seconds", ","), studyLike(aboutTheStudy),
			"--target", "seconds", "--features", c.header, "--family", "law", "--unit", "s")
		for _, report := range []string{"stdout", "report.txt", "report.json", "report.html"} {
			for _, rule := range []string{
				"linear model (ANOVA)",
				"same as last time",
				"queueing law",
				c.missing,
			} {
				if !strings.Contains(files[report], rule) {
					t.Errorf("%s: %s does not contain %q", c.header, report, rule)
				}
			}
			if strings.Contains(files[report], "NaN") {
				t.Errorf("%s: NaN in %s", c.header, report)
			}
		}
		if strings.Contains(files["report.txt"], "no queueing law") != (c.missing != "") {
			t.Errorf("%s: report names a missing queueing law, or does not:\n%s",
				c.header, files["report.txt"])
		}
	}
}

// A single shuffle has no range, so the report shows none.
func TestRegressorFit_ShowsNoRangeOfOneShuffle(t *testing.T) {
	header := []string{"batch", "cpu", "njobs", "network", "seconds"}
	arguments := []string{
		"--target", "seconds", "--features", "batch,cpu,njobs,network", "--family", "law",
	}
	once := fitTable(t, header, studyLike(aboutTheStudy), arguments...)
	twice := fitTable(t, header, studyLike(aboutTheStudy), append(arguments, "--shuffles", "2")...)
	for _, report := range []string{"report.txt", "report.html"} {
		if !strings.Contains(once[report], "folds, one shuffle") ||
			strings.Contains(once[report], "95 % range") {
			t.Errorf("%s of one shuffle, want no 95 %% range:\n%s", report, once["report.txt"])
		}
		if !strings.Contains(twice[report], "median and 95 % range of 2 shuffles") {
			t.Errorf("%s of two shuffles, want a 95 %% range:\n%s", report, twice["report.txt"])
		}
	}
	if !strings.Contains(once["report.json"], `"low": null`) {
		t.Error("report.json has a range of one shuffle")
	}
}

func TestRegressorFit_PageHasEveryPlot(t *testing.T) {
	files := fitTable(t, []string{
		"batch", "cpu", "njobs", "network", "seconds",
	}, studyLike(aboutTheStudy), "--target", "seconds", "--features", "batch,cpu,njobs,network",
		"--family", "law", "--unit", "s")
	page := files["report.html"]
	for _, want := range []string{
		"Held-out configurations: prediction, and line to the bound at 0.9", "Residuals by batch",
		"Residuals by cpu", "Residuals by njobs", "Residuals by network",
		"Permutation importance", "Coverage", "Partial dependence on batch", "Partial dependence on network",
		"prefers-color-scheme:dark", "Interpolation and extrapolation", ">512</text>",
		">simplenet</text>",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q", want)
		}
	}
	if strings.Contains(page, "http://") || strings.Contains(page, "https://") ||
		strings.Contains(page, "<script") {
		t.Error("the page loads other files")
	}
}

// The report warns if the features do not explain the target.
func TestRegressorFit_WarnsOfUselessFeatures(t *testing.T) {
	header, features := []string{
		"batch", "cpu", "njobs", "network", "y",
	}, []string{"--target", "y", "--features", "batch,cpu,njobs,network", "--family", "law"}
	files := fitTable(t, header, studyLike(func(float64, float64, int, int) float64 {
		return 12.5
	}), features...)
	for _, report := range []string{"report.txt", "report.html"} {
		if !strings.Contains(files[report], "All examples had the same y") {
			t.Errorf("%s does not report that the target is constant", report)
		}
	}
	random := uint64(1)
	files = fitTable(t, header, studyLike(func(float64, float64, int, int) float64 {
		random = random*6364136223846793005 + 1442695040888963407
		return 10 + float64(random>>60)
	}), features...)
	for _, report := range []string{"report.txt", "report.html"} {
		if !strings.Contains(files[report], "Warning: ") {
			t.Errorf("%s does not warn of noise:\n%s", report, files["report.txt"])
		}
	}
}

// Durations of 0, ratios above 1 and text in numeric columns are dropped and counted.
func TestRegressorFit_DropsImpossibleExamples(t *testing.T) {
	for _, c := range []struct{ unit, bad, says string }{{
		"s",
		"0",
		"1 examples were dropped: target is 0 or below",
	}, {"ratio", "1.5", "1 examples were dropped: target is above 1"},
		{
			"ratio",
			"-0.5",
			"1 examples were dropped: target is below 0",
		}, {
			"",
			"NaN",
			"1 examples were dropped: target is NaN",
		}, {"", "inf", "1 examples were dropped: target is above"}} {
		rows := studyLike(func(batch, cpus float64, jobs, network int) float64 {
			return 0.5 + 0.3*math.Sin(batch/100+cpus)
		})
		rows[7][4] = c.bad
		files := fitTable(t, []string{
			"batch", "cpu", "njobs", "network", "y",
		}, rows, "--target", "y", "--features", "batch,cpu,njobs,network", "--family", "law",
			"--unit", c.unit)
		if !strings.Contains(files["report.txt"], c.says) {
			t.Errorf("a %s of %s: %q is missing in\n%s", c.unit, c.bad, c.says, files["report.txt"])
		}
		var told struct {
			Dropped []regress.Dropped `json:"dropped"`
		}
		if err := json.Unmarshal([]byte(files["report.json"]), &told); err != nil ||
			len(told.Dropped) != 1 || told.Dropped[0].Count != 1 {
			t.Errorf("report.json = %+v, %v, want one dropped example", told, err)
		}
	}
}

// A cancelled fit leaves no directory, and a repeated one replaces all files.
func TestRegressorFit_ReplacesTheDirectoryAsAWhole(t *testing.T) {
	dir := t.TempDir()
	table, out := filepath.Join(dir, "runs.csv"), filepath.Join(dir, "fitted")
	var b bytes.Buffer
	if err := csv.NewWriter(&b).WriteAll(append([][]string{{
		"batch",
		"cpu",
		"njobs",
		"network",
		"s",
	}}, studyLike(aboutTheStudy)...)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(table, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	fit := func(ctx context.Context, family string) error {
		return run(ctx, []string{
			"regressor", "fit", "--examples", table, "--target", "s", "--features",
			"batch,cpu,njobs,network", "--family", family,
			"--shuffles", "1", "--no-progress", "--out", out,
		}, os.Getenv, &bytes.Buffer{},
			&bytes.Buffer{})
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := fit(ended, "law"); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled fit: %v, want canceled", err)
	}
	if _, err := os.Stat(out); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a cancelled fit leaves its directory: %v", err)
	}
	for _, family := range []string{"law", "forest"} {
		if err := fit(context.Background(), family); err != nil {
			t.Fatal(err)
		}
		p, err := loadRegressor(out)
		if err != nil || !strings.HasPrefix(p.Manifest().Family, family) {
			t.Errorf("regressor after a fit of %s = %v, %v, want this family", family, p, err)
		}
		if files, err := os.ReadDir(out); err != nil || len(files) != 5 {
			t.Errorf("%d files in the directory, %v, want 5", len(files), err)
		}
	}
}
