package tuning

import (
	"cmp"
	"math"
	"slices"
)

// Families of loss curves. Both fall towards a floor c.
const (
	familyHyperbolic  = "hyperbolic"  // l(e) = 1/(a e + b) + c
	familyExponential = "exponential" // l(e) = a mu^e + c
)

// lossForecast predicts after how many epochs a loss reaches a target. Infinity means never.
type lossForecast struct {
	Family string  // of the curve
	Median float64 // epochs from the start of the training
	Low    float64 // of the interval
	High   float64
}

// Parameters of the fit (CE-scaling leaves them open).
const (
	agingWeight      = 0.95 // of an epoch, per epoch of age
	heldOutPart      = 5    // one of this number of epochs compares the families: the latest
	minCurveEpochs   = 5
	shapesPerFamily  = 24
	oldestEpoch      = 120 // older ones weigh less than 0.3 %
	minRelativeNoise = 1e-6
)

// curveShape is the parameter of a family that is not linear: b/a in epochs, or mu.
type curveShape struct {
	family string
	value  float64
}

// basis returns the falling part of a curve at an epoch, before its scale.
func (s curveShape) basis(epoch float64) float64 {
	if s.family == familyHyperbolic {
		return 1 / (epoch + s.value)
	}
	return math.Pow(s.value, epoch)
}

// each calls do with the basis, the loss and the weight of each epoch after a number of them, without
// those whose weight is negligible.
func (s curveShape) each(losses []float64, after int, do func(basis, loss, weight float64)) {
	first := max(after, len(losses)-oldestEpoch)
	weight := math.Pow(agingWeight, float64(len(losses)-1-first))
	basis := s.basis(float64(first + 1))
	for i := first; i < len(losses); i++ {
		do(basis, losses[i], weight)
		weight /= agingWeight
		if s.family == familyExponential {
			basis *= s.value
		} else {
			basis = s.basis(float64(i + 2))
		}
	}
}

// epochsTo returns the epoch at which scale basis + floor is a target; infinity if it never is.
func (s curveShape) epochsTo(target, scale, floor float64) float64 {
	if target <= floor {
		return math.Inf(1)
	}
	if s.family == familyHyperbolic {
		return scale/(target-floor) - s.value
	}
	return math.Log((target-floor)/scale) / math.Log(s.value)
}

// shapeOf returns the shape of a family with a time constant in epochs, given by its logarithm.
func shapeOf(family string, logConstant float64) curveShape {
	v := math.Exp(logConstant)
	if family == familyExponential {
		v = math.Exp(-1 / v)
	}
	return curveShape{family, v}
}

// curveFit is the weighted least-squares fit of scale and floor for a shape.
type curveFit struct {
	shape        curveShape
	logConstant  float64 // of its time constant
	scale, floor float64
	squares      float64    // weighted sum of squared relative residuals
	root         [3]float64 // Cholesky factor of its inverse
	logVolume    float64    // of the distribution of scale and floor
}

// fitShape fits scale and floor to the losses of the first epochs. A residual counts relative to the
// loss, because the noise of a loss is about proportional to it.
func fitShape(s curveShape, losses []float64) (curveFit, bool) {
	var gg, g1, one, gl, l1 float64
	s.each(losses, 0, func(g, l, age float64) {
		w := age / (l * l)
		gg, g1, one, gl, l1 = gg+w*g*g, g1+w*g, one+w, gl+w*g*l, l1+w*l
	})
	determinant := gg*one - g1*g1
	if !(determinant > 1e-12*gg*one) {
		return curveFit{}, false
	}
	f := curveFit{shape: s}
	f.scale, f.floor = (one*gl-g1*l1)/determinant, (gg*l1-g1*gl)/determinant
	if f.floor < 0 {
		f.scale, f.floor = gl/gg, 0
	}
	if !(f.scale > 0) {
		return curveFit{}, false
	}
	f.squares = f.residuals(losses, 0)
	a := math.Sqrt(one / determinant) // the inverse is {one, -g1, gg}/determinant
	b := -g1 / determinant / a
	f.root = [3]float64{a, b, math.Sqrt(max(0, gg/determinant-b*b))}
	f.logVolume = -0.5 * math.Log(determinant)
	return f, true
}

// residuals returns the weighted squared relative residuals of the epochs after a number of them.
func (f *curveFit) residuals(losses []float64, after int) (sum float64) {
	f.shape.each(losses, after, func(g, l, age float64) {
		r := (f.scale*g + f.floor - l) / l
		sum += age * r * r
	})
	return sum
}

// fitFamily fits shapes of a family: from a fall within one epoch to one that takes ten times as long
// as the epochs so far, evenly in their logarithms, and more of them around the best one.
func fitFamily(family string, losses []float64) []curveFit {
	low, high := math.Log(0.1), math.Log(10*float64(len(losses)))
	width := (high - low) / shapesPerFamily
	coarse := fitShapes(family, losses, low, width)
	if len(coarse) == 0 {
		return nil
	}
	best := bestFit(coarse).logConstant
	near := func(f curveFit) bool { return math.Abs(f.logConstant-best) < 1.5*width }
	fine := fitShapes(family, losses, best-1.5*width, 3*width/shapesPerFamily)
	return append(slices.DeleteFunc(coarse, near), fine...)
}

// fitShapes fits shapes in the middle of intervals of a width, from a low logarithm on.
func fitShapes(family string, losses []float64, low, width float64) (fits []curveFit) {
	for i := range shapesPerFamily {
		constant := low + (float64(i)+0.5)*width
		if f, ok := fitShape(shapeOf(family, constant), losses); ok {
			f.logConstant = constant
			f.logVolume += math.Log(width)
			fits = append(fits, f)
		}
	}
	return fits
}

