package main

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"log/slog"
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
	switch f.Output {
	case "json":
		e := json.NewEncoder(w.stdout)
		e.SetIndent("", "  ")
		return e.Encode(v)
	case "csv":
		return writeCSV(w.stdout, v)
	}
	var b strings.Builder
	text(&b)
	_, err := io.WriteString(w.stdout, w.layout().Format(schemas.Printable(b.String())))
	return err
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
