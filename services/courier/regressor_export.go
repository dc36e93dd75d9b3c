package main

import (
	"context"
	"io"
)

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
	return writeOut(w, c.Out, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}
