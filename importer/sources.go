package importer

import (
	"bufio"
	"bytes"
	"context"
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

// Path reads a file.
func (r *Reader) Path(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close() // Nothing is written.
	return r.File(filepath.ToSlash(name), file)
}

// File reads a file in the format of its first bytes. It returns only I/O errors and invalid options;
// Finish returns rejected runs.
func (r *Reader) File(name string, file io.Reader) error {
	in := bufio.NewReaderSize(file, 64<<10)
	begin, _ := in.Peek(in.Size()) // the format's reader gets an error again
	firstLine, _, _ := bytes.Cut(bytes.TrimSpace(comments.ReplaceAll(begin, nil)), []byte("\n"))
	firstLine = bytes.TrimSpace(firstLine)
	extension := strings.ToLower(path.Ext(name))
	isTable := extension == ".csv" || extension == ".tsv"
	t := &table{Reader: r, name: name, open: map[string]*epochRun{}}
	t.names = names{values: t.sampled, requested: r.o.Columns}
	read := t.csv
	switch {
	case pbsLine.Match(firstLine):
		read = t.pbs
	case bytes.HasPrefix(firstLine, []byte("Accounting information about jobs")):
		t.unreadable("the report of bacct has no years in its dates: import what bjobs -a -json -o" +
			" 'jobid job_name stat run_time start_time finish_time slots command' prints")
		return nil
	case rule.Match(firstLine) && !isTable:
		read = t.blocks
	case bytes.HasPrefix(bytes.TrimLeft(begin, "[ \t\r\n"), []byte("{")) && !isTable:
		read = t.json
	case bytes.Count(firstLine, []byte(":")) > 40:
		t.unreadable("the accounting file of SGE is not read: import what qacct -j prints")
		return nil
	}
	if err := read(in); err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return t.end()
}

// comments matches lines of comments at the begin of a source.
var comments = regexp.MustCompile(`^(?:\s*#.*\n)+`)

// unreadable records that none of the lines of the source can be read.
func (t *table) unreadable(problem string) {
	t.found.Unreadable++
	t.refuse(Place{File: t.name, Line: 1}, refuse(ReasonUnreadable, "", "%s", problem))
}

// maxLine is the maximum length of a line; one line may be a whole document.
const maxLine = 16 << 20

// eachLine calls do for every line that is not blank, with its number from 1. The line is valid only
// during the call. A line above maxLine is an error.
func eachLine(in io.Reader, do func(number int, line []byte)) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxLine)
	number := 1
	for ; lines.Scan(); number++ {
		if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 {
			do(number, text)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", number, err)
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
	return r.File("sacct", &out)
}
