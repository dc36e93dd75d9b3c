package schemas

// evidence writes an object whose parts may be absent.
func (w *jsonWriter) evidence(b []byte, e *Evidence) []byte {
	b = append(b, '{')
	if e.Time != nil {
		b = append(w.timeEvidence(b, e.Time), ',')
	}
	if s := e.Startup; s != nil {
		b = w.float(b, `"startup":{"seconds":`, s.Seconds)
		b = number(b, `,"node_type_runs":`, uint64(s.NodeTypeRuns))
		b = append(number(b, `,"model_runs":`, uint64(s.ModelRuns)), "},"...)
	}
	if e.Accuracy != nil {
		b = append(w.accuracyEvidence(b, e.Accuracy), ',')
	}
	if last := len(b) - 1; b[last] == ',' {
		b = b[:last]
	}
	return append(b, '}')
}

func (w *jsonWriter) timeEvidence(b []byte, e *TimeEvidence) []byte {
	b = w.text(b, `"time":{"support":`, e.Support)
	b = number(b, `,"configuration_runs":`, uint64(e.ConfigurationRuns))
	b = number(b, `,"node_type_runs":`, uint64(e.NodeTypeRuns))
	b = number(b, `,"model_runs":`, uint64(e.ModelRuns))
	if e.NodeType != "" {
		b = w.text(b, `,"node_type":`, e.NodeType)
	}
	if e.Lacks != "" {
		b = w.text(b, `,"lacks":`, e.Lacks)
	}
	b = w.count(b, `,"ran_low":`, e.RanLow)
	b = w.count(b, `,"ran_high":`, e.RanHigh)
	b = w.some(b, `,"correction_ratio":`, e.CorrectionRatio)
	if len(e.Corrections) > 0 {
		b = w.other(b, `,"corrections":`, e.Corrections)
	}
	return append(w.some(b, `,"outcome_ratio":`, e.OutcomeRatio), '}')
}

func (w *jsonWriter) accuracyEvidence(b []byte, e *AccuracyEvidence) []byte {
	b = w.text(b, `"accuracy":{"support":`, e.Support)
	b = number(b, `,"batch_size_runs":`, uint64(e.BatchSizeRuns))
	b = number(b, `,"model_runs":`, uint64(e.ModelRuns))
	b = number(b, `,"longest_epochs":`, uint64(e.LongestEpochs))
	b = w.float(b, `,"highest_accuracy":`, e.HighestAccuracy)
	return append(w.count(b, `,"known_from_epoch":`, e.KnownFromEpoch), '}')
}

// count writes a number that is absent where it is 0.
func (w *jsonWriter) count(b []byte, name string, v uint32) []byte {
	if v == 0 {
		return b
	}
	return number(b, name, uint64(v))
}
