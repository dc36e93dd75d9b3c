package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"courier/bus"
	"courier/report"
	"courier/schemas"
)

type regressorCommand struct {
	List     regressorList     `cmd:"" help:"List the regressors of a cluster: champions, former and rejected ones."`
	Show     regressorShow     `cmd:"" help:"Show the history of a regressor."`
	Export   regressorExport   `cmd:"" help:"Write a regressor for another program."`
	Train    regressorTrain    `cmd:"" help:"Fit the regressors of a cluster now."`
	Promote  regressorPromote  `cmd:"" help:"Make an earlier regressor the champion."`
	Rollback regressorRollback `cmd:"" help:"Make the previous champion the champion again."`
}

// regressorFlags name a regressor of a cluster.
type regressorFlags struct {
	natsFlags
	Regressor string `arg:"" help:"A target (epoch_time, startup_time, accuracy), for its champion; or at least 6 digits of a digest."`
}

// find connects and gets the regressor from the trainer. The caller closes the connection.
func (f *regressorFlags) find(w *environment) (*bus.Bus, *schemas.RegressorVersion, error) {
	if !slices.Contains(schemas.Targets(), f.Regressor) && !schemas.IsDigestPrefix(f.Regressor) {
		return nil, nil, schemas.Invalid("regressor",
			"%q is neither one of %v, nor %d to 64 digits of a digest in hex",
			f.Regressor, schemas.Targets(), schemas.MinDigestDigits)
	}
	b, err := f.connect(w)
	if err != nil {
		return nil, nil, err
	}
	var list schemas.RegressorList
	var v *schemas.RegressorVersion
	q := schemas.RegressorListRequest{}
	if err = b.Request(w.ctx, q.Subject(), &q, &list); err == nil {
		v, err = report.FindRegressor(list.Regressors, f.Regressor)
	}
	if err != nil {
		closeBus(b)
		return nil, nil, err
	}
	return b, v, nil
}

type regressorList struct {
	askFlags
	Target string `help:"Only regressors of this target (epoch_time, startup_time, accuracy)." placeholder:"TARGET"`
}

func (c *regressorList) Run(w *environment) error {
	return ask(w, c.askFlags, &schemas.RegressorListRequest{Target: c.Target}, requestTimeout, report.Regressors)
}

type regressorShow struct {
	regressorFlags
	outputFlags
}

// Run gets the regressor from the trainer, and its history from the log.
func (c *regressorShow) Run(w *environment) error {
	b, v, err := c.find(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	life, err := report.ReadLife(w.ctx, b, v.Target, v.ModelDigest)
	if err != nil {
		return err
	}
	s := &report.RegressorHistory{RegressorVersion: *v, Life: life}
	return c.print(w, s, s.WriteText)
}

type regressorExport struct {
	regressorFlags
	Format string `help:"Format of the file. lightgbm: the trees as text, which LightGBM and leaves read; manifest: everything else, as JSON." enum:"lightgbm,manifest" default:"lightgbm"`
	Out    string `help:"File to write; - is standard output." default:"-" placeholder:"FILE"`
}

// Run writes the file as the trainer has stored it.
func (c *regressorExport) Run(w *environment) error {
	b, v, err := c.find(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	digest := map[string]string{"lightgbm": v.ModelDigest, "manifest": v.ManifestDigest}[c.Format]
	ctx, cancel := context.WithTimeout(w.ctx, requestTimeout)
	defer cancel()
	data, err := b.Artifact(ctx, digest)
	if err != nil {
		return err
	}
	if c.Out == "-" {
		_, err = w.stdout.Write(data)
		return err
	}
	return os.WriteFile(c.Out, data, 0o644)
}

// fitTimeout bounds the wait for fits: a million examples take a minute for each target, and a
// running fit ends first.
const fitTimeout = 10 * time.Minute

type regressorTrain struct {
	askFlags
	Target string `help:"Only fit this target (epoch_time, startup_time, accuracy)." placeholder:"TARGET"`
}

func (c *regressorTrain) Run(w *environment) error {
	return ask(w, c.askFlags, &schemas.TrainRequest{Target: c.Target}, fitTimeout, report.Trained)
}

type regressorPromote struct {
	askFlags
	Target string `arg:"" help:"Target of the regressor (epoch_time, startup_time, accuracy)."`
	Digest string `arg:"" help:"At least 6 digits of the digest of the regressor, from courier regressor list."`
	Reason string `help:"Reason to record." placeholder:"TEXT"`
}

func (c *regressorPromote) Run(w *environment) error {
	q := &schemas.PromoteRequest{Target: c.Target, ModelDigest: c.Digest, Reason: c.Reason}
	return ask(w, c.askFlags, q, fitTimeout, promoted)
}

type regressorRollback struct {
	askFlags
	Target string `arg:"" help:"Target of the regressor (epoch_time, startup_time, accuracy)."`
	Reason string `help:"Reason to record." placeholder:"TEXT"`
}

func (c *regressorRollback) Run(w *environment) error {
	q := &schemas.RollbackRequest{Target: c.Target, Reason: c.Reason}
	return ask(w, c.askFlags, q, fitTimeout, promoted)
}

func promoted(out io.Writer, p *schemas.Promoted) {
	champion := "is the first champion"
	if p.Replaced != "" {
		champion = fmt.Sprintf("replaces the champion %.12s", p.Replaced)
	}
	fmt.Fprintf(out,
		"%s: %.12s %s as revision %d (%s; %d examples in %d configurations, %s)\n",
		p.Target, p.ModelDigest, champion, p.Revision, p.Reason, p.Examples, p.Configurations,
		schemas.FormatError(p.Target, p.HeldOutError))
}
