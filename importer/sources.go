package importer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// CheckColumns returns an error that names a key of Options.Columns that is not a field.
func CheckColumns(columns map[string]string) error {
	for field := range columns {
		if !slices.Contains(Fields(), field) {
			return fmt.Errorf("%q is not a field; want FIELD=NAME, such as batch_size=bs, with one of %s",
				field, strings.Join(Fields(), ", "))
		}
	}
	return nil
}

// Formats of files.
const (
	formatCSV   = "csv"   // one row per run or epoch
	formatJSON  = "json"  // one line per run or epoch, or a document
	formatSlurm = "slurm" // the output of sacct
	formatPBS   = "pbs"   // the accounting log of PBS
)

// detect returns the format of a file according to its name and first bytes.
func detect(name string, begin []byte) string {
	text := string(begin)
	extension := strings.ToLower(path.Ext(name))
	isTable := extension == ".csv" || extension == ".tsv"
	switch {
	case isSacct(text):
		return formatSlurm
	case pbsLine.MatchString(firstOf(text)):
		return formatPBS
	case !isTable && strings.HasPrefix(strings.TrimLeft(text, "[ \t\r\n"), "{"):
		return formatJSON
	}
	return formatCSV
}

// firstOf returns the first line of a text.
func firstOf(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimRight(line, "\r")
}

// separatorOfSacct returns the separator of a header of sacct: that of --parsable2, or a comma.
func separatorOfSacct(header string) string {
	if strings.Contains(header, "|") {
		return "|"
	}
	return ","
}

// isSacct reports whether a text begins with the header of sacct, with a separator or above dashes.
func isSacct(text string) bool {
	columns := strings.Split(firstOf(text), separatorOfSacct(firstOf(text)))
	if _, rest, _ := strings.Cut(text, "\n"); len(columns) == 1 && strings.HasPrefix(rest, "---") {
		columns = strings.Fields(columns[0])
	}
	return slices.Contains(columns, "State") &&
		(slices.Contains(columns, "JobID") || slices.Contains(columns, "JobIDRaw"))
}

// Path reads a file.
func (r *Reader) Path(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() // Nothing is written.
	return r.File(filepath.ToSlash(name), file)
}

// File reads a file in the format that detect finds. It returns only I/O errors and invalid options;
// Finish returns rejected runs.
func (r *Reader) File(name string, file io.Reader) error {
	in := bufio.NewReaderSize(file, 64<<10)
	begin, err := in.Peek(64 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	switch format := detect(name, begin); {
	case format == formatCSV:
		return r.csv(name, in)
	case format == formatJSON:
		return r.json(name, in)
	case len(r.o.Where) > 0:
		return fmt.Errorf("%s: --where selects only rows of CSV and JSON files", name)
	case format == formatPBS:
		err = r.pbs(name, in)
	default:
		err = r.slurm(name, in)
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

// Sacct reads the jobs of all users that ran since a time, such as now-90days, from the accounting
// of Slurm on this machine. It fails if sacct does.
func (r *Reader) Sacct(ctx context.Context, since string) error {
	cmd := exec.CommandContext(ctx, "sacct", "--allusers", "--parsable2", "--starttime="+since,
		"--format="+strings.Join(SacctFields(), ","))
	cmd.Env = append(os.Environ(), "SLURM_TIME_FORMAT=%s") // seconds since 1970 have no time zone
	var out, problem bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problem
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("sacct: %w: %s", err, strings.TrimSpace(problem.String()))
	}
	return r.slurm("sacct", &out)
}
