package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"strings"

	"courier/schemas"
)

// version and commit are set when a release is built:
// -ldflags "-X main.version=1.2.3 -X main.commit=8cdb311f0a52".
var version, commit = "", ""

// environment is the environment of a sub-command.
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

// plain returns the text of an error for users, without the code of a schemas.Error.
func plain(err error) string {
	var refusal *schemas.Error
	if errors.As(err, &refusal) && refusal.Code != schemas.CodeInternal {
		if refusal.Field != "" {
			return refusal.Field + ": " + refusal.Message
		}
		return refusal.Message
	}
	return err.Error()
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

// example returns the end of the help of a command: command lines to copy.
func example(lines ...string) string {
	title := "Example:"
	if len(lines) > 1 {
		title = "Examples:"
	}
	return title + "\n  " + strings.Join(lines, "\n  ")
}
