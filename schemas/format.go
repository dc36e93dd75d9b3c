package schemas

import "strconv"

// FormatCPUs writes a number of CPUs for people: "1 CPU", "2 CPUs".
func FormatCPUs(n uint32) string { return string(AppendCount(nil, uint64(n), "CPU")) }

// FormatCount writes a number of things for people: "1 epoch", "2 epochs".
func FormatCount(n uint64, thing string) string { return string(AppendCount(nil, n, thing)) }

// AppendCount appends what FormatCount returns.
func AppendCount(b []byte, n uint64, thing string) []byte {
	b = append(append(strconv.AppendUint(b, n, 10), ' '), thing...)
	if n == 1 {
		return b
	}
	return append(b, 's')
}

// FormatProbability writes a probability for people, with three digits. It never rounds to a
// certainty: "0.962", "over 0.999", "under 0.001".
func FormatProbability(p float64) string { return string(AppendProbability(nil, p)) }

// AppendProbability appends what FormatProbability returns.
func AppendProbability(b []byte, p float64) []byte {
	const digits, half = 3, 0.0005
	switch {
	case p < half:
		return append(b, "under 0.001"...)
	case p >= 1-half:
		return append(b, "over 0.999"...)
	}
	return strconv.AppendFloat(b, p, 'f', digits, 64)
}

// familyByRuns is the family of regressors that predict each model by its own runs.
const familyByRuns = "hierarchy"

// FormatError writes the error of a regressor on runs that it had not learned from, as
// Fitted.MedianAbsoluteRatio has it: "median error 7.6 %", "mean error 2.1 %", or of accuracies
// "mean error 0.4 points". 0 says that no run could be held out.
func FormatError(target, family string, e float64) string {
	statistic, unit := "median", "%"
	if family == familyByRuns {
		statistic = "mean"
		if target == TargetAccuracy {
			unit = "points"
		}
	}
	if e == 0 {
		return statistic + " error unknown"
	}
	return statistic + " error " + strconv.FormatFloat(100*e, 'f', 1, 64) + " " + unit
}
