package schemas

// evidence appends the evidence of an alternative; each part may be absent.
func (w *jsonWriter) evidence(b []byte, e *Evidence) []byte {
	b = append(b, '{')
	if e.Time != nil {
		b = append(w.timeEvidence(b, e.Time), ',')
	}
	if s := e.Startup; s != nil {
		b = w.float(b, `"startup":{"seconds":`, s.Seconds)
		b = integer(b, `,"node_type_runs":`, uint64(s.NodeTypeRuns))
		b = append(integer(b, `,"model_runs":`, uint64(s.ModelRuns)), "},"...)
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
	b = integer(b, `,"configuration_runs":`, uint64(e.ConfigurationRuns))
	b = integer(b, `,"node_type_runs":`, uint64(e.NodeTypeRuns))
	b = integer(b, `,"model_runs":`, uint64(e.ModelRuns))
	if e.NodeType != "" {
		b = w.text(b, `,"node_type":`, e.NodeType)
	}
	if e.Lacks != "" {
		b = w.text(b, `,"lacks":`, e.Lacks)
	}
	b = w.nonZeroInteger(b, `,"ran_low":`, e.RanLow)
	b = w.nonZeroInteger(b, `,"ran_high":`, e.RanHigh)
	b = w.nonZero(b, `,"correction_ratio":`, e.CorrectionRatio)
	if len(e.Corrections) > 0 {
		b = w.standard(b, `,"corrections":`, e.Corrections)
	}
	return append(w.nonZero(b, `,"outcome_ratio":`, e.OutcomeRatio), '}')
}

func (w *jsonWriter) accuracyEvidence(b []byte, e *AccuracyEvidence) []byte {
	b = w.text(b, `"accuracy":{"support":`, e.Support)
	b = integer(b, `,"batch_size_runs":`, uint64(e.BatchSizeRuns))
	b = integer(b, `,"model_runs":`, uint64(e.ModelRuns))
	b = integer(b, `,"longest_epochs":`, uint64(e.LongestEpochs))
	b = w.float(b, `,"highest_accuracy":`, e.HighestAccuracy)
	return append(w.nonZeroInteger(b, `,"known_from_epoch":`, e.KnownFromEpoch), '}')
}

// nonZeroInteger appends a whole number unless it is 0.
func (w *jsonWriter) nonZeroInteger(b []byte, name string, v uint32) []byte {
	if v == 0 {
		return b
	}
	return integer(b, name, uint64(v))
}
