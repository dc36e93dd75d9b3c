//go:build race

package regress_test

func init() { underRace = true }