func bestFit(fits []curveFit) curveFit {
	return slices.MinFunc(fits, func(a, b curveFit) int { return cmp.Compare(a.squares, b.squares) })
}

// heldOutError returns the error on the latest fifth of a fit to the epochs before.
func heldOutError(family string, losses []float64) float64 {
	before := len(losses) - len(losses)/heldOutPart
	fits := fitFamily(family, losses[:before])
	if len(fits) == 0 {
		return math.Inf(1)
	}
	best := bestFit(fits)
	return best.residuals(losses, before)
}

// forecastLoss fits both families to the losses of all epochs so far, keeps the one with the smaller
// error on the latest fifth, and predicts when the loss reaches a target, given that it does within a
// largest number of epochs. The interval of the confidence follows from the residuals; it includes
// the other family as far as its error on the latest fifth is likely. It returns false with fewer
// than five epochs, a loss that is not positive, or losses that do not fall to the target in time.
func forecastLoss(losses []float64, target, mostEpochs, confidence float64) (lossForecast, bool) {
	isBad := func(l float64) bool { return !(l > 0) || math.IsInf(l, 1) }
	if len(losses) < minCurveEpochs || slices.ContainsFunc(losses, isBad) {
		return lossForecast{}, false
	}
	kept, other := familyHyperbolic, familyExponential
	keptError, otherError := heldOutError(kept, losses), heldOutError(other, losses)
	if otherError < keptError {
		kept, other, keptError, otherError = other, kept, otherError, keptError
	}
	samples := sampleEpochs(fitFamily(kept, losses), losses, target, mostEpochs)
	if len(samples) == 0 {
		return lossForecast{}, false
	}
	sortSamples(samples)
	f := lossForecast{Family: kept, Median: weightedQuantile(samples, 0.5)}
	likelihood := math.Exp((keptError - otherError) / (2 * keptError / float64(len(losses)/heldOutPart)))
	for _, s := range sampleEpochs(fitFamily(other, losses), losses, target, mostEpochs) {
		samples = append(samples, epochSample{s.epochs, s.weight * likelihood})
	}
	sortSamples(samples)
	f.Low = min(f.Median, weightedQuantile(samples, (1-confidence)/2))
	f.High = max(f.Median, weightedQuantile(samples, (1+confidence)/2))
	return f, true
}

// epochSample is a possible number of epochs with its weight.
type epochSample struct{ epochs, weight float64 }

// sampleEpochs returns possible numbers of epochs to a target: for each shape by the likelihood of
// its residuals, with scale and floor from their normal distribution given the shape. The weights
// add up to 1.
func sampleEpochs(fits []curveFit, losses []float64, target, most float64) (samples []epochSample) {
	if len(fits) == 0 {
		return nil
	}
	const parameters = 3
	effective := (1 - math.Pow(agingWeight, float64(len(losses)))) / (1 - agingWeight)
	least := bestFit(fits).squares
	variance := max(least/max(1, effective-parameters), minRelativeNoise*minRelativeNoise)
	sigma := math.Sqrt(variance)
	highest := math.Inf(-1)
	for _, f := range fits {
		highest = max(highest, f.logVolume-f.squares/(2*variance))
	}
	now, total := float64(len(losses)), 0.0
	for _, f := range fits {
		weight := math.Exp(f.logVolume - f.squares/(2*variance) - highest)
		if weight < 1e-5 {
			continue
		}
		for _, z := range normalPairs {
			scale := f.scale + sigma*f.root[0]*z[0]
			floor := f.floor + sigma*(f.root[1]*z[0]+f.root[2]*z[1])
			epochs := max(now, f.shape.epochsTo(target, scale, floor))
			if scale > 0 && floor >= 0 && epochs <= most {
				samples = append(samples, epochSample{epochs, weight})
				total += weight
			}
		}
	}
	for i := range samples {
		samples[i].weight /= total
	}
	return samples
}

// normalPairs are points of the normal distribution in two dimensions: an additive recurrence
// (Roberts 2018, R2 sequence) by the transform of Box and Muller.
var normalPairs = func() (pairs [24][2]float64) {
	const plastic = 1.32471795724474602596
	for i := range pairs {
		_, u := math.Modf(0.5 + float64(i+1)/plastic)
		_, v := math.Modf(0.5 + float64(i+1)/(plastic*plastic))
		radius := math.Sqrt(-2 * math.Log(1-u))
		pairs[i] = [2]float64{radius * math.Cos(2*math.Pi*v), radius * math.Sin(2*math.Pi*v)}
	}
	return pairs
}()

func sortSamples(samples []epochSample) {
	slices.SortFunc(samples, func(a, b epochSample) int { return cmp.Compare(a.epochs, b.epochs) })
}

// weightedQuantile returns the value at which a part of the weight of sorted samples is reached.
func weightedQuantile(samples []epochSample, part float64) float64 {
	total := 0.0
	for _, s := range samples {
		total += s.weight
	}
	sum := 0.0
	for _, s := range samples {
		if sum += s.weight; sum >= part*total {
			return s.epochs
		}
	}
	return samples[len(samples)-1].epochs
}

// replanMove is the relative change of the remaining epochs at which a training is planned again.
const replanMove = 0.1

// needsReplan reports whether a training must be planned again: the median of the remaining epochs
// has moved by a tenth from the plan, or the interval excludes the plan's number of epochs.
func (f lossForecast) needsReplan(plannedEpochs, done float64) bool {
	if plannedEpochs < f.Low || plannedEpochs > f.High || plannedEpochs <= done {
		return true
	}
	return math.Abs(f.Median-plannedEpochs) >= replanMove*(plannedEpochs-done)
}
