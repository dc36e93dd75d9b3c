package store

import (
	"reflect"
	"slices"
)

// columnNames returns the columns of a row type, in the order of columnFields.
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

// eachColumn calls appendTo with the values of each column of rows, chunk by chunk: a slice that is
// valid until the call returns. The rows are pointers to the type of row.
func eachColumn(row any, rows []any, appendTo func(column int, values any) error) error {
	of := reflect.TypeOf(row)
	fields := columnFields(of)
	columns := make([]reflect.Value, len(fields))
	for c, field := range fields {
		list := reflect.SliceOf(of.FieldByIndex(field).Type)
		columns[c] = reflect.MakeSlice(list, columnChunk, columnChunk)
	}

	for chunk := range slices.Chunk(rows, columnChunk) {
		for i, row := range chunk {
			fieldsOf := reflect.ValueOf(row).Elem()
			for c, field := range fields {
				columns[c].Index(i).Set(fieldsOf.FieldByIndex(field))
			}
		}
		for c := range columns {
			if err := appendTo(c, columns[c].Slice(0, len(chunk)).Interface()); err != nil {
				return err
			}
		}
	}
	return nil
}
