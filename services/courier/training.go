package main

import (
	"os/user"

	"courier/collector"
	"courier/runner"
)

// outputFormatFlags describe the output of a training command.
type outputFormatFlags struct {
	EpochPattern string `group:"training" help:"Regular expression that matches an epoch in a line of output, with the group epoch, and optionally seconds, loss, accuracy, batch_size and cpus." env:"COURIER_EPOCH_PATTERN"`
	MetricsFile  string `group:"training" help:"File, directory or pattern of files in which the logger of the command writes its epochs: CSV with a column epoch, or JSON lines. The output is not read then. In courier tune, with {dir} or {trial}." env:"COURIER_METRICS_FILE"`
}

// job returns the options of the jobs of a study or a tuning: they run on this node, as the user of
// this process.
func (f outputFormatFlags) job(w *environment) (runner.Options, error) {
	node, err := nodeName("")
	if err != nil {
		return runner.Options{}, err
	}
	o := runner.Options{
		Observer: collector.NewObserver(w.log), Node: node, EpochPattern: f.EpochPattern,
		MetricsFile: f.MetricsFile,
	}
	if u, err := user.Current(); err == nil {
		o.Request.User = u.Username
	}
	return o, nil
}

// terminalFlags configure how courier run shows and keeps the output.
type terminalFlags struct {
	NoPTY      bool   `group:"training" name:"no-pty" help:"Give the command a pipe even if the standard output is a terminal (courier run)." env:"COURIER_NO_PTY"`
	NoProgress bool   `group:"training" help:"Show no progress bar (courier run)."`
	KeepOutput bool   `group:"training" help:"Record the last 20 lines of the output with the end of the job, for its receipt and its page. Everyone who may read jobs can read them (courier run)." env:"COURIER_KEEP_OUTPUT"`
	PageURL    string `group:"training" name:"page-url" placeholder:"URL" help:"Address of the web page, such as https://courier.example, so that a run ends with the address of its page (courier run)." env:"COURIER_PAGE_URL"`
}

// trainingCommand returns words without the -- before them.
func trainingCommand(words []string) []string {
	if len(words) > 0 && words[0] == "--" {
		return words[1:]
	}
	return words
}

// nodeFlags describe the node on which a job or a collector runs.
type nodeFlags struct {
	Node     string `group:"node" help:"Name of this node (default: its host name)." env:"COURIER_NODE"`
	SpoolDir string `group:"node" help:"Directory that keeps the events of jobs, and the samples of the collector, until they can be published (default: in the user's cache)." type:"path" env:"COURIER_SPOOL_DIR"`
}
