// Command courier keeps the deadlines of training jobs on a shared cluster. Every service, the
// interactive tools and the local cluster are sub-commands, each in its own file. The command
// connects packages that do not import each other.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/advisor/shares"
	"courier/schemas"
	"courier/services"
	"courier/simulate"
	"courier/simulate/elastic"

	"github.com/alecthomas/kong"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == engineHostCommand {
		os.Exit(engineHost(os.Args[2:]))
	}
	err := run(context.Background(), os.Args[1:], os.Getenv, os.Stdout, os.Stderr)
	if err != nil && !errors.As(err, new(exitStatus)) {
		fmt.Fprintln(os.Stderr, "courier:", schemas.Plain(err))
	}
	os.Exit(exitCode(err))
}

type cli struct {
	loggingFlags
	VersionFlag kong.VersionFlag `name:"version" hidden:"" help:"Print the version and exit."`

	All  allCommand  `cmd:"" group:"start" help:"Run all services in one process, with embedded NATS and ClickHouse."`
	Demo demoCommand `cmd:"" group:"start" help:"Demonstrate measuring, learning and promising with real training jobs, in about two minutes."`

	Run     runCommand     `cmd:"" group:"jobs" help:"Run a training command under an SLO."`
	Explore exploreCommand `cmd:"" group:"jobs" help:"Measure an own training script, and advise which batch size meets which SLO."`
	Tune    tuneCommand    `cmd:"" group:"jobs" help:"Tune the hyperparameters of a training command under a deadline or a budget."`
	Predict predictCommand `cmd:"" group:"jobs" help:"Print the advice for a job request without submitting it."`
	Submit  submitCommand  `cmd:"" group:"jobs" help:"Submit a job request and print the advice."`
	Status  statusCommand  `cmd:"" group:"jobs" help:"Show the state of a job, and when it is predicted to end."`
	Jobs    jobsCommand    `cmd:"" group:"jobs" help:"List jobs, newest first."`
	Top     topCommand     `cmd:"" group:"jobs" help:"Watch the open jobs, those at risk first, with the advice, and the nodes."`
	Cancel  cancelCommand  `cmd:"" group:"jobs" help:"Cancel a job."`
	Receipt receiptCommand `cmd:"" group:"jobs" help:"Summarize an ended job: promise, result, lost time, and what was learned."`
	Import  importCommand  `cmd:"" group:"jobs" help:"Import past runs into the log: CSV, JSON, Slurm, PBS."`

	Score    scoreCommand    `cmd:"" group:"studies" help:"Show SLO attainment and the calibration of probabilities."`
	SQL      sqlCommand      `cmd:"" group:"studies" name:"sql" help:"Query the tables of a local cluster with SQL."`
	Anova    anovaCommand    `cmd:"" group:"studies" help:"Analyse which settings influence the time and the accuracy of runs: analysis of variance."`
	Replay   replayCommand   `cmd:"" group:"studies" help:"Repeat the decisions of a recorded log, to verify them or to count avoidable late jobs."`
	Simulate simulateCommand `cmd:"" group:"studies" help:"Simulate clusters, and compare rules."`

	Regressor regressorCommand `cmd:"" group:"regressors" help:"Show, export and change the regressors of a cluster."`

	Collector collectorCommand `cmd:"" group:"services" help:"Run the collector, which publishes samples of this node."`
	Store     storeCommands    `cmd:"" group:"services" help:"Run the store, which writes the event log to ClickHouse; verify and rebuild the tables."`
	Trainer   trainerCommand   `cmd:"" group:"services" help:"Run the trainer, which fits regressors."`
	Advisor   advisorCommand   `cmd:"" group:"services" help:"Run the advisor, which answers job requests."`
	Gateway   gatewayCommand   `cmd:"" group:"services" help:"Run the gateway, which serves REST and the web page."`

	Doctor   doctorCommand   `cmd:"" group:"operation" help:"Check the connection, the services, the log, clocks, disks, and which jobs are not learned from."`
	Dead     deadCommand     `cmd:"" group:"operation" help:"Replay dead letters: messages that could not be decoded."`
	Engine   engineCommand   `cmd:"" group:"operation" help:"Install and show the ClickHouse engine for SQL."`
	Certs    certsCommand    `cmd:"" group:"operation" help:"Create certificates, nkeys, tokens and passwords for a cluster."`
	Health   healthCommand   `cmd:"" group:"operation" help:"Check the health of a service, for example of a container."`
	Workload workloadCommand `cmd:"" group:"start" help:"Run a built-in training job: digits."`

	Help    helpCommand    `cmd:"" group:"help" help:"Print the help of a command, the shared flags, or a script that completes commands."`
	Version versionCommand `cmd:"" group:"help" help:"Print the version."`
}

