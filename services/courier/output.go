package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// outputFlags are the flags of commands that print a result.
type outputFlags struct {
	Output string `short:"o" group:"output" help:"Output format (text, json)." enum:"text,json" default:"text" env:"COURIER_OUTPUT"`
}

// print prints a value as JSON, or calls text.
func (f outputFlags) print(out io.Writer, v any, text func(io.Writer) error) error {
	if f.Output == "json" {
		return indented(out, v)
	}
	return text(out)
}

// indented writes indented JSON.
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
