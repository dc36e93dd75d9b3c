package main

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/alecthomas/kong"
)

// dashedValue matches kong's error for a value that it takes for flags, such as -5s.
var dashedValue = regexp.MustCompile(
	`^(--[a-z0-9-]+): expected .* but got "(-[^"]*)" \(short flag.*\); perhaps try `)

// parse turns kong's exit after --help and --version into an error.
func parse(parser *kong.Kong, args []string) (parsed *kong.Context, err error) {
	defer func() {
		if s, ok := recover().(exitStatus); ok {
			err = s
		}
	}()
	parsed, err = parser.Parse(helpWords(parser.Model.Node, args))
	var wrong *kong.ParseError
	if errors.As(err, &wrong) {
		parsed = wrong.Context
	}
	if err != nil {
		if m := dashedValue.FindStringSubmatch(err.Error()); m != nil {
			err = fmt.Errorf("%[1]s: write a value that begins with - as %[1]s=%[2]s", m[1], m[2])
		}
	}
	if flag := unknownFlag(parsed); flag != "" {
		err = fmt.Errorf("unknown flag %s", flag)
	}
	if err != nil && parsed != nil {
		return nil, fmt.Errorf("%w (see %s --help)", err,
			strings.TrimSpace("courier "+command(parsed)))
	}
	return parsed, err
}

// unknownFlag returns the flag at which the parser began to read the training command, because the
// sub-command does not have it; empty if there is none.
func unknownFlag(c *kong.Context) string {
	if c == nil {
		return ""
	}
	for _, p := range c.Path {
		if p.Positional == nil || p.Positional.Name != "command" {
			continue
		}
		words, _ := c.Value(p).Interface().([]string)
		if len(words) > 0 && words[0] != "--" && strings.HasPrefix(words[0], "-") {
			return words[0]
		}
	}
	return ""
}
