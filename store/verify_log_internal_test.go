package store

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Windows cover the range without overlap and respect the row limit. Only an hour with more rows
// is divided into slices.
func TestDivide(t *testing.T) {
	tests := []struct {
		name string
		life hourRange
		rows map[int64]uint64
		want []window
	}{
		{"no rows", hourRange{5, 9}, nil, []window{{hourRange{5, 9}, 1}}},
		{
			"all fit",
			hourRange{0, math.MaxInt64},
			map[int64]uint64{7: 4, 8: 6},
			[]window{{hourRange{0, math.MaxInt64}, 1}},
		},
		{
			"two windows",
			hourRange{0, 20},
			map[int64]uint64{7: 4, 8: 6, 10: 1},
			[]window{{hourRange{0, 10}, 1}, {hourRange{10, 20}, 1}},
		},
		{
			"a full hour",
			hourRange{0, 20},
			map[int64]uint64{7: 4, 8: 25, 9: 3},
			[]window{{hourRange{0, 8}, 1}, {hourRange{8, 9}, 3}, {hourRange{9, 20}, 1}},
		},
		{
			"only full hours",
			hourRange{8, 10},
			map[int64]uint64{8: 11, 9: 30},
			[]window{{hourRange{8, 9}, 2}, {hourRange{9, 10}, 3}},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, divide(test.life, test.rows, 10),
				cmp.AllowUnexported(window{}, hourRange{})); diff != "" {
				t.Errorf("divide( %v (-want +got):\n%s", test.rows, diff)
			}
		})
	}
}
