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

// Path reads a file, or a directory of MLflow or Spark, in a format or FormatAuto.
func (r *Reader) Path(format, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if info.IsDir() {
		if format != FormatAuto && format != FormatMLflow && format != FormatSpark {
			return fmt.Errorf("%s is a directory: name its files, or --format mlflow or spark", path)
		}
		return r.Directory(format, filepath.ToSlash(path), os.DirFS(path))
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close() // Nothing is written.
	in := bufio.NewReaderSize(file, 64<<10)
	if format == FormatAuto {
		begin, err := in.Peek(64 << 10)
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read %s: %w", path, err)
		}
		if format = Detect(path, begin); format == "" {
			return fmt.Errorf("%s has an unknown format: set --format", path)
		}
	}
	return r.File(format, filepath.ToSlash(path), in)
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
