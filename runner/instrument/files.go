package instrument

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"courier/clients/python"
)

// Variable is the environment variable with the path of the Unix socket for messages.
const Variable = "COURIER_INSTRUMENT_CHANNEL"

// starter is the module that Python imports at its start, from a directory in PYTHONPATH.
const starter = "sitecustomize.py"

// Write writes the Python files below a directory, and returns the directory for PYTHONPATH.
func Write(dir string) (string, error) {
	top := filepath.Join(dir, "python")
	pkg := filepath.Join(top, path.Base(python.InstrumentFolder))
	files, err := fs.Sub(python.Instrument, python.InstrumentFolder)
	if err == nil {
		err = os.CopyFS(pkg, files)
	}
	if err == nil {
		err = os.Rename(filepath.Join(pkg, starter), filepath.Join(top, starter))
	}
	if err != nil {
		return "", fmt.Errorf("write the instrumentation: %w", err)
	}
	return top, nil
}

// Environment returns the environment of a job whose Python processes find the files in a directory,
// and send messages to a socket. An empty entry in PYTHONPATH would be the working directory.
func Environment(env []string, dir, socket string) []string {
	const name = "PYTHONPATH="
	search := dir
	for _, v := range env { // the last one counts
		if before, ok := strings.CutPrefix(v, name); ok && before != "" {
			search = dir + string(os.PathListSeparator) + before
		}
	}
	return append(env, name+search, Variable+"="+socket)
}
