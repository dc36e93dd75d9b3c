package columns

import (
	"encoding"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// CSV writes a list of structs with a line for each of them. For a struct, the lines are the elements of
// its first list of structs, and of its further lists of the same type; a struct without such a list is
// one line. Columns have the names of the fields in JSON; a field of an inner struct is outer.inner.
// Unknown values are empty.
func CSV(out io.Writer, result any) error {
	lists, element := listsOf(reflect.ValueOf(result))
	fields := fieldsOf(element, "", nil)
	w := csv.NewWriter(out)
	var head []string
	if len(lists) > 1 {
		head = []string{"list"}
	}
	for _, f := range fields {
		head = append(head, f.name)
	}
	_ = w.Write(head) // an error stays until Flush
	for _, l := range lists {
		for i := range l.rows.Len() {
			line, err := csvLine(l.rows.Index(i), fields)
			if err != nil {
				return fmt.Errorf("write line %d of %s: %w", i+1, l.name, err)
			}
			if len(lists) > 1 {
				line = append([]string{l.name}, line...)
			}
			_ = w.Write(line)
		}
	}
	w.Flush()
	return w.Error()
}

// list is a list of structs in a result.
type list struct {
	name string
	rows reflect.Value
}

// listsOf returns the lists whose elements are lines, and the type of the elements.
func listsOf(v reflect.Value) (lists []list, element reflect.Type) {
	v = reflect.Indirect(v)
	if v.Kind() == reflect.Slice {
		return []list{{"result", v}}, v.Type().Elem()
	}
	for _, f := range reflect.VisibleFields(v.Type()) {
		name, isField := jsonName(f)
		isList := f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct
		if isField && isList && (element == nil || element == f.Type.Elem()) {
			element = f.Type.Elem()
			lists = append(lists, list{name, v.FieldByIndex(f.Index)})
		}
	}
	if element == nil {
		one := reflect.MakeSlice(reflect.SliceOf(v.Type()), 0, 1)
		return listsOf(reflect.Append(one, v))
	}
	return lists, element
}

// field is a field of a struct, or of a struct in it.
type field struct {
	name      string
	index     []int
	omitsZero bool
}

var textType = reflect.TypeFor[encoding.TextMarshaler]()

// fieldsOf returns the fields of a struct type, with those of its structs in their place.
func fieldsOf(t reflect.Type, prefix string, index []int) (fields []field) {
	for _, f := range reflect.VisibleFields(t) {
		name, isField := jsonName(f)
		if !isField {
			continue
		}
		at := append(append([]int{}, index...), f.Index...)
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && !isValue(inner) {
			fields = append(fields, fieldsOf(inner, prefix+name+".", at)...)
			continue
		}
		fields = append(fields, field{prefix + name, at, strings.Contains(f.Tag.Get("json"), ",omit")})
	}
	return fields
}

// isValue reports whether a struct is one value in JSON, such as a time.
func isValue(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(textType) || p.Implements(reflect.TypeFor[json.Marshaler]())
}

// jsonName returns the name of a field in JSON. An embedded struct is no field: its fields are visible.
func jsonName(f reflect.StructField) (name string, isField bool) {
	name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, name != "" && name != "-" && f.IsExported()
}

func csvLine(row reflect.Value, fields []field) ([]string, error) {
	var line []string
	for _, f := range fields {
		v, err := row.FieldByIndexErr(f.index)
		if err != nil || f.omitsZero && v.IsZero() { // the struct or the value is absent
			line = append(line, "")
			continue
		}
		cell, err := cellOf(v.Interface())
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		line = append(line, cell)
	}
	return line, nil
}

// cellOf returns a value as in JSON, but a text without quotes.
func cellOf(value any) (cell string, err error) {
	data, err := json.Marshal(value)
	switch {
	case err != nil:
		return "", err
	case string(data) == "null":
		return "", nil
	case data[0] == '"':
		err = json.Unmarshal(data, &cell)
		return cell, err
	}
	return string(data), nil
}
