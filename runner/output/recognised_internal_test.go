package output

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// docs/reference/recognised.md lists what is read of the captured output of each framework. The
// frameworks and their versions are those of the README of the folder.
func TestRecognised_IsDocumented(t *testing.T) {
	const folder = "../../../shared/data/framework-output"
	readme, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Skip("there is no ../shared/data/framework-output")
	}
	var b strings.Builder
	b.WriteString(`# Recognised output

` + "`courier run`" + ` recognizes epochs by the structure of the output, see
[Let Courier see the epochs](../howto/run-a-script.md#let-courier-see-the-epochs). This page lists
what it reads of the default output of these frameworks, on a pipe. A test writes the page.

| output | framework | epochs | loss | accuracy | metric |
| --- | --- | --- | --- | --- | --- |
`)
	for line := range strings.Lines(string(readme)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		name, framework := strings.TrimSpace(cells[1]), strings.TrimSpace(cells[2])
		text, err := os.ReadFile(filepath.Join(folder, name+".txt"))
		if err != nil {
			continue // the head of the table
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, framework, readOf(t, requestedOf(name), text))
	}

	const page = "../../docs/reference/recognised.md"
	if os.Getenv("COURIER_UPDATE") != "" {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("COURIER_UPDATE=1 writes the page (-want +got):\n%s", diff)
	}
}

// requestedOf returns the epochs of a captured training, by its README.
func requestedOf(name string) int {
	switch name {
	case "sklearn-mlpclassifier", "xgboost", "lightgbm", "catboost":
		return 6
	case "huggingface-trainer", "spark-mllib":
		return 8
	case "bigdl-lenet":
		return 2
	}
	return 4
}

// readOf returns the number of epochs of an output, and in how many of them each value is read.
func readOf(t *testing.T, requested int, text []byte) string {
	t.Helper()
	reports := replay(t, text, truth{Requested: requested}, false)
	losses, accuracies, metric := 0, 0, "–"
	for _, r := range reports {
		losses += boolInt(r.Loss != nil)
		accuracies += boolInt(r.Accuracy != nil)
		if r.Metric.Name != "" {
			metric = r.Metric.Name
		}
	}
	if len(reports) == 0 {
		return "none | – | – | –"
	}
	return fmt.Sprintf("%d | %d | %d | %s", len(reports), losses, accuracies, metric)
}
