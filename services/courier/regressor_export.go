package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"courier/regress"
)

type regressorExport struct {
	Regressor string `arg:"" help:"Directory of the regressor." type:"path"`
	Format    string `help:"Format of the file. lightgbm: the trees as text for LightGBM and leaves; manifest: everything else as JSON." enum:"lightgbm,manifest" default:"lightgbm"`
	Out       string `help:"File to write; - is standard output." default:"-" placeholder:"FILE"`
}

// Help returns the examples of courier regressor export.
func (c *regressorExport) Help() string {
	return `Example:
  courier regressor export fitted --out model.txt`
}

func (c *regressorExport) Run(w *environment) error {
	p, err := loadRegressor(c.Regressor)
	if err != nil {
		return err
	}
	m := p.Manifest()
	name := map[string]string{"lightgbm": modelFile, "manifest": manifestFile}[c.Format]
	if c.Format == "lightgbm" && (m.Law != nil || m.Gaussian != nil) {
		return fmt.Errorf("%s: a regressor of the family %s is more than trees, and LightGBM's"+
			" format"+
			" holds trees only: fit it with --family forest or boosting, or export --format"+
			" manifest",
			c.Regressor, m.Family)
	}
	data, err := os.ReadFile(filepath.Join(c.Regressor, name))
	if err != nil {
		return err
	}
	if c.Format == "lightgbm" && m.Transform == regress.Log {
		fmt.Fprintln(w.stderr,
			"The trees predict the logarithm of the target: apply exp to their output.")
	}
	return writeOut(w, c.Out, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}
