package instrument_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/runner/instrument"
	"courier/runner/output"

	"github.com/google/go-cmp/cmp"
)

// recognisedPage has what is read of each framework. COURIER_UPDATE=1 writes it.
const recognisedPage = "../../docs/reference/recognised.md"

const pageHead = `# What is read of each framework

A test runs a training with each framework, and lists here what Courier reads of it in each way:

- client: the [Python client](../howto/use-the-python-client.md) or its callback;
- instrumentation: what is
  [measured inside the process](../howto/run-a-script.md#how-python-trainings-are-measured);
- metrics file: what a logger writes, by ` + "`--metrics-file`" + `;
- output: what the framework prints by default on a pipe, or what the script's own loop prints.

A dash is what the way does not show in this training. Progress is the position within an epoch,
memory the peak of the process. Rows of names in lower case with only an output are captured ones.
Each row has the versions that were run last.
[How to run the test](../../CONTRIBUTING.md#what-is-read-of-each-framework).

| framework | way | epochs | duration | loss | metric | progress | memory |
| --- | --- | --- | --- | --- | --- | --- | --- |
`

// realTrainings are the scripts in clients/python/tests/recognised, with their epochs and the packages
// whose versions are listed.
var realTrainings = []struct {
	script   string
	epochs   uint32
	name     string
	packages []string
}{
	{"torch_loop", 4, "PyTorch, `DataLoader`", []string{"torch"}},
	{"torch_endless", 4, "PyTorch, endless iterator", []string{"torch"}},
	{"torch_slices", 4, "PyTorch, slices of tensors", []string{"torch"}},
	{"torch_by_hand", 4, "PyTorch, updates by hand", []string{"torch"}},
	{"accelerate_loop", 4, "accelerate", []string{"accelerate", "torch"}},
	{"lightning_fit", 4, "Lightning", []string{"lightning", "torch"}},
	{"huggingface_trainer", 4, "Hugging Face `Trainer`", []string{"transformers", "torch"}},
	{"keras_fit", 4, "Keras `fit`", []string{"keras", "jax"}},
	{"jax_loop", 4, "JAX, loop", []string{"jax"}},
	{"xgboost_train", 12, "XGBoost", []string{"xgboost-cpu"}},
	{"lightgbm_train", 12, "LightGBM", []string{"lightgbm"}},
	{"catboost_fit", 12, "CatBoost", []string{"catboost"}},
	{"sklearn_mlp", 4, "scikit-learn `MLPClassifier`", []string{"scikit-learn"}},
	{"sklearn_partial_fit", 4, "scikit-learn `partial_fit`", []string{"scikit-learn"}},
	{"sklearn_boosting", 12, "scikit-learn `GradientBoosting`", []string{"scikit-learn"}},
}

// row is a line of the page.
type row struct {
	framework, versions, way string
	read                     string // the other cells
}

func (r row) key() string { return r.framework + "|" + r.way }

