package store

import (
	"fmt"
	"reflect"
	"time"
	"unsafe"
)

func columnNames(row reflect.Type) []string {
	var names []string
	for _, field := range columnFields(row) {
		names = append(names, row.FieldByIndex(field).Tag.Get("ch"))
	}
	return names
}

// columnFields returns the index of the field of each column, including fields of embedded
// structs.
func columnFields(row reflect.Type) [][]int {
	var fields [][]int
	for _, f := range reflect.VisibleFields(row) {
		if !f.Anonymous && f.Tag.Get("ch") != "" {
			fields = append(fields, f.Index)
		}
	}
	return fields
}

// columnChunk is the number of rows that are converted into columns at once. The rows of a
// chunk fit into the processor's cache.
const columnChunk = 512

// columnReader returns the values of one column for at most columnChunk rows. The slice is
// valid until the next call.
type columnReader func(rows []unsafe.Pointer) any

// columnReaders returns a constructor for each column of a row type; each insert needs its own
// readers. They read fields by offset, because reflection in each row would cost more than
// sending the row.
func columnReaders(row reflect.Type) (all []func() columnReader) {
	for _, index := range columnFields(row) {
		offset, field := uintptr(0), row
		for _, i := range index {
			f := field.Field(i)
			offset, field = offset+f.Offset, f.Type
		}
		all = append(all, newColumnReader(field, offset))
	}
	return all
}

// newColumnReader returns the constructor for a field at an offset of the row.
func newColumnReader(field reflect.Type, offset uintptr) func() columnReader {
	switch reflect.Zero(field).Interface().(type) {
	case string:
		return readField[string](offset)
	case time.Time:
		return readField[time.Time](offset)
	case uint64:
		return readField[uint64](offset)
	case uint32:
		return readField[uint32](offset)
	case float64:
		return readField[float64](offset)
	case bool:
		return readField[bool](offset)
	case *int32:
		return readField[*int32](offset)
	case *float64:
		return readField[*float64](offset)
	case []string:
		return readField[[]string](offset)
	case []uint32:
		return readField[[]uint32](offset)
	case []float64:
		return readField[[]float64](offset)
	case []*float64:
		return readField[[]*float64](offset)
	case map[string]string:
		return readField[map[string]string](offset)
	}
	panic("unsupported column type " + field.String())
}

func readField[T any](offset uintptr) func() columnReader {
	return func() columnReader {
		values := make([]T, columnChunk)
		return func(rows []unsafe.Pointer) any {
			for i, row := range rows {
				values[i] = *(*T)(unsafe.Add(row, offset))
			}
			return values[:len(rows)]
		}
	}
}

// eachColumn calls appendTo with the values of each column of rows, chunk by chunk. The rows are
// pointers to the type of row.
func eachColumn(
	row any, newReaders []func() columnReader, rows []any,
	appendTo func(column int, values any) error,
) error {
	readers := make([]columnReader, len(newReaders))
	for c, newReader := range newReaders {
		readers[c] = newReader()
	}
	rowType := reflect.PointerTo(reflect.TypeOf(row))
	chunk := make([]unsafe.Pointer, 0, columnChunk)
	for i, row := range rows {
		v := reflect.ValueOf(row)
		if v.Type() != rowType {
			return fmt.Errorf("%s is not the row type", v.Type())
		}
		chunk = append(chunk, v.UnsafePointer())
		if len(chunk) < columnChunk && i < len(rows)-1 {
			continue
		}
		for c, read := range readers {
			if err := appendTo(c, read(chunk)); err != nil {
				return err
			}
		}
		chunk = chunk[:0]
	}
	return nil
}
