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
	begin, err := in.Peek(64 << 10)
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read %s: %w", name, err)
	}
	extension := strings.ToLower(path.Ext(name))
	isTable := extension == ".csv" || extension == ".tsv"
	firstLine, _, _ := bytes.Cut(begin, []byte("\n"))
	switch {
	case pbsLine.Match(bytes.TrimSpace(firstLine)):
		return r.pbs(name, in)
	case rule.Match(bytes.TrimSpace(firstLine)) && !isTable:
		return r.blocks(name, in)
	case !isTable && bytes.HasPrefix(bytes.TrimLeft(begin, "[ \t\r\n"), []byte("{")):
		return r.json(name, in)
	}
	return r.csv(name, in)
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
	return r.csv("sacct", &out)
}
