//go:build race

package digits

func init() { RaceDetector = true }
