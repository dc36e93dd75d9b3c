package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"

	"courier/report/columns"
	"courier/schemas"
	"courier/services"
)

// version and commit are set when a release is built:
// -ldflags "-X main.version=1.2.3 -X main.commit=8cdb311f0a52".
var version, commit = "", ""

type environment struct {
	ctx            context.Context
	stdout, stderr io.Writer
	getenv         func(string) string
	log            *slog.Logger
	logFlags       []string // flags of log, for a child process
}

// buildVersion returns release and commit as a semantic version, such as 1.2.3+8cdb311f0a52.
// Without a release it is 0.0.0-dev; the commit may be unknown.
func buildVersion() string {
	release, revision := cmp.Or(version, "0.0.0-dev"), commit
	if info, ok := debug.ReadBuildInfo(); ok && revision == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = s.Value
			}
		}
	}
	if revision == "" {
		return release
	}
	return release + "+" + revision[:min(len(revision), 12)]
}

// nodeName returns the given name as a valid node name, because names in Kubernetes may have dots;
// without one it returns the name of the host.
func nodeName(given string) (string, error) {
	if given == "" {
		return schemas.LocalNodeName()
	}
	return schemas.NodeName(given), nil
}

// outputFlags are the flags of commands that print a result.
type outputFlags struct {
	Output string `short:"o" group:"output" help:"Output format (table, json, csv)." enum:"table,json,csv" default:"table" env:"COURIER_OUTPUT"`
}

// print prints a result as JSON or CSV, or the text that a function writes, fitted to the terminal.
func (f outputFlags) print(w *environment, v any, text func(io.Writer)) error {
	all, err := f.render(w, v, text)
	_, writing := io.WriteString(w.stdout, all)
	return errors.Join(err, writing)
}

// render returns what print prints.
func (f outputFlags) render(w *environment, v any, text func(io.Writer)) (string, error) {
	var b strings.Builder
	switch f.Output {
	case "json":
		e := json.NewEncoder(&b)
		e.SetIndent("", "  ")
		err := e.Encode(v)
		return b.String(), err
	case "csv":
		err := writeCSV(&b, v)
		return b.String(), err
	}
	text(&b)
	return w.layout().Format(schemas.Printable(b.String())), nil
}

// writeCSV writes a result by its method WriteCSV, or else with a column for each field.
func writeCSV(out io.Writer, v any) error {
	if own, ok := v.(interface{ WriteCSV(out io.Writer) error }); ok {
		return own.WriteCSV(out)
	}
	return columns.CSV(out, v)
}

// layout returns how text is shown on the standard output.
func (w *environment) layout() columns.Layout {
	width := services.TerminalWidth(w.stdout)
	return columns.Layout{
		Width: width,
		Color: width > 0 && w.getenv("NO_COLOR") == "" && w.getenv("TERM") != "dumb",
	}
}

// writeOut writes a file atomically; the path - is standard output.
func writeOut(w *environment, path string, write func(out io.Writer) error) (err error) {
	if path == "-" {
		return write(w.stdout)
	}
	file, err := createBeside(path)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := write(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if err := errors.Join(file.Chmod(0o644), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

// createBeside creates the temporary file that replaces a file when it is complete. Its error names
// the file, not the temporary one.
func createBeside(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory, want a file", path)
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".courier-*")
	if cause, ok := errors.AsType[*fs.PathError](err); ok {
		return nil, fmt.Errorf("create %s: %w", path, cause.Err)
	}
	return file, err
}

// checkOut returns an error if writeOut could not create a file, so that a long computation need not
// run in vain.
func checkOut(path string) error {
	if path == "" || path == "-" {
		return nil
	}
	file, err := createBeside(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Close(), os.Remove(file.Name()))
}
