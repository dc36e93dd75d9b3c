// Command courier keeps the deadlines of training jobs on a shared cluster. Every service, the
// interactive tools and the local cluster are sub-commands, each in its own file. The command
// connects packages that do not import each other.
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"

	"courier/advisor"
	"courier/schemas"
	"courier/services"
	"courier/simulate"
	"courier/simulate/elastic"

	"github.com/alecthomas/kong"
)

// version and commit are set when a release is built:
// -ldflags "-X main.version=1.2.3 -X main.commit=8cdb311f0a52".
var version, commit = "", ""

func main() {
	if len(os.Args) > 1 && os.Args[1] == engineHostCommand {
		os.Exit(engineHost(os.Args[2:]))
	}
	err := run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	var status exitStatus
	if errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "courier:", plain(err))
		os.Exit(1)
	}
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

// environment is the environment of a sub-command.
type environment struct {
	ctx            context.Context
	stdout, stderr io.Writer
	getenv         func(string) string
	log            *slog.Logger
	logFlags       []string // flags of log, for a child process
}

// cli is the command line.
type cli struct {
	LogLevel  string           `help:"Minimum log level (debug, info, warn, error)." default:"warn" env:"COURIER_LOG_LEVEL"`
	LogFormat string           `help:"Log format (auto, text, json); auto is text on a terminal." default:"auto" env:"COURIER_LOG_FORMAT"`
	Version   kong.VersionFlag `help:"Print the version and exit."`

	All  allCommand  `cmd:"" help:"Run all services in one process, with embedded NATS and ClickHouse."`
	Demo demoCommand `cmd:"" help:"Demonstrate measuring, learning and promising with real training jobs, in about two minutes."`

	Explore exploreCommand `cmd:"" help:"Measure an own training script, and advise which batch size meets which SLO."`
	Tune    tuneCommand    `cmd:"" help:"Tune the hyperparameters of a training command under a deadline or a budget."`
	Run     runCommand     `cmd:"" help:"Run a training command under an SLO."`
	Submit  submitCommand  `cmd:"" help:"Submit a job request and print the advice."`
	Predict predictCommand `cmd:"" help:"Print the advice for a job request without submitting it."`
	Status  statusCommand  `cmd:"" help:"Show the state of a job."`
	ETA     etaCommand     `cmd:"" name:"eta" help:"Show when a running job is predicted to end."`
	Receipt receiptCommand `cmd:"" help:"Summarize an ended job: promise, result, lost time, and what was learned."`
	Jobs    jobsCommand    `cmd:"" help:"List jobs, newest first."`
	Cancel  cancelCommand  `cmd:"" help:"Cancel a job."`
	Score   scoreCommand   `cmd:"" help:"Show SLO attainment and the calibration of probabilities."`
	SQL     sqlCommand     `cmd:"" name:"sql" help:"Query the tables of a local cluster with SQL."`

	Regressor regressorCommand `cmd:"" help:"Show, export and change the regressors of a cluster."`
	Simulate  simulateCommand  `cmd:"" help:"Simulate clusters, and compare rules."`
	Import    importCommand    `cmd:"" help:"Import past runs into the log: CSV, JSON lines, BigDL and Spark logs, MLflow."`
	Replay    replayCommand    `cmd:"" help:"Repeat the decisions of a recorded log, to verify them or to count avoidable late jobs."`
	Anova     anovaCommand     `cmd:"" help:"Analyse which settings influence the time and the accuracy of runs: analysis of variance."`
	Dead      deadCommand      `cmd:"" help:"List, show and replay dead letters: messages that could not be decoded."`
	Streams   streamsCommand   `cmd:"" help:"Compare the streams of the log with their declaration."`

	Collector collectorCommand `cmd:"" help:"Run the collector, which publishes samples of this node." group:"services"`
	Store     storeCommands    `cmd:"" help:"Run the store, which writes the event log to ClickHouse; verify and rebuild the tables." group:"services"`
	Trainer   trainerCommand   `cmd:"" help:"Run the trainer, which fits regressors." group:"services"`
	Advisor   advisorCommand   `cmd:"" help:"Run the advisor, which answers job requests." group:"services"`
	Gateway   gatewayCommand   `cmd:"" help:"Run the gateway, which serves REST and the web page." group:"services"`

	Engine   engineCommand   `cmd:"" help:"Install and show the ClickHouse engine for SQL." group:"parts"`
	Certs    certsCommand    `cmd:"" help:"Create certificates, nkeys, tokens and passwords for a cluster." group:"parts"`
	Workload workloadCommand `cmd:"" help:"Run a built-in training job." group:"parts"`
	Health   healthCommand   `cmd:"" help:"Check the health of a service, for example of a container." group:"parts"`
}

// run parses the command line and runs the sub-command. Signals end its context, except for courier
// run, which forwards them to the command of the job.
func run(
	ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer,
) error {
	var c cli
	parser, err := newParser(&c, stdout, stderr)
	if err != nil {
		return err
	}
	parsed, err := parse(parser, args)
	if err != nil {
		return err
	}
	log, err := services.NewLogger(stderr, c.LogFormat, c.LogLevel)
	if err != nil {
		return err
	}
	if parsed.Selected().Name != "run" {
		var stop context.CancelFunc
		ctx, stop = services.Signals(ctx)
		defer stop()
	}
	return parsed.Run(&environment{
		ctx:      ctx,
		stdout:   stdout,
		stderr:   stderr,
		getenv:   getenv,
		log:      log,
		logFlags: []string{"--log-level=" + c.LogLevel, "--log-format=" + c.LogFormat},
	})
}

// newParser returns the parser of the command line.
func newParser(c *cli, stdout, stderr io.Writer) (*kong.Kong, error) {
	return kong.New(c,
		kong.Name("courier"),
		kong.Description("Courier keeps the deadlines of training jobs on a shared cluster."),
		kong.Vars{
			"version":          buildVersion(),
			"elastic_policies": strings.Join(elastic.Policies(), ", "),
			"objectives":       strings.Join(advisor.Objectives(), ","),
			"rules":            strings.Join(simulate.DefaultRules(), ","),
			"confidence":       strconv.FormatFloat(schemas.DefaultConfidence, 'g', -1, 64),
			"batch_messages":   strconv.Itoa(schemas.MaxBatchMessages),
		},
		kong.Writers(stdout, stderr),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(printHelp),
		kong.ExplicitGroups([]kong.Group{
			{Key: "services", Title: "Services:"},
			{Key: "parts", Title: "Parts:"},
		}),
		kong.Exit(func(status int) { panic(exitStatus(status)) }),
	)
}

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
	parsed, err = parser.Parse(args)
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
