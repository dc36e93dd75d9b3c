package store

import (
	"fmt"
	"reflect"
	"testing"
	"time"
)

// The columns have the same values as the fields of the rows, also for several chunks.
func TestTable_Columns(t *testing.T) {
	for _, table := range tables() {
		of := reflect.TypeOf(table.row)
		fields := columnFields(of)
		for _, n := range []int{0, 1, columnChunk, 2*columnChunk + 1} {
			rows := make([]any, n)
			for i := range rows {
				row := reflect.New(of)
				for c, field := range fields {
					number(row.Elem().FieldByIndex(field), 100*i+c)
				}
				rows[i] = row.Interface()
			}
			done := make([]int, len(fields))
			if err := eachColumn(table.row, rows, func(c int, values any) error {
				for v := reflect.ValueOf(values); done[c] < n && v.Len() > 0; v = v.Slice(1, v.Len()) {
					want := reflect.ValueOf(rows[done[c]]).Elem().FieldByIndex(fields[c]).Interface()
					if !reflect.DeepEqual(v.Index(0).Interface(), want) {
						t.Fatalf("%s: column %d of row %d is %v, want %v", table.name, c, done[c], v.Index(0), want)
					}
					done[c]++
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			for c := range done {
				if done[c] != n {
					t.Errorf("%s: column %d has %d rows, want %d", table.name, c, done[c], n)
				}
			}
		}
	}
}

// number sets a field that is not a list to a unique value.
func number(field reflect.Value, n int) {
	switch to := field.Addr().Interface().(type) {
	case *string:
		*to = fmt.Sprint(n)
	case *time.Time:
		*to = time.Unix(int64(n), 0)
	case *uint64:
		*to = uint64(n)
	case *uint32:
		*to = uint32(n)
	case *float64:
		*to = float64(n)
	case **float64:
		v := float64(n)
		*to = &v
	case *[]string:
		*to = []string{fmt.Sprint(n)}
	}
}
