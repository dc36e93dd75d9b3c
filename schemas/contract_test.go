package schemas_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files json/*.json, asyncapi.yaml")

// message describes a message for the generated documents. Its description is the comment of its type.
type message struct {
	name    string // file name
	subject string // with {parameters}; a reply has none
	kind    string // request, event, notice (core NATS, not stored) or reply
	value   any
	reply   string // name of the reply to a request
}

// arrays is the name of the message that may also be sent as an array.
const arrays = "sample"

func messages() []message { return slices.Concat(requests(), events(), replies()) }

func requests() []message {
	personal := func(subject string) string { return schemas.PersonSubject("{person}", subject) }
	submit, cancel := schemas.SubjectJobSubmit, schemas.SubjectJobCancel
	return []message{
		{"job_request", submit, "request", schemas.JobRequest{}, "advice"},
		{"job_request", schemas.SubjectJobPredict, "request", schemas.JobRequest{}, "advice"},
		{"job_status_request", schemas.SubjectJobStatus, "request", schemas.JobStatusRequest{}, "job_status"},
		{"job_list_request", schemas.SubjectJobList, "request", schemas.JobListRequest{}, "job_list"},
		{"job_cancel_request", cancel, "request", schemas.JobCancelRequest{}, "job_status"},
		{"job_request", personal(submit), "request", schemas.JobRequest{}, "advice"},
		{"job_cancel_request", personal(cancel), "request", schemas.JobCancelRequest{}, "job_status"},
		{"score_request", schemas.SubjectJobScore, "request", schemas.ScoreRequest{}, "score"},
		{"train_request", schemas.SubjectRegressorTrain, "request", schemas.TrainRequest{}, "train_reply"},
		{"promote_request", schemas.SubjectRegressorPromote, "request", schemas.PromoteRequest{}, "promoted"},
		{"rollback_request", schemas.SubjectRegressorRollback, "request", schemas.RollbackRequest{}, "promoted"},
		{
			"regressor_list_request", schemas.SubjectRegressorList, "request", schemas.RegressorListRequest{},
			"regressor_list",
		},
	}
}

func events() []message {
	job := func(e string) string { return schemas.JobSubject("{id}", e) }
	regressor := func(e string) string { return schemas.RegressorSubject("{target}", e) }
	return []message{
		{"submitted", job(schemas.EventSubmitted), "event", schemas.Submitted{}, ""},
		{"started", job(schemas.EventStarted), "event", schemas.Started{}, ""},
		{"epoch", job(schemas.EventEpoch), "event", schemas.Epoch{}, ""},
		{"ended", job(schemas.EventFinished), "event", schemas.Ended{}, ""},
		{"ended", job(schemas.EventFailed), "event", schemas.Ended{}, ""},
		{"ended", job(schemas.EventCancelled), "event", schemas.Ended{}, ""},
		{"ended", job(schemas.EventLost), "event", schemas.Ended{}, ""},
		{"ended", job(schemas.EventFound), "event", schemas.Ended{}, ""},
		{"admitted", job(schemas.EventAdmitted), "event", schemas.JobAdmitted{}, ""},
		{"advice", job(schemas.EventAdvice), "event", schemas.Advice{}, ""},
		{"risk", job(schemas.EventRisk), "event", schemas.Risk{}, ""},
		{"moved", job(schemas.EventMoved), "event", schemas.Moved{}, ""},
		{"alive", job(schemas.EventAlive), "notice", schemas.Alive{}, ""},
		{"sample", schemas.NodeSubject("{node}", schemas.EventSample), "event", schemas.Sample{}, ""},
		{"trained", regressor(schemas.EventTrained), "event", schemas.Trained{}, ""},
		{"promoted", regressor(schemas.EventPromoted), "event", schemas.Promoted{}, ""},
		{"rejected", regressor(schemas.EventRejected), "event", schemas.Rejected{}, ""},
		{"drift", regressor(schemas.EventDrift), "event", schemas.Drift{}, ""},
		{"dead", schemas.DeadSubject("{stream}"), "event", schemas.Dead{}, ""},
		{"replayed", schemas.DeadReplayedSubject("{stream}"), "event", schemas.Replayed{}, ""},
	}
}

func replies() []message {
	return []message{
		{"job_status", "", "reply", schemas.JobStatus{}, ""},
		{"job_list", "", "reply", schemas.JobList{}, ""},
		{"score", "", "reply", schemas.Score{}, ""},
		{"train_reply", "", "reply", schemas.TrainReply{}, ""},
		{"regressor_list", "", "reply", schemas.RegressorList{}, ""},
		{"receipt", "", "reply", schemas.Receipt{}, ""},
		{"error", "", "reply", schemas.Error{}, ""},
	}
}

// comments maps "type" and "type.field" to the doc comments of the package.
type comments map[string]string

func readComments(t *testing.T) comments {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	c := comments{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			d, ok := n.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				return true
			}
			for _, s := range d.Specs {
				s := s.(*ast.TypeSpec)
				c[s.Name.Name] = oneLine(d.Doc.Text())
				if st, ok := s.Type.(*ast.StructType); ok {
					for _, field := range st.Fields.List {
						for _, id := range field.Names {
							c[s.Name.Name+"."+id.Name] = oneLine(
								field.Doc.Text() + field.Comment.Text(),
							)
						}
					}
				}
			}
			return true
		})
	}
	return c
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// enums holds the values of enumeration types.
var enums = map[reflect.Type][]string{
	reflect.TypeFor[schemas.Decision](): {
		string(schemas.MeetsSLO), string(schemas.BestEffort), string(schemas.Exploring),
		string(schemas.Weighted),
	},
	reflect.TypeFor[schemas.Action](): {
		string(schemas.ActionStart), string(schemas.ActionWait), string(schemas.ActionRefuse),
		string(schemas.ActionKeep), string(schemas.ActionBatch), string(schemas.ActionCPUs),
	},
	reflect.TypeFor[schemas.Code](): {
		"invalid", "not_found", "conflict", "unavailable", "internal",
	},
	reflect.TypeFor[schemas.State](): {
		"submitted", "running", "finished", "failed", "cancelled", "lost", "queued", "refused",
	},
	reflect.TypeFor[schemas.StateSelection](): {
		"submitted", "running", "finished", "failed", "cancelled", "lost", "queued", "refused",
		"open", "ended",
	},
}

type object = map[string]any

// schemaOf returns the JSON Schema of a Go type.
func schemaOf(c comments, t reflect.Type) object {
	switch t {
	case reflect.TypeFor[time.Time]():
		return object{"type": "string", "format": "date-time"}
	case reflect.TypeFor[schemas.Duration]():
		return object{"type": "string", "examples": []string{"10m", "90s", "2d"}}
	case reflect.TypeFor[schemas.CPUs]():
		number := object{"type": "integer", "minimum": 1}
		return object{"oneOf": []any{number, object{"type": "array", "items": number}}}
	case reflect.TypeFor[schemas.Ratio]():
		return object{"type": "number", "minimum": 0, "maximum": 1}
	case reflect.TypeFor[[]byte]():
		return object{"type": "string", "contentEncoding": "base64"}
	}
	if values, ok := enums[t]; ok {
		return object{"type": "string", "enum": values}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(c, t.Elem())
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return object{"type": "array", "items": schemaOf(c, t.Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schemaOf(c, t.Elem())}
	case reflect.Struct:
		o := object{"type": "object", "properties": object{}, "required": []string{}}
		addFields(c, t, o)
		return o
	}
	panic("no JSON Schema for " + t.String())
}

// addFields adds the fields of a struct and of its embedded structs.
func addFields(c comments, t reflect.Type, o object) {
	for f := range fields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if f.Anonymous {
			addFields(c, f.Type, o)
			continue
		}
		s := schemaOf(c, f.Type)
		if description := c[t.Name()+"."+f.Name]; description != "" {
			s["description"] = description
		}
		o["properties"].(object)[name] = s
		if !strings.Contains(options, "omit") {
			o["required"] = append(o["required"].([]string), name)
		}
	}
}

func fields(t reflect.Type) func(yield func(reflect.StructField) bool) {
	return func(yield func(reflect.StructField) bool) {
		for i := range t.NumField() {
			if !yield(t.Field(i)) {
				return
			}
		}
	}
}

// golden compares a text with a golden file, or updates the file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s does not match the types; run go test ./schemas -update (-file +types):\n%s",
			name, d)
	}
}

func TestContract_JSONSchemas(t *testing.T) {
	c := readComments(t)
	wanted := map[string]bool{}
	for _, m := range messages() {
		s := schemaOf(c, reflect.TypeOf(m.value))
		s["$schema"], s["title"] = "https://json-schema.org/draft/2020-12/schema", m.name
		s["description"] = c[reflect.TypeOf(m.value).Name()]
		if m.kind == "request" {
			s["additionalProperties"] = false
		}
		b, err := json.MarshalIndent(s, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("json", m.name+".json")
		wanted[file] = true
		golden(t, file, append(b, '\n'))
	}
	files, _ := filepath.Glob("json/*.json")
	for _, f := range files {
		if !wanted[f] {
			t.Errorf("%s does not belong to any message", f)
		}
	}
}

func TestContract_AsyncAPI(t *testing.T) {
	c := readComments(t)
	var b bytes.Buffer
	b.WriteString(`# Generated from the Go types by go test ./schemas -update. Do not edit.
asyncapi: 3.0.0
info:
  title: Courier
  version: 1.0.0
  description: Job requests, events and samples of Courier over NATS. Error replies have the NATS service error headers and an error body.
  license: {name: Apache-2.0, url: "https://www.apache.org/licenses/LICENSE-2.0"}
servers:
  local: {host: "127.0.0.1:4222", protocol: nats}
defaultContentType: application/json
channels:
`)
	id := strings.NewReplacer(".", "_", "{", "", "}", "")
	for _, m := range messages() {
		if m.subject == "" {
			continue
		}
		fmt.Fprintf(&b, "  %s:\n    address: %s\n    description: %s\n", id.Replace(m.subject),
			quoted(m.subject), quoted(c[reflect.TypeOf(m.value).Name()]))
		if _, rest, ok := strings.Cut(m.subject, "{"); ok {
			name, _, _ := strings.Cut(rest, "}")
			fmt.Fprintf(&b, "    parameters:\n      %s: {description: \"[a-z0-9_-]{1,64}\"}\n",
				name)
		}
		fmt.Fprintf(&b, "    messages:\n      %s: {$ref: \"#/components/messages/%s\"}\n", m.name,
			m.name)
		if m.name == arrays {
			fmt.Fprintf(&b, "      %ss: {$ref: \"#/components/messages/%ss\"}\n", m.name, m.name)
		}
	}
	b.WriteString("operations:\n")
	for _, m := range messages() {
		if m.subject == "" {
			continue
		}
		key, action := id.Replace(m.subject), "send"
		if m.kind == "request" {
			action = "receive"
		}
		fmt.Fprintf(&b, "  %s:\n    action: %s\n    channel: {$ref: \"#/channels/%s\"}\n", key,
			action, key)
		if m.reply != "" {
			fmt.Fprintf(&b,
				"    reply:\n      channel: {$ref: \"#/channels/%s\"}\n      messages:\n        - {$ref: "+
					"\"#/components/messages/%s\"}\n        - {$ref: \"#/components/messages/error\"}\n",
				key, m.reply)
		}
	}
	b.WriteString("components:\n  messages:\n")
	done := map[string]bool{}
	for _, m := range messages() {
		if done[m.name] {
			continue
		}
		done[m.name] = true
		fmt.Fprintf(&b, "    %s:\n      payload: {$ref: \"./json/%s.json\"}\n", m.name, m.name)
		if m.name == arrays {
			fmt.Fprintf(&b,
				"    %ss:\n      payload: {type: array, minItems: 1, items: {$ref: \"./json/%s.json\"}}\n",
				m.name, m.name)
		}
	}
	golden(t, "asyncapi.yaml", b.Bytes())
}

func quoted(s string) string { return fmt.Sprintf("%q", s) }

// covers reports whether a NATS filter matches a subject.
func covers(filter, subject string) bool {
	f, s := strings.Split(filter, "."), strings.Split(subject, ".")
	for i := range f {
		if f[i] == ">" {
			return len(s) > i
		}
		if i >= len(s) || f[i] != "*" && f[i] != s[i] {
			return false
		}
	}
	return len(f) == len(s)
}

func TestContract_NoStreamCoversARequest(t *testing.T) {
	if !covers("job.>", "job.submit") || covers("job.*.*", "job.submit") || !covers("job.*.epoch",
		"job.a.epoch") {
		t.Fatal("covers does not match as NATS does")
	}
	for _, stream := range schemas.Streams() {
		for _, filter := range stream.Subjects {
			personal := []string{
				schemas.PersonSubject("a", schemas.SubjectJobSubmit),
				schemas.PersonSubject("epoch", schemas.SubjectJobCancel),
				schemas.PersonSubject("a", schemas.JobSubject("b", schemas.EventEpoch)),
				schemas.PersonSubject(
					"a", schemas.JobSubject("b", schemas.EventAlive),
				),
			}
			for _, subject := range append(personal,
				schemas.SubjectJobSubmit, schemas.SubjectJobPredict, schemas.SubjectJobStatus,
				schemas.SubjectJobList, schemas.SubjectJobCancel, schemas.SubjectJobScore,
				schemas.SubjectRegressorTrain, schemas.SubjectRegressorPromote,
				schemas.SubjectRegressorRollback, schemas.SubjectRegressorList,
			) {
				if covers(filter, subject) {
					t.Errorf("stream %s with filter %s acknowledges the request %s", stream.Name,
						filter, subject)
				}
			}
			if covers(filter, schemas.JobSubject("a", schemas.EventAlive)) {
				t.Errorf("stream %s stores heartbeats", stream.Name)
			}
		}
	}
}

func TestContract_EveryEventHasAStream(t *testing.T) {
	for _, m := range messages() {
		if m.kind != "event" {
			continue
		}
		subject := strings.NewReplacer("{id}", "a", "{node}", "a", "{target}", "a", "{stream}",
			"job").Replace(m.subject)
		streams := 0
		for _, stream := range schemas.Streams() {
			if slices.ContainsFunc(stream.Subjects, func(f string) bool {
				return covers(f, subject)
			}) {
				streams++
			}
		}
		if streams != 1 {
			t.Errorf("%s is stored in %d streams, want 1", subject, streams)
		}
	}
}

// Each example decodes into its type, is valid, and encodes to the same JSON.
func TestContract_Examples(t *testing.T) {
	for _, m := range messages() {
		file := filepath.Join("testdata", m.name+".json")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		v := reflect.New(reflect.TypeOf(m.value)).Interface()
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(v); err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		if c, ok := v.(interface{ Validate() error }); ok {
			if err := c.Validate(); err != nil {
				t.Errorf("%s: %v", file, err)
			}
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var want, got any
		if json.Unmarshal(data, &want) != nil || json.Unmarshal(again, &got) != nil {
			t.Fatal(file)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%s decoded and encoded again (-file +encoded):\n%s", file, d)
		}
		checkAgainstSchema(t, m.name, want.(object))
	}
}

// checkAgainstSchema compares the fields of an example with the generated schema.
func checkAgainstSchema(t *testing.T, name string, example object) {
	var s struct {
		Properties object   `json:"properties"`
		Required   []string `json:"required"`
	}
	b, err := os.ReadFile(filepath.Join("json", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &s); err != nil {
		t.Fatal(err)
	}
	for field := range maps.Keys(example) {
		if s.Properties[field] == nil {
			t.Errorf("testdata/%s.json has %s, which its schema lacks", name, field)
		}
	}
	for _, field := range s.Required {
		if _, ok := example[field]; !ok {
			t.Errorf("testdata/%s.json lacks %s, which its schema requires", name, field)
		}
	}
}

func TestPersonSubject(t *testing.T) {
	for _, c := range []struct{ plain, want string }{
		{schemas.SubjectJobSubmit, "person.ada.job.submit"},
		{schemas.SubjectJobCancel, "person.ada.job.cancel"},
		{"job.j1.epoch", "person.ada.job.j1.epoch"},
		{"job.j1.alive", "person.ada.job.j1.alive"},
		{"job.epoch.started", "person.ada.job.epoch.started"},
		{schemas.SubjectJobList, schemas.SubjectJobList},
		{"job.j1.advice", "job.j1.advice"},
		{"job.j1.lost", "job.j1.lost"},
		{"job.epoch", "job.epoch"},
		{schemas.SubjectRegressorPromote, schemas.SubjectRegressorPromote},
		{"node.epoch.sample", "node.epoch.sample"},
	} {
		got := schemas.PersonSubject("ada", c.plain)
		if got != c.want {
			t.Errorf("PersonSubject(ada, %s) = %s, want %s", c.plain, got, c.want)
		}
		person, plain := schemas.SplitPerson(got)
		if wanted := map[bool]string{true: "ada"}[got != c.plain]; plain != c.plain ||
			person != wanted {
			t.Errorf("SplitPerson(%s) = %q, %q, want %q, %q", got, person, plain, wanted, c.plain)
		}
	}
}
