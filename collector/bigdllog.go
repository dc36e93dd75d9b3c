package collector

import "time"

// BigDLEpoch is an epoch that a BigDL log tells of.
type BigDLEpoch struct {
	Number   uint32
	Seconds  float64   // by the log's own clock; 0: it does not tell
	Loss     *float64  // mean over the iterations; nil: none was printed
	Accuracy *float64  // 0 to 1; nil: none was printed
	At       time.Time // what Line was given with the line that ended it
}

// BigDLLog reads the log of BigDL's optimizers as Run reads that of a job that
// runs. The zero value is ready; it is for one goroutine.
type BigDLLog struct{ b bigdl }

// Line takes the next line, without its end, and returns the epochs that it
// completes. At is only handed back.
func (l *BigDLLog) Line(line []byte, at time.Time) []BigDLEpoch {
	return bigdlEpochs(l.b.line(line, at))
}

// End returns the epoch that was not complete when the log ended, if any.
func (l *BigDLLog) End() []BigDLEpoch { return bigdlEpochs(l.b.end()) }

func bigdlEpochs(reports []report) []BigDLEpoch {
	var all []BigDLEpoch
	for _, r := range reports {
		all = append(all, BigDLEpoch{Number: r.epoch, Seconds: r.seconds, Loss: r.loss, Accuracy: r.accuracy, At: r.at})
	}
	return all
}
