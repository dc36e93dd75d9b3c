package store

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

// rowsAtOnce is how many rows are turned into columns at once: what is read of them
// stays in the processor's cache meanwhile.
const rowsAtOnce = 512

// taker takes the values of one column out of rows of its type, rowsAtOnce at most: a
// slice that is good until the next call.
type taker func(rows []unsafe.Pointer) any

// takers are the columns of a row's type, and make what each insert needs of its own.
// To look a field up by reflection in each row would cost more than to send it.
func takers(row reflect.Type) (all []func() taker) {
	for _, index := range columnFields(row) {
		offset, part := uintptr(0), row
		for _, i := range index {
			f := part.Field(i)
			offset, part = offset+f.Offset, f.Type
		}
		all = append(all, takerOf(part, offset))
	}
	return all
}

// takerOf is the column of a field.
func takerOf(field reflect.Type, offset uintptr) func() taker {
	switch reflect.Zero(field).Interface().(type) {
	case string:
		return take[string](offset)
	case time.Time:
		return take[time.Time](offset)
	case uint64:
		return take[uint64](offset)
	case uint32:
		return take[uint32](offset)
	case float64:
		return take[float64](offset)
	case bool:
		return take[bool](offset)
	case *int32:
		return take[*int32](offset)
	case *float64:
		return take[*float64](offset)
	case []string:
		return take[[]string](offset)
	case []uint32:
		return take[[]uint32](offset)
	case []float64:
		return take[[]float64](offset)
	case []*float64:
		return take[[]*float64](offset)
	case map[string]string:
		return take[map[string]string](offset)
	}
	panic("no column takes " + field.String())
}

func take[T any](offset uintptr) func() taker {
	return func() taker {
		values := make([]T, rowsAtOnce)
		return func(rows []unsafe.Pointer) any {
			for i, row := range rows {
				values[i] = *(*T)(unsafe.Add(row, offset))
			}
			return values[:len(rows)]
		}
	}
}

// columns hands the values of rows over by column, some rows at a time.
func (t *table) columns(rows []any, to func(column int, values any) error) error {
	columns := make([]taker, len(t.takers))
	for c, prepare := range t.takers {
		columns[c] = prepare()
	}
	of := reflect.PointerTo(reflect.TypeOf(t.row))
	at := make([]unsafe.Pointer, 0, rowsAtOnce)
	for i, row := range rows {
		v := reflect.ValueOf(row)
		if v.Type() != of {
			return fmt.Errorf("%s is no row of %s", v.Type(), t.name)
		}
		if at = append(at, v.UnsafePointer()); len(at) < rowsAtOnce && i < len(rows)-1 {
			continue
		}
		for c, values := range columns {
			if err := to(c, values(at)); err != nil {
				return err
			}
		}
		at = at[:0]
	}
	return nil
}
