package anova

// IntervalConfidence is the confidence of all intervals.
const IntervalConfidence = 0.95

// VarianceAnalysis is an analysis of variance.
type VarianceAnalysis struct {
	Response string `json:"response"`
	Runs     int    `json:"runs"`
	Terms    []Term `json:"terms"`
	// ResidualSquares is the sum of squares that the model leaves, with ResidualDegrees.
	ResidualSquares float64 `json:"residual_squares"`
	ResidualDegrees int     `json:"residual_degrees"`
	R2              float64 `json:"r2"`
	AdjustedR2      float64 `json:"adjusted_r2"`
	// Normality is nil if there are too few or too many residuals.
	Normality *Normality `json:"normality,omitempty"`
	// Variances are tests of equal variances across the levels of each factor.
	Variances []LevelTest `json:"variances,omitempty"`
	Means     []Means     `json:"means,omitempty"`
	// Notes are limits of the analysis, such as cells without runs.
	Notes []string `json:"notes,omitempty"`

	Fitted    []float64 `json:"fitted"` // of each run
	Residuals []float64 `json:"residuals"`
}

// Term is the effect of a factor, a covariate or an interaction.
type Term struct {
	Name    string  `json:"name"`
	Degrees int     `json:"degrees"`
	Squares float64 `json:"squares"` // type II
	F       float64 `json:"f"`
	P       float64 `json:"p"`
	// PartialOmega2 estimates the share of the variance that the term explains, without the
	// variance that other terms explain. EffectLow and EffectHigh are its interval at 95 %.
	PartialOmega2 float64 `json:"partial_omega2"`
	EffectLow     float64 `json:"effect_low"`
	EffectHigh    float64 `json:"effect_high"`
	// PartialEta2 is the share in these runs. It is biased upwards, most of all in a model with
	// many parameters, and may lie above the interval.
	PartialEta2 float64 `json:"partial_eta2"`
	// Omega2 estimates the share of the whole variance that the term explains.
	Omega2 float64 `json:"omega2"`
}

// Normality is a test of Shapiro and Wilk of the residuals.
type Normality struct {
	W float64 `json:"w"`
	P float64 `json:"p"`
}

// LevelTest is a test of Brown and Forsythe for equal variances at the levels of a factor.
type LevelTest struct {
	Factor    string  `json:"factor"`
	Statistic float64 `json:"statistic"` // F
	Degrees   int     `json:"degrees"`
	P         float64 `json:"p"`
}

// Unusual is the p value below which a check of the assumptions counts as failed.
const Unusual = 0.05

// Means are the estimated means of the response at the levels of a term, with the same weight for
// all levels of other factors and at the mean of other covariates.
type Means struct {
	Term string `json:"term"`
	// Variables of the term, in the order of the levels of the values.
	Variables []string    `json:"variables"`
	Values    []MeanPoint `json:"values"`
}

// MeanPoint is an estimated mean with its interval at 95 %.
type MeanPoint struct {
	Levels []string `json:"levels"` // of the variables of the term
	Mean   float64  `json:"mean"`
	Low    float64  `json:"low"`
	High   float64  `json:"high"`
	Runs   int      `json:"runs"` // with these levels; 0 on the line of a covariate
}
