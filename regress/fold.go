package regress

import "fmt"

// Folds deals settings into k folds of about equally many settings and returns
// the fold, 0 to k-1, of each example: examples of one group are always in the
// same fold. The deal depends on the seed and on the order in which groups first
// appear. With fewer than k groups each gets its own fold; the result is nil
// where there are fewer than two groups or folds, and nothing can be held out.
func Folds(group []int, k int, seed uint64) []int {
	number := make(map[int]int)
	for _, g := range group {
		if _, known := number[g]; !known {
			number[g] = len(number)
		}
	}
	k = min(k, len(number))
	if k < 2 {
		return nil
	}
	deal := make([]int, len(number))
	for i := range deal {
		deal[i] = i % k
	}
	s := stream(seed).split(foldBranch)
	s.shuffle(deal)
	folds := make([]int, len(group))
	for i, g := range group {
		folds[i] = deal[number[g]]
	}
	return folds
}

// foldBranch keeps the stream of the folds apart from those of trees, which
// are numbered from 0.
const foldBranch = 1 << 40

func (d *Dataset) folds(k int, seed uint64) []int { return Folds(d.Group, k, seed) }

// foldCount returns the number of folds in what Folds returned.
func foldCount(folds []int) int {
	count := 0
	for _, fold := range folds {
		count = max(count, fold+1)
	}
	return count
}

// OutOfFold predicts every example by a regressor that never saw its setting:
// for each fold, fit is given the examples of all others and returns what
// predicts a row, in any unit that the caller likes. The result has one
// prediction per example of d.
func OutOfFold(
	d *Dataset, folds []int, fit func(train *Dataset) (func(row []float64) float64, error),
) ([]float64, error) {
	if len(folds) != d.Len() {
		return nil, fmt.Errorf("%w: %d folds for %d examples", ErrBadSettings, len(folds), d.Len())
	}
	predicted := make([]float64, d.Len())
	var row []float64
	for fold := range foldCount(folds) {
		var train, test []int
		for i, f := range folds {
			if f == fold {
				test = append(test, i)
			} else {
				train = append(train, i)
			}
		}
		if len(train) == 0 || len(test) == 0 {
			return nil, fmt.Errorf("%w: fold %d holds %d of %d examples", ErrBadSettings, fold,
				len(test), d.Len())
		}
		predict, err := fit(d.Subset(train))
		if err != nil {
			return nil, fmt.Errorf("fold %d: %w", fold, err)
		}
		for _, i := range test {
			row = d.Row(i, row)
			predicted[i] = predict(row)
		}
	}
	return predicted, nil
}
