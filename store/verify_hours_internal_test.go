package store

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Windows cover the range without overlap and respect the row limit, which a single hour may exceed.
func TestDivide(t *testing.T) {
	tests := []struct {
		name string
		life hourRange
		rows map[int64]uint64
		want []hourRange
	}{
		{"no rows", hourRange{5, 9}, nil, []hourRange{{5, 9}}},
		{"all fit", hourRange{0, math.MaxInt64}, map[int64]uint64{7: 4, 8: 6}, []hourRange{{0, math.MaxInt64}}},
		{"two windows", hourRange{0, 20}, map[int64]uint64{7: 4, 8: 6, 10: 1}, []hourRange{{0, 10}, {10, 20}}},
		{"a full hour", hourRange{0, 20}, map[int64]uint64{7: 4, 8: 25, 9: 3}, []hourRange{{0, 8}, {8, 9}, {9, 20}}},
		{"only full hours", hourRange{8, 10}, map[int64]uint64{8: 11, 9: 30}, []hourRange{{8, 9}, {9, 10}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, divide(test.life, test.rows, 10),
				cmp.AllowUnexported(hourRange{})); diff != "" {
				t.Errorf("divide(%v) (-want +got):\n%s", test.rows, diff)
			}
		})
	}
}
