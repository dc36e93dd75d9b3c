package output

// Quantity is what a column of a table holds.
type Quantity uint8

// The quantities. Other columns have none.
const (
	QuantityNone Quantity = iota
	QuantityAccuracy
	QuantityErrorRate // 1 - accuracy
	QuantityLoss
)

// Column is the meaning of a column's name, by the vocabulary of the recogniser.
type Column struct {
	Quantity   Quantity
	IsTraining bool // measured on the training data; also true for the word alone, such as "train"
	IsHeldOut  bool // measured on validation or test data
	Rank       int  // among columns of accuracies and errors, or of losses: the lowest is preferred
}

// ColumnOf returns the meaning of a column's name, such as "metrics/mAP50(B)" or "val_acc".
func ColumnOf(label string) Column {
	n := nameOf([]byte(label), nil, nil)
	c := Column{IsTraining: n.scope == scopeTrain, IsHeldOut: n.scope >= scopeTest}
	const no = flagExcluded | flagConfig | flagPart | flagTotal | flagSetting
	if n.flags&no != 0 {
		return c
	}
	switch {
	case n.kind == kindRate && n.unknown == 0:
		c.Quantity = QuantityErrorRate
	case n.kind.isShare() && n.kind != kindRate:
		c.Quantity = QuantityAccuracy
	case n.kind == kindLoss && n.unknown == 0:
		c.Quantity, c.Rank = QuantityLoss, 2*rankOfLoss(&n)
		if n.counter == countsInner { // of a step, not of the epoch
			c.Rank++
		}
		return c
	}
	x := reading{name: n, scope: n.scope}
	if n.counter == countsInner {
		x.level = 1
	}
	c.Rank = accuracyRank(&x)
	return c
}