// TestRecognised_IsDocumented runs the trainings where COURIER_TEST_PYTHON names a Python that has the
// frameworks, and reads the captured output where that exists. Rows of what is not there stay.
func TestRecognised_IsDocumented(t *testing.T) {
	page, err := os.ReadFile(recognisedPage)
	if err != nil {
		t.Fatal(err)
	}
	got := append(runTrainings(t, os.Getenv("COURIER_TEST_PYTHON")), readCaptured(t)...)
	if len(got) == 0 {
		t.Skip("NO FRAMEWORK WAS RUN: COURIER_TEST_PYTHON names no Python that has them, see CONTRIBUTING.md")
	}
	known := rowsOf(string(page))
	for _, r := range got {
		i := slices.IndexFunc(known, func(k row) bool { return k.key() == r.key() })
		switch {
		case i < 0:
			known = append(known, r)
		case os.Getenv("COURIER_UPDATE") != "":
			known[i] = r
		case known[i].read != r.read:
			t.Errorf("%s (%s), %s: read %s, documented %s", r.framework, r.versions, r.way, r.read, known[i].read)
		}
	}
	text := pageOf(known)
	if os.Getenv("COURIER_UPDATE") != "" {
		if err := os.WriteFile(recognisedPage, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(page), text); diff != "" {
		t.Errorf("COURIER_UPDATE=1 writes the page (-want +got):\n%s", diff)
	}
}

// rowsOf returns the rows of a page, and pageOf the page of rows.
func rowsOf(page string) []row {
	var rows []row
	for line := range strings.Lines(page) {
		cells := strings.Split(strings.Trim(line, "| \n"), " | ")
		if len(cells) != 8 || cells[0] == "framework" || strings.HasPrefix(cells[0], "---") {
			continue
		}
		framework, versions, _ := strings.Cut(cells[0], " (")
		rows = append(rows, row{
			framework: framework,
			versions:  strings.TrimSuffix(versions, ")"),
			way:       cells[1],
			read:      strings.Join(cells[2:], " | "),
		})
	}
	return rows
}

func pageOf(rows []row) string {
	text := pageHead
	for _, r := range rows {
		text += fmt.Sprintf("| %s (%s) | %s | %s |\n", r.framework, r.versions, r.way, r.read)
	}
	return text
}

// runTrainings runs each training once, and reads it in each way at the same time.
func runTrainings(t *testing.T, python string) []row {
	t.Helper()
	if python == "" {
		t.Log("NO FRAMEWORK WAS RUN: COURIER_TEST_PYTHON is not set")
		return nil
	}
	var rows []row
	for _, c := range realTrainings {
		versions := versionsOf(t, python, c.packages)
		if versions == "" {
			t.Logf("%s WAS NOT RUN: not installed are some of %q", c.name, c.packages)
			continue
		}
		r := runTraining(t, python, c.script, c.epochs)
		for _, way := range []string{"client", "instrumentation", "metrics file", "output"} {
			read := r[way]
			if read == "" {
				continue
			}
			rows = append(rows, row{framework: c.name, versions: versions, way: way, read: read})
		}
	}
	return rows
}

// versionsOf returns the versions of packages, or nothing if one is missing.
func versionsOf(t *testing.T, python string, packages []string) string {
	t.Helper()
	const code = `
import importlib.metadata as m, sys
try:
    print(", ".join(p + " " + m.version(p).split("+")[0] for p in sys.argv[1:]))
except m.PackageNotFoundError:
    pass`
	out, err := exec.CommandContext(t.Context(), python, append([]string{"-c", code}, packages...)...).Output()
	if err != nil {
		t.Fatalf("%s: %v", python, err)
	}
	return strings.TrimSpace(string(out))
}

// runTraining returns the cells of the page, by the way in which the training is read.
func runTraining(t *testing.T, python, script string, epochs uint32) map[string]string {
	t.Helper()
	work := t.TempDir()
	inside, client := listen(t), listen(t)
	site, err := instrument.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	sources, err := filepath.Abs("../../clients/python")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, filepath.Join(sources, "tests", "recognised", script+".py"))
	cmd.Dir = work
	cmd.Env = instrument.Environment(append(os.Environ(), "PYTHONPATH="+filepath.Join(sources, "src"),
		"COURIER_CHANNEL="+client.path, "COURIER_INSTRUMENT_DEBUG=1", "KERAS_BACKEND=jax", "OMP_NUM_THREADS=1",
		"HF_HUB_OFFLINE=1", "TOKENIZERS_PARALLELISM=false", "PYTHONDONTWRITEBYTECODE=1", "PYTHONUNBUFFERED=1",
		"CUDA_VISIBLE_DEVICES="), site, inside.path)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	text, err := output.New("")
	if err != nil {
		t.Fatal(err)
	}
	text.SetEpochs(epochs)
	var printed []output.EpochReport
	for s := bufio.NewScanner(stdout); s.Scan(); {
		printed = append(printed, text.Write(0, append(s.Bytes(), '\n'), time.Now())...)
	}
	if err := cmd.Wait(); err != nil || strings.Contains(stderr.String(), "courier_instrument") {
		t.Errorf("%s: %v\n%s", script, err, stderr.String())
	}
	// Some frameworks log to standard error; one reading of it is enough.
	for line := range bytes.Lines(stderr.Bytes()) {
		printed = append(printed, text.Write(1, line, time.Now())...)
	}
	printed = append(printed, text.Close(time.Now(), true)...)

	read := map[string]string{
		"client":       cellsOf(client.epochs(output.NewChannel()), "reported", "–", "–"),
		"metrics file": cellsOf(logged(t, work), "by its rows", "–", "–"),
		"output":       cellsOf(printed, "by arrival", "–", "–"),
	}
	read["instrumentation"] = inside.measured()
	return read
}

// cellsOf returns the cells about the last epoch, or nothing if there is none.
func cellsOf(reports []output.EpochReport, duration, progress, memory string) string {
	if len(reports) == 0 {
		return ""
	}
	last := &reports[len(reports)-1]
	loss, metric, number := "–", "–", last.Epoch
	if reports[0].Epoch == 0 {
		number++ // it counts from 0
	}
	if last.Loss != nil {
		loss = "yes"
	}
	if last.Metric.Name != "" {
		metric = last.Metric.Name
	}
	return strings.Join([]string{fmt.Sprint(number), duration, loss, metric, progress, memory}, " | ")
}

// logged returns the epochs in the files that a logger wrote.
func logged(t *testing.T, dir string) []output.EpochReport {
	t.Helper()
	var reports []output.EpochReport
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if name := entry.Name(); name == "log.csv" || name == "metrics.csv" {
			g := output.NewLog()
			reports = append(g.Write(data, time.Now()), g.Close(time.Now())...)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return reports
}

// readCaptured reads the captured output of frameworks that are not run.
func readCaptured(t *testing.T) []row {
	t.Helper()
	const folder = "../../../shared/data/framework-output"
	captured := map[string]uint32{
		"sklearn-gridsearchcv": 6, "pytorch-quickstart": 4, "pytorch-one-line": 4, "pytorch-tqdm": 4,
		"keras-verbose1": 4, "jax-flax-loop": 4, "fastai": 4, "torchrun-ddp": 4, "spark-mllib": 8, "bigdl-lenet": 2,
	}
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Log("no captured output was read: there is no ../shared/data/framework-output")
		return nil
	}
	versions := map[string]string{}
	for line := range strings.Lines(string(readme)) {
		if cells := strings.Split(line, "|"); len(cells) > 3 {
			framework, _, _ := strings.Cut(cells[2], "(")
			versions[strings.TrimSpace(cells[1])] = strings.TrimSpace(framework)
		}
	}
	var rows []row
	for _, name := range slices.Sorted(maps.Keys(captured)) {
		text, err := os.ReadFile(filepath.Join(folder, name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		p, err := output.New("")
		if err != nil {
			t.Fatal(err)
		}
		p.SetEpochs(captured[name])
		var reports []output.EpochReport
		at := start
		for line := range bytes.Lines(text) {
			for part := range bytes.SplitAfterSeq(line, []byte("\r")) {
				at = at.Add(50 * time.Millisecond)
				reports = append(reports, p.Write(0, part, at)...)
			}
		}
		reports = append(reports, p.Close(at, true)...)
		read := cellsOf(reports, "by arrival", "–", "–")
		if read == "" {
			read = "– | – | – | – | – | –"
		}
		rows = append(rows, row{framework: name, versions: versions[name], way: "output", read: read})
	}
	return rows
}
