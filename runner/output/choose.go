package output

import "slices"

// This file chooses, among the readings of an epoch, those that are reported.

// chooser chooses the results of the epochs of one run, so that those of all epochs can be compared.
type chooser struct {
	percent       [kindTime + 1]bool // kinds of shares whose values are percentages
	areHighRates  bool               // an error rate was above 1
	hasTop        bool               // an accuracy and that of five guesses were compared
	areErrors     bool               // what is called an accuracy is the share of errors
	lossName      uint64             // of the losses that were chosen
	isLossHeldOut bool               // they are of held-out data
	accuracyScope scope              // of the accuracies that were chosen, if it is one of held-out data
	unnamed       *float64           // score of the training without a name in the last epoch; nil: none
	falls         int                // of that score, less twice its rises
	hasParts      bool               // lines have parts of epochs, such as epoch 0.25
	hasBatches    bool               // lines of an epoch with the same words are about batches
}

// choice is a chosen reading; nil: none.
type choice struct {
	loss, accuracy, metric *reading
	accuracyValue          float64 // between 0 and 1
}

// choose returns the results of a block.
func (r *chooser) choose(b *block) choice {
	for i := range b.readings { // Train: 62.5%, Valid: 60.5%, which rise
		if x := &b.readings[i]; x.name.kind == kindUnnamed && x.unit == unitPercent && r.falls < 0 {
			x.name.kind = kindAccuracy
		}
	}
	loss, isOfParts := chooseLoss(b)
	r.hasBatches = r.hasBatches || r.hasParts || loss != nil && loss.seen > 2
	isTwice := loss != nil && loss.seen == 2 && loss.isAlike && loss.scope == scopeNone && loss.level == ofEpoch
	if isTwice && !r.hasBatches {
		loss = nil // one of them is of other data than those of the training
	}
	c := choice{loss: r.sameLoss(b, loss)}
	if x := unnamedOf(b); c.loss == nil && x != nil && x.unit == unitNone && r.falls > 0 {
		c.loss = x
	}
	accuracy, isTied := b.best(func(x *reading) (rank int, ok bool) {
		isAnyError := x.name.kind == kindRate && x.name.unknown > 0 || isBareError(&x.name)
		isOfNetwork := isOfParts && x.scope == scopeNone && x.level != ofEpoch && x.name.kind == kindAccuracy
		_, isShare := r.share(x)
		return accuracyRank(x), !x.isPast && x.name.kind.isShare() && isShare && x.scope >= r.accuracyScope &&
			!isAnyError && !isOfNetwork && !r.isOfTraining(x, b.pass.isBar) &&
			!(b.isQualified(kindLoss) && b.isQualified(x.name.kind))
	})
	if accuracy != nil && !(isTied && accuracy.name.unknown > 0) { // teacher acc 0.9, student acc 0.5
		c.accuracy = accuracy
		c.accuracyValue, _ = r.share(accuracy)
		r.accuracyScope = accuracy.scope
	}
	c.metric = c.accuracy
	if c.metric == nil {
		c.metric, _ = b.best(metricRank)
	}
	return c
}

// best returns the reading with the lowest rank among those that are ok; nil if none is. It is tied if a reading
// with another name has the same rank.
func (b *block) best(rankOf func(*reading) (rank int, ok bool)) (best *reading, isTied bool) {
	lowest := 0
	for i := range b.readings {
		x := &b.readings[i]
		rank, ok := rankOf(x)
		switch {
		case !ok:
		case best == nil || rank < lowest:
			best, lowest, isTied = x, rank, false
		case rank == lowest && x.name.hash != best.name.hash:
			isTied = true
		}
	}
	return best, isTied
}

// isOfTraining reports whether a metric is of the training data by its name, or is of a batch and does not
// name its data. The last value behind a bar is a mean.
func (r *chooser) isOfTraining(x *reading, isBar bool) bool {
	isOfBatch := x.level == ofBatch || x.seen > 1 && !(isBar && x.level == ofLastBatch) || r.hasParts
	return x.scope == scopeTrain || x.scope == scopeNone && isOfBatch
}

// isQualified reports whether a block has a result of a kind with and without unknown words. If a loss and an accuracy
// are, the words may name other data, and it is not known which of them are those of the training.
func (b *block) isQualified(k kind) bool {
	has := func(isKnown bool) bool {
		return slices.ContainsFunc(b.readings, func(x reading) bool {
			return x.name.kind == k && x.scope == scopeNone && (x.name.unknown == 0) == isKnown
		})
	}
	return has(true) && has(false)
}

// set adds a choice to a report.
func (c *choice) set(e *EpochReport) {
	if c.loss != nil {
		e.Loss, e.IsLossHeldOut = new(c.loss.value), c.loss.scope >= scopeTest // finite, see isReading
	}
	if c.accuracy != nil {
		e.Accuracy = validAccuracy(c.accuracyValue)
	}
	if c.metric != nil {
		e.Metric = metricOf(c.metric.label, c.metric.value)
	}
}

// partOfLoss ranks a loss with an unknown word in its name, such as loss_bbox, below all others.
const partOfLoss = 64

// chooseLoss returns the loss of the training, or that of a validation. A loss of the whole epoch is
// better than that of its last batch. Of several losses that are only parts of one, none is chosen.
func chooseLoss(b *block) (best *reading, isOfParts bool) {
	isTrained := func(x reading) bool { return x.name.kind == kindLoss && x.scope == scopeTrain }
	best, isTied := b.best(func(x *reading) (rank int, ok bool) {
		isDistance := x.name.kind == kindDistance && x.scope < scopeTest && x.name.unknown == 0 // else a metric
		return lossRank(x), x.name.kind == kindLoss || isDistance
	})
	switch {
	case isTied && lossRank(best) >= partOfLoss:
		return nil, true
	case best != nil && best.name.flags&(flagWeak|flagCost) == flagWeak && b.hasOther: // another loss
		return nil, true
	case best != nil && (best.isPast || best.scope >= scopeTest && slices.ContainsFunc(b.readings, isTrained)):
		return nil, false
	}
	return best, false
}