// run parses the command line and runs the sub-command. Signals end its context, except for courier
// run, which forwards them to the command of the job.
func run(ctx context.Context, args []string, getenv func(string) string, stdout, stderr io.Writer) error {
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

func newParser(c *cli, stdout, stderr io.Writer) (*kong.Kong, error) {
	parser, err := kong.New(c,
		kong.Name("courier"),
		kong.Description("Courier keeps the deadlines of training jobs on a shared cluster."),
		kong.Vars{
			"version":          buildVersion(),
			"elastic_policies": strings.Join(elastic.Policies(), ", "),
			"objectives":       strings.Join(shares.Objectives(), ","),
			"rules":            strings.Join(simulate.DefaultRules(), ","),
			"confidence":       strconv.FormatFloat(schemas.DefaultConfidence, 'g', -1, 64),
			"batch_messages":   strconv.Itoa(schemas.MaxBatchMessages),
		},
		kong.TypeMapper(reflect.TypeFor[time.Time](), kong.MapperFunc(readInstant)),
		kong.Writers(stdout, stderr),
		kong.UsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.Help(printHelp),
		kong.ExplicitGroups(slices.Concat(commandGroups, sharedGroups)),
		kong.Exit(func(status int) { panic(exitStatus(status)) }),
	)
	if err == nil {
		describe(parser.Model.Node)
	}
	return parser, err
}

// readInstant reads a flag that is an instant, or a duration before now.
func readInstant(c *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := c.Scan.PopValueInto("instant", &text); err != nil {
		return err
	}
	at, err := schemas.ParseInstant(text, time.Now())
	target.Set(reflect.ValueOf(at))
	return err
}

// dashedValue matches kong's error for a value that it takes for flags, such as -5s.
var dashedValue = regexp.MustCompile(
	`^(--[a-z0-9-]+): expected .* but got "(-[^"]*)" \(short flag.*\); perhaps try `)

// unknownToKong matches kong's error for an unknown flag, whose proposals miss --data for --data-dir.
var unknownToKong = regexp.MustCompile(`^unknown flag (--?[^,]*)`)

// similarFlags proposes the flags that have most letters in common with an unknown one, at least half of
// them, at the beginning and at the end.
func similarFlags(flags []*kong.Flag, unknown string) string {
	letters := func(flag string) string { return strings.ReplaceAll(flag, "-", "") }
	a, best, found := letters(unknown), 0.5, []string(nil)
	for _, f := range flags {
		b, first, last := letters(f.Name), 0, 0
		shorter := min(len(a), len(b))
		for first < shorter && a[first] == b[first] {
			first++
		}
		for first+last < shorter && a[len(a)-1-last] == b[len(b)-1-last] {
			last++
		}
		likeness := 2 * float64(first+last) / float64(len(a)+len(b))
		if likeness > best {
			best, found = likeness, nil
		}
		if likeness == best {
			found = append(found, "--"+f.Name)
		}
	}
	if found == nil {
		return ""
	}
	return ", did you mean " + strings.Join(found, " or ") + "?"
}

// parse turns kong's exit after --help and --version into an error.
func parse(parser *kong.Kong, args []string) (parsed *kong.Context, err error) {
	defer func() {
		if s, ok := recover().(exitStatus); ok {
			err = s
		}
	}()
	parsed, err = parser.Parse(helpWords(parser.Model.Node, args))
	if wrong, ok := errors.AsType[*kong.ParseError](err); ok {
		parsed = wrong.Context
	}
	if err != nil {
		if m := dashedValue.FindStringSubmatch(err.Error()); m != nil {
			err = usagef("%[1]s: write a value that begins with - as %[1]s=%[2]s", m[1], m[2])
		} else if expected, ok := strings.CutSuffix(err.Error(), ` but got "EOL" (<EOL>)`); ok {
			err = usagef("%s after it", expected)
		}
	}
	flag := unknownFlag(parsed)
	if m := unknownToKong.FindStringSubmatch(fmt.Sprint(err)); m != nil {
		flag = m[1]
	}
	if flag != "" && parsed != nil {
		err = usagef("unknown flag %s%s", flag, similarFlags(parsed.Flags(), flag))
	}
	if err != nil && parsed != nil {
		return nil, usagef("%w (see %s --help)", err,
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
