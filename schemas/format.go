package schemas

import "strconv"

// FormatCPUs returns a number of CPUs as text: "1 CPU", "2 CPUs".
func FormatCPUs(n uint32) string { return string(AppendCount(nil, uint64(n), "CPU")) }

// FormatCount returns a number of things as text: "1 epoch", "2 epochs".
func FormatCount(n uint64, thing string) string { return string(AppendCount(nil, n, thing)) }

// AppendCount appends the result of FormatCount.
func AppendCount(b []byte, n uint64, thing string) []byte {
	b = append(append(strconv.AppendUint(b, n, 10), ' '), thing...)
	if n == 1 {
		return b
	}
	return append(b, 's')
}

// FormatProbability returns a probability with three digits. It never rounds to 0 or 1: "0.962",
// "over 0.999", "under 0.001".
func FormatProbability(p float64) string { return string(AppendProbability(nil, p)) }

// AppendProbability appends the result of FormatProbability.
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

// familyHierarchy is the regressor family that predicts each model from its own runs.
const familyHierarchy = "hierarchy"

// FormatError returns the error of a regressor on held-out runs, which is
// Fitted.MedianAbsoluteRatio, as text: "median error 7.6 %", "mean error 2.1 %", or for accuracies
// "mean error 0.4 points". 0 means that no run was held out.
func FormatError(target, family string, e float64) string {
	statistic, unit := "median", "%"
	if family == familyHierarchy {
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
