// Package study analyses the runs of a study: which factors influence the response time and the
// accuracy, and how well regressors predict runs that were held out.
//
// # Use
//
//	s, err := study.Analyse(ctx, runs, study.Options{})
//	err = s.WriteText(os.Stdout)
//
// The input is a table with a row per run. The columns of courier explore have defaults: the
// responses are the time and the accuracy, the factors all settings that vary, and the replication
// is a block. Other tables name their columns in Options.
//
// The same table and options give the same study. Analyse keeps no state and may be called
// concurrently; it returns an error if the context ends.
package study