// heldOutLoss ranks a loss on held-out data below those of batches of the training.
const heldOutLoss = 20

// lossRank orders losses: held-out data last, epochs before batches, the training before data without a name.
// Parts of a loss come behind all others.
func lossRank(x *reading) int {
	n := 2*boolInt(x.scope != scopeTrain) + 6*int(x.level) + boolInt(x.name.flags&flagWeak != 0)
	if x.scope >= scopeTest {
		n += heldOutLoss
	}
	if x.name.unknown > 0 {
		n += partOfLoss
	}
	if x.name.kind == kindDistance {
		n += 2 * partOfLoss
	}
	return n
}

// sameLoss returns the loss with the name and data that were reported first, so that the losses of a run can be
// compared. An epoch without it has none.
func (r *chooser) sameLoss(b *block, chosen *reading) *reading {
	if chosen == nil {
		return nil
	}
	if r.lossName == 0 {
		r.lossName, r.isLossHeldOut = chosen.name.hash, chosen.scope >= scopeTest
	}
	isSame := func(x reading) bool {
		return x.name.hash == r.lossName && x.name.kind == chosen.name.kind && (x.scope >= scopeTest) == r.isLossHeldOut
	}
	if isSame(*chosen) {
		return chosen
	}
	i := slices.IndexFunc(b.readings, isSame)
	if i < 0 {
		return nil
	}
	return &b.readings[i]
}

// accuracyRank orders accuracies: validation before test, training last; epochs before batches;
// accuracy before other kinds; plain names before compound ones.
func accuracyRank(x *reading) int {
	order := [...]int{scopeValidation: 0, scopeTest: 1, scopeNone: 2, scopeTrain: 3}
	return order[x.scope]*100 + [...]int{0, 50, 150}[x.level] + int(x.name.kind)*4 + min(x.name.unknown, 3)
}

// share returns a reading as a number between 0 and 1. If one accuracy was above 1, all accuracies of the run are
// percentages, and so for each kind.
func (r *chooser) share(x *reading) (float64, bool) {
	v, kind := x.value, x.name.kind
	isPercent := x.unit == unitPercent || r.percent[kind]
	if isPercent {
		v = FromPercent(v)
	}
	if kind == kindRate || kind == kindAccuracy && r.areErrors {
		v = Complement(v)
	}
	return v, v >= 0 && v <= 1 && (isPercent || kind != kindRate || !r.areHighRates)
}

// notePercent remembers whether the values of a kind are percentages. A top-5 accuracy decides for top 1, too.
func (r *chooser) notePercent(f *field) {
	v, kind := max(f.value, f.mean), f.name.kind
	isValue := f.unit == unitNone && f.total == 0 && (isReading(f) || !f.isWhole)
	if kind.isShare() && isValue && v > 1 && (v <= 100 || kind == kindRate) {
		r.percent[kind] = r.percent[kind] || kind != kindRate || v > maxRate
		r.areHighRates = r.areHighRates || kind == kindRate
	}
}

// noteErrors finds out whether accuracies are shares of errors: the right answer is among five guesses more often than
// it is the first one. The first line with both decides.
func (r *chooser) noteErrors(l *line) {
	first := 0.0
	for i := range l.fields {
		f := &l.fields[i]
		switch {
		case f.name.kind != kindAccuracy || f.name.unknown > 0:
		case f.name.flags&flagTop != 0:
			r.areErrors = r.areErrors || !r.hasTop && f.value < first
			r.hasTop = r.hasTop || first > 0
		case f.name.flags&flagExcluded == 0:
			first = f.value
		}
	}
}

// maxRate is the maximum of a word error rate as a ratio: a recognized text may be longer than the
// right one. A rate between 1 and maxRate may be a ratio or a percentage, so that it has no value.
const maxRate = 3

// metricRank orders other metrics of held-out data.
func metricRank(x *reading) (rank int, ok bool) {
	k := x.name.kind
	isOther := k == kindOther && x.scope == scopeNone
	isMetric := k != kindTime && k != kindUnnamed && k != kindNone
	rank = boolInt(x.scope < scopeTest)*64 + int(x.level)*16 + int(k)
	isSeveral := x.scope == scopeNone && x.seen > 1 && !x.isAlike && x.level == ofEpoch // of which the name is unknown
	return rank, isMetric && !x.isPast && !isSeveral && (x.scope >= scopeTest && x.level != ofBatch || isOther)
}

// unnamedOf returns the score of the training whose name is only that of its data; nil: none.
func unnamedOf(b *block) *reading {
	for i := range b.readings {
		if x := &b.readings[i]; x.name.kind == kindUnnamed && x.scope == scopeTrain && x.seen == 1 {
			return x
		}
	}
	return nil
}

// noteUnnamed follows the score of the training that has no other name. It is a loss if it mostly falls.
func (r *chooser) noteUnnamed(b *block) {
	x := unnamedOf(b)
	if x == nil {
		return
	}
	if last := r.unnamed; last != nil {
		r.falls += boolInt(x.value < *last) - 2*boolInt(x.value > *last)
	}
	r.unnamed = new(x.value) // the block may change
}
