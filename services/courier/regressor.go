package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"courier/regress"
	"courier/regress/table"
)

// regressorCommand shows and changes the regressors of a cluster, and fits and uses regressors on
// files without a server.
type regressorCommand struct {
	List     regressorList     `cmd:"" help:"List the regressors of a cluster: champions, challengers, former and rejected ones."`
	Show     regressorShow     `cmd:"" help:"Show the history of a regressor of a cluster, or the regressor in a directory."`
	Train    regressorTrain    `cmd:"" help:"Fit the regressors of a cluster now."`
	Promote  regressorPromote  `cmd:"" help:"Make an earlier regressor the champion."`
	Rollback regressorRollback `cmd:"" help:"Make the previous champion the champion again."`
	Report   regressorReport   `cmd:"" help:"Write the history of the regressors of a cluster as an HTML page."`

	Fit     regressorFit     `cmd:"" help:"Choose and fit a regressor from a table of examples." group:"files"`
	Predict regressorPredict `cmd:"" help:"Add predictions, bounds and probabilities to a table." group:"files"`
	Compare regressorCompare `cmd:"" help:"Compare two regressors on the same examples." group:"files"`
	Export  regressorExport  `cmd:"" help:"Write a regressor for another program." group:"files"`
}

// The files of a regressor's directory.
const (
	modelFile    = "regressor.txt"
	manifestFile = "manifest.json"
)

// examplesFlags are the flags of commands that read examples.
type examplesFlags struct {
	Examples string            `help:"Table to read, CSV with a header line or JSON lines; - is standard input." required:"" placeholder:"FILE"`
	Where    map[string]string `help:"Only use rows with these values, such as time_suspect=0." placeholder:"COLUMN=VALUE"`
}

func (f *examplesFlags) read() (*table.Table, error) {
	in := io.Reader(os.Stdin)
	if f.Examples != "-" {
		file, err := os.Open(f.Examples)
		if err != nil {
			return nil, err
		}
		defer file.Close() // Nothing is written.
		in = file
	}
	t, err := table.Read(in)
	if err == nil {
		err = t.Where(f.Where)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.Examples, err)
	}
	return t, nil
}

// loadRegressor reads a directory that courier regressor fit wrote.
func loadRegressor(dir string) (*regress.Predictor, error) {
	model, err := os.ReadFile(filepath.Join(dir, modelFile))
	if err != nil {
		return nil, err
	}
	manifest, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return nil, err
	}
	p, err := regress.Load(model, manifest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return p, nil
}

func checkConfidence(c float64) error {
	if !(c > 0 && c < 1) {
		return fmt.Errorf("confidence is %g, want a number between 0 and 1", c)
	}
	return nil
}
