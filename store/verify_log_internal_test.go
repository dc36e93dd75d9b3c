package store

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Windows tile the span, hold no more rows than they may, and cut an hour into
// slices only where it alone has more.
func TestCut(t *testing.T) {
	tests := []struct {
		name string
		life span
		rows map[int64]uint64
		want []window
	}{
		{"no rows", span{5, 9}, nil, []window{{span{5, 9}, 1}}},
		{"all fit", span{0, math.MaxInt64}, map[int64]uint64{7: 4, 8: 6}, []window{{span{0, math.MaxInt64}, 1}}},
		{"two windows", span{0, 20}, map[int64]uint64{7: 4, 8: 6, 10: 1}, []window{{span{0, 10}, 1}, {span{10, 20}, 1}}},
		{"a full hour", span{0, 20}, map[int64]uint64{7: 4, 8: 25, 9: 3}, []window{{span{0, 8}, 1}, {span{8, 9}, 3}, {span{9, 20}, 1}}},
		{"only full hours", span{8, 10}, map[int64]uint64{8: 11, 9: 30}, []window{{span{8, 9}, 2}, {span{9, 10}, 3}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, cut(test.life, test.rows, 10), cmp.AllowUnexported(window{}, span{})); diff != "" {
				t.Errorf("cut of %v (-want +got):\n%s", test.rows, diff)
			}
		})
	}
}
