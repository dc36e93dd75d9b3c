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
	"regexp"
	"slices"
	"strings"
)

// ParseNames compiles a pattern for Options.Names. Its groups must be fields.
func ParseNames(pattern string) (*regexp.Regexp, error) {
	names, err := regexp.Compile(pattern)
	if err != nil {
		return nil, err
	}
	for _, group := range names.SubexpNames()[1:] {
		if group != "" && !slices.Contains(Fields(), group) {
			return nil, fmt.Errorf("the group %q is not a field; want one of %s",
				group, strings.Join(Fields(), ", "))
		}
	}
	return names, nil
}

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

// Formats of sources.
const (
	FormatAuto   = "auto"   // detected by file name and content
	FormatCSV    = "csv"    // one row per run or epoch
	FormatJSON   = "json"   // one line per run or event
	FormatBigDL  = "bigdl"  // the log of a BigDL driver: one run
	FormatMLflow = "mlflow" // the directory of MLflow's file store
	FormatSlurm  = "slurm"  // the output of sacct --parsable2
	FormatPBS    = "pbs"    // the accounting log of PBS
)

// Detect returns the format of a file according to its name and first bytes, or "".
func Detect(name string, begin []byte) string {
	text := string(begin)
	switch extension := strings.ToLower(path.Ext(name)); {
	case isSacct(text):
		return FormatSlurm
	case pbsLine.MatchString(firstOf(text)):
		return FormatPBS
	case strings.Contains(text, "][Wall Clock "):
		return FormatBigDL
	case extension == ".csv" || extension == ".tsv":
		return FormatCSV
	case strings.HasPrefix(strings.TrimLeft(text, "[ \t\r\n"), "{"):
		return FormatJSON
	case extension == ".log":
		return FormatBigDL
	}
	return ""
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

// File reads a source of a format other than FormatAuto and FormatMLflow. It returns only I/O
// errors and invalid options; Finish returns rejected runs.
func (r *Reader) File(format, name string, in io.Reader) error {
	if format == FormatCSV {
		return r.csv(name, in)
	}
	if format == FormatJSON {
		return r.json(name, in)
	}
	if len(r.o.Where) > 0 {
		return errNoRows(name)
	}
	switch format {
	case FormatBigDL:
		return r.bigdl(name, in)
	case FormatSlurm:
		return r.slurm(name, in)
	case FormatPBS:
		return r.pbs(name, in)
	}
	return fmt.Errorf("%s: no file can have the format %s", name, format)
}

// errNoRows is the error of --where for a source without rows.
func errNoRows(name string) error {
	return fmt.Errorf("%s: --where selects only rows of CSV and JSON files", name)
}

// Path reads a file, or a directory of MLflow, in a format or FormatAuto.
func (r *Reader) Path(format, name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if format != FormatAuto && format != FormatMLflow {
			return fmt.Errorf("%s is a directory: name its files, or --format mlflow", name)
		}
		return r.Directory(filepath.ToSlash(name), os.DirFS(name))
	}
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() // Nothing is written.
	in := bufio.NewReaderSize(file, 64<<10)
	if format == FormatAuto {
		begin, err := in.Peek(64 << 10)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if format = Detect(name, begin); format == "" {
			return fmt.Errorf("%s has an unknown format: set --format", name)
		}
	}
	return r.File(format, filepath.ToSlash(name), in)
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
