package schemas

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Marshal encodes an event, request or reply as JSON. It cannot fail for a validated value;
// otherwise the error names the type.
func Marshal(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", v, err)
	}
	return b, nil
}

// tolerant are the options under which messages are read. Names match in any case, the last value
// of a repeated name counts, and invalid UTF-8 becomes U+FFFD, as in encoding/json.
var tolerant = jsonv2.JoinOptions(
	jsonv2.MatchCaseInsensitiveNames(true),
	jsontext.AllowDuplicateNames(true),
	jsontext.AllowInvalidUTF8(true),
)

// strict are the options under which requests are read: an unknown name is an error.
var strict = jsonv2.JoinOptions(tolerant, jsonv2.RejectUnknownMembers(true))

// decode decodes one JSON value. The error is an *Error with CodeInvalid.
func decode(data []byte, v any, options jsonv2.Options) error {
	if len(data) > MaxMessageBytes {
		return Invalid("", "message has %d bytes, limit is %d", len(data), MaxMessageBytes)
	}
	if err := jsonv2.Unmarshal(data, v, options); err != nil {
		return jsonError(err)
	}
	return nil
}

// jsonError returns the error of a message that could not be decoded. It names the field if the
// field is known.
func jsonError(err error) *Error {
	var (
		known     *Error
		syntactic *jsontext.SyntacticError
		semantic  *jsonv2.SemanticError
	)
	switch {
	case errors.As(err, &known):
		return known
	case errors.As(err, &syntactic):
		return Invalid("", "not JSON at byte %d: %v", syntactic.ByteOffset+1, syntactic.Err)
	case !errors.As(err, &semantic):
		return Invalid("", "not JSON: %s", Clip(err.Error()))
	}

	field := fieldAt(semantic.JSONPointer)
	if !errors.Is(err, jsonv2.ErrUnknownName) {
		return Invalid(field, "got a JSON %s, want %s", valueName(semantic), semantic.GoType)
	}
	return Invalid(field, "not a field of this request; want one of %s", fieldNames(semantic.GoType))
}

// valueName describes the value that could not be decoded: its kind and, for a number, its digits.
func valueName(e *jsonv2.SemanticError) string {
	switch {
	case e.JSONKind == '[':
		return "array"
	case e.JSONKind == '{':
		return "object"
	case e.JSONKind == '0' && e.JSONValue != nil:
		return "number " + Clip(string(e.JSONValue))
	}
	return e.JSONKind.String()
}

// fieldAt returns the name of the field at a place in a message, without the positions in lists.
func fieldAt(place jsontext.Pointer) string {
	var names []string
	for name := range place.Tokens() {
		if strings.Trim(name, "0123456789") != "" {
			names = append(names, name)
		}
	}
	return Clip(strings.Join(names, "."))
}

// fieldNames lists the JSON names of the fields of a struct.
func fieldNames(t reflect.Type) string {
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
