package main

import (
	"context"
	"slices"
	"strings"

	"courier/bus"
	"courier/report"
	"courier/schemas"
)

// regressorCommand shows, exports and changes the regressors of a cluster.
type regressorCommand struct {
	List     regressorList     `cmd:"" help:"List the regressors of a cluster: champions, challengers, former and rejected ones."`
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
	if !slices.Contains(schemas.Targets(), f.Regressor) && !digestDigits(f.Regressor) {
		return nil, nil, schemas.Invalid("regressor",
			"%q is neither one of %v, nor %d to 64 digits of a digest in hex",
			f.Regressor, schemas.Targets(), schemas.MinDigestDigits)
	}
	b, err := f.connect(w)
	if err != nil {
		return nil, nil, err
	}
	v, err := findRegressor(w.ctx, b, f.Regressor)
	if err != nil {
		closeBus(b)
		return nil, nil, err
	}
	return b, v, nil
}

func digestDigits(s string) bool {
	return len(s) >= schemas.MinDigestDigits && len(s) <= 64 &&
		strings.Trim(s, "0123456789abcdef") == ""
}

func findRegressor(
	ctx context.Context, b *bus.Bus, name string,
) (*schemas.RegressorVersion, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	var list schemas.RegressorList
	q := schemas.RegressorListRequest{}
	if err := b.Request(ctx, q.Subject(), &q, &list); err != nil {
		return nil, err
	}
	return report.FindRegressor(list.Regressors, name)
}
