package importer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"courier/importer"
)

// The tables of foreign programs in the shared folder are read as their descriptions say.
func TestReader_FieldCases(t *testing.T) {
	files, _ := filepath.Glob("../../shared/data/field-cases/tab_*.json")
	if len(files) == 0 {
		t.Skip("the tables of foreign programs are not available")
	}
	for _, file := range files {
		var c struct {
			Command string
			Expect  map[string]any
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		words := strings.Fields(c.Command)
		if len(words) < 2 || words[1] != "import" {
			continue // for --metrics-file, in package output
		}
		o := importer.Options{Now: now, Since: since, Defaults: map[string]string{}, Columns: map[string]string{}}
		for i, word := range words[:len(words)-1] {
			switch next := words[i+1]; word {
			case "--time-zone":
				o.Zone = time.UTC
			case "--model", "--epochs", "--cpus", "--batch-size":
				o.Defaults[strings.ReplaceAll(word[2:], "-", "_")] = next
			case "--columns":
				for pair := range strings.SplitSeq(next, ",") {
					field, name, _ := strings.Cut(pair, "=")
					o.Columns[field] = name
				}
			}
		}
		table, err := os.ReadFile(strings.TrimSuffix(file, ".json") + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		name := words[len(words)-1]
		found := read(t, o, name, string(table))
		if problem := differs(c.Expect, found); problem != "" {
			t.Errorf("%s: %s:\n%s", filepath.Base(file), problem, brief(found))
		}
	}
}

// differs compares a result with the description of a case.
func differs(expect map[string]any, found importer.ReadResult) string {
	for key, want := range expect {
		var got any
		switch {
		case key == "runs" || key == "imported":
			got = float64(len(found.Runs))
		case key == "pruned":
			got = float64(len(found.Refused))
		case len(found.Runs) == 0:
			got = "no run"
		case key == "epochs":
			got = float64(len(found.Runs[0].Epochs))
		case strings.HasPrefix(key, "accuracy"):
			all := []any{}
			for _, e := range found.Runs[0].Epochs {
				all = append(all, *e.Accuracy)
			}
			got = all
		default:
			continue
		}
		if !reflect.DeepEqual(got, want) {
			return fmt.Sprintf("%s is %v, want %v", key, got, want)
		}
	}
	return ""
}
