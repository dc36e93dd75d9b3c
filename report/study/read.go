package study

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"courier/regress/table"
)

// Limits of a table of runs. They bound the memory of an analysis. Package anova has limits for the
// runs that remain after the mean of jobs that ran together, and for levels and terms.
const (
	MaxRows  = 100_000
	maxBytes = 64 << 20
)

// Read reads a table of runs as CSV. It refuses a table above the limits.
func Read(r io.Reader) (*table.Table, error) {
	bounded := &io.LimitedReader{R: r, N: maxBytes + 1}
	t, err := table.Read(bounded)
	if bounded.N == 0 {
		return nil, fmt.Errorf("the table has more than %d MiB: leave out columns or rows",
			maxBytes>>20)
	}
	if err != nil {
		return nil, err
	}
	return t, checkRows(t)
}

func checkRows(t *table.Table) error {
	if len(t.Rows) > MaxRows {
		return fmt.Errorf("the table has %d rows, want at most %d: analyse a part of the runs",
			len(t.Rows), MaxRows)
	}
	return nil
}

// runsFile is the table in a directory of courier explore.
const runsFile = "runs.csv"

// ReadPath reads a table of runs from a file, from a directory of courier explore, or for "-" from
// in. It also returns the name of the source.
func ReadPath(path string, in io.Reader) (string, *table.Table, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, runsFile)
	}
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return "", nil, err
		}
		defer file.Close() // Nothing is written.
		in = file
	}
	t, err := Read(in)
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", path, err)
	}
	return path, t, nil
}
