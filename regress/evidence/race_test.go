//go:build race

package evidence_test

func init() { underRace = true }
