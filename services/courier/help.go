package main

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type loggingFlags struct {
	LogLevel  string `group:"logging" help:"Minimum log level (debug, info, warn, error)." default:"warn" env:"COURIER_LOG_LEVEL"`
	LogFormat string `group:"logging" help:"Log format (auto, text, json); auto is text on a terminal." default:"auto" env:"COURIER_LOG_FORMAT"`
}

// sharedFlags are the flags that several commands have. The help of a command leaves them out;
// courier help flags describes them.
type sharedFlags struct {
	natsFlags
	userFlag
	clickHouseFlags
	loggingFlags
	outputFlags
	outputFormatFlags
	terminalFlags
	nodeFlags
}

var sharedGroups = []kong.Group{
	{Key: "nats", Title: "Connection to NATS:"},
	{Key: "clickhouse", Title: "Connection to ClickHouse:"},
	{Key: "logging", Title: "Logging:"},
	{Key: "output", Title: "Output of courier:"},
	{Key: "node", Title: "This node, in courier run, collector and all:"},
	{Key: "training", Title: "Output of a training command, of run, explore and tune:"},
}

// commandGroups are the groups of commands, by who uses them.
var commandGroups = []kong.Group{
	{Key: "start", Title: "Try Courier:"},
	{Key: "jobs", Title: "Jobs with deadlines, for ML engineers:"},
	{Key: "studies", Title: "Studies and simulations, for researchers and analysts:"},
	{Key: "regressors", Title: "Regressors, for platform engineers:"},
	{Key: "services", Title: "Services of a cluster, for platform engineers:"},
	{Key: "operation", Title: "Operation of a cluster, for platform engineers:"},
	{Key: "help", Title: "Help:"},
}

// helpTexts has a section for each command, with the details and the examples of its help.
//
//go:embed help.txt
var helpTexts string

// describe sets the details of all commands, and hides their shared flags.
func describe(n *kong.Node) {
	_, text, _ := strings.Cut("\n"+helpTexts, "\n# "+n.Path()+"\n")
	text, _, _ = strings.Cut(text, "\n\n# ")
	n.Detail = strings.TrimSpace(text)
	for _, f := range n.Flags {
		f.Hidden = f.Hidden || isShared(f)
	}
	for _, child := range n.Children {
		describe(child)
	}
}

func isShared(f *kong.Flag) bool {
	return f.Group != nil && slices.ContainsFunc(sharedGroups, func(g kong.Group) bool {
		return g.Key == f.Group.Key
	})
}

func printHelp(o kong.HelpOptions, c *kong.Context) error {
	if err := kong.DefaultHelpPrinter(o, c); err != nil {
		return err
	}
	if selected := c.Selected(); selected != nil && selected.DefaultCmd != nil {
		words := append(strings.Fields(command(c)), selected.DefaultCmd.Name)
		without, err := kong.Trace(c.Kong, words)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.Stdout, "\nThe default command is courier %s:\n\n", strings.Join(words, " "))
		if err := kong.DefaultHelpPrinter(o, without); err != nil {
			return err
		}
	}
	fmt.Fprintln(c.Stdout, "\nSee courier help flags for connection, logging and output flags.")
	return nil
}

// command returns the name of the sub-command that was being parsed.
func command(c *kong.Context) string {
	var words []string
	for _, p := range c.Path {
		if p.Command != nil {
			words = append(words, p.Command.Name)
		}
	}
	return strings.Join(words, " ")
}

// helpCommand describes the shared flags. The help of a command is that of its flag --help, see
// helpWords.
type helpCommand struct {
	Topic []string `arg:"" optional:"" passthrough:"" help:"A command; flags for the flags that several commands have; or completion with bash, zsh or fish."`
}

func (c *helpCommand) Run(w *environment) error {
	switch {
	case slices.Equal(c.Topic, []string{"flags"}):
		return printSharedFlags(w)
	case len(c.Topic) > 1 && c.Topic[0] == "completion" && completionScripts[c.Topic[1]] != "":
		return printCompletion(w, c.Topic[1], trainingCommand(c.Topic[2:]))
	}
	return usagef("no help for %q: see courier help", strings.Join(c.Topic, " "))
}

// printSharedFlags prints the shared flags by group.
func printSharedFlags(w *environment) error {
	parser, err := newSharedParser(w)
	if err != nil {
		return err
	}
	shared, err := kong.Trace(parser, nil)
	if err != nil {
		return err
	}
	return shared.PrintUsage(false)
}

// newSharedParser returns a parser of the shared flags alone.
func newSharedParser(w *environment) (*kong.Kong, error) {
	return kong.New(&sharedFlags{},
		kong.Name("courier COMMAND"),
		kong.Description("Flags that several commands have."),
		kong.NoDefaultHelp(),
		kong.ExplicitGroups(sharedGroups),
		kong.Writers(w.stdout, w.stderr),
	)
}

// helpWords returns the words of a command line. Before or after the name of a command, the word
// help becomes the flag --help.
func helpWords(app *kong.Node, args []string) []string {
	at := slices.Index(args, "help")
	if at < 0 || at > 0 && at < len(args)-1 {
		return args
	}
	if name := slices.Delete(slices.Clone(args), at, at+1); isCommand(app, name) {
		return append(name, "--help")
	}
	return args
}

// isCommand reports whether the words are the name of a command.
func isCommand(n *kong.Node, words []string) bool {
	for _, word := range words {
		at := slices.IndexFunc(n.Children, func(child *kong.Node) bool { return child.Name == word })
		if at < 0 {
			return false
		}
		n = n.Children[at]
	}
	return true
}

type versionCommand struct{}

func (*versionCommand) Run(w *environment) error {
	_, err := fmt.Fprintln(w.stdout, buildVersion())
	return err
}
