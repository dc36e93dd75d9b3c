package main

import (
	"context"
	"os"
	"slices"
	"strings"

	"courier/report"
	"courier/schemas"

	"github.com/alecthomas/kong"
)

type regressorShow struct {
	natsFlags
	outputFlags
	Regressor string `arg:"" help:"Directory of courier regressor fit; or a target, for its champion; or at least 6 digits of a digest."`
}

// Run shows a directory if it exists, and else a regressor of the cluster.
func (c *regressorShow) Run(w *environment) error {
	dir := kong.ExpandPath(c.Regressor)
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return c.directory(w, dir)
	}
	if !slices.Contains(schemas.Targets(), c.Regressor) && !digestDigits(c.Regressor) {
		return schemas.Invalid("regressor",
			"%q is neither a directory, nor one of %v, nor %d to 64 digits of a digest in hex",
			c.Regressor, schemas.Targets(), schemas.MinDigestDigits)
	}
	return c.cluster(w)
}

func digestDigits(s string) bool {
	return len(s) >= schemas.MinDigestDigits && len(s) <= 64 &&
		strings.Trim(s, "0123456789abcdef") == ""
}

func (c *regressorShow) directory(w *environment, dir string) error {
	p, err := loadRegressor(dir)
	if err != nil {
		return err
	}
	if c.Output == "json" {
		return indented(w.stdout, p.Manifest())
	}
	return report.Manifest(w.stdout, p.Manifest())
}

// cluster gets the regressor from the trainer, and its history from the log.
func (c *regressorShow) cluster(w *environment) error {
	b, err := c.connect(w)
	if err != nil {
		return err
	}
	defer closeBus(b)
	ctx, cancel := context.WithTimeout(w.ctx, requestTimeout)
	defer cancel()
	var list schemas.RegressorList
	q := schemas.RegressorListRequest{}
	if err := b.Request(ctx, q.Subject(), &q, &list); err != nil {
		return err
	}
	v, err := report.FindRegressor(list.Regressors, c.Regressor)
	if err != nil {
		return err
	}
	life, err := report.ReadLife(w.ctx, b)
	if err != nil {
		return err
	}
	s := &report.RegressorHistory{RegressorVersion: *v, Life: life.Of(v.Target, v.ModelDigest)}
	return c.print(w.stdout, s, s.WriteText)
}
