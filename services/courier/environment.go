package main

import (
	"bytes"
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

	"courier/schemas"
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

// exitStatus ends the program with the status of a job's command.
type exitStatus int

func (s exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(s)) }

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
	Output string `short:"o" group:"output" help:"Output format (text, json)." enum:"text,json" default:"text" env:"COURIER_OUTPUT"`
}

// print prints a value as JSON, or calls text.
func (f outputFlags) print(out io.Writer, v any, text func(io.Writer) error) error {
	if f.Output == "json" {
		return indented(out, v)
	}
	var b bytes.Buffer
	err := text(&b)
	_, writing := io.WriteString(out, schemas.Printable(b.String()))
	return errors.Join(err, writing)
}

func indented(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	return e.Encode(v)
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
	var cause *fs.PathError
	if errors.As(err, &cause) {
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
