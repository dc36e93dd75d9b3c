package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"courier/bus"
	"courier/bus/server"
	"courier/schemas"
	"courier/services"
)

// replayLog is a recorded log: the events of jobs, nodes and regressors and the advice
// in the order in which they were stored, and the files of the regressors.
type replayLog struct {
	records   []replayRecord
	artifacts map[string][]byte // by sha256, in hex
}

// replayRecord is an event and its place in a stream.
type replayRecord struct {
	bus.Record
	stream string
}

// replayStreams are what a replay reads.
var replayStreams = []string{
	schemas.StreamJob, schemas.StreamNode, schemas.StreamRegressor, schemas.StreamAdvice,
}

// readBus reads all that the streams keep, up to their present end. An artifact
// that is gone is left out: what it predicted cannot be repeated, and that is said.
func readBus(ctx context.Context, b *bus.Bus) (*replayLog, error) {
	if _, _, err := b.Champion(ctx, schemas.TargetEpochTime); err != nil && !errors.Is(err, schemas.ErrNotFound) {
		return nil, fmt.Errorf("no courier keeps its log there: %w", err)
	}
	l := &replayLog{artifacts: map[string][]byte{}}
	streams := make([][]replayRecord, len(replayStreams))
	for i, stream := range replayStreams {
		_, err := b.LastSequence(ctx, stream)
		if stream == schemas.StreamAdvice && errors.Is(err, schemas.ErrNotFound) {
			continue // the server is of a release that stored advice in JOB
		}
		err = b.Read(ctx, bus.FollowOptions{Stream: stream}, func(r bus.Record) error {
			streams[i] = append(streams[i], replayRecord{r, stream})
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	l.records = merged(streams)
	for _, p := range l.versions().promotions {
		for _, digest := range []string{p.ModelDigest, p.ManifestDigest} {
			data, err := b.Artifact(ctx, digest)
			if errors.Is(err, schemas.ErrNotFound) {
				continue
			}
			if err != nil {
				return nil, err
			}
			l.artifacts[digest] = data
		}
	}
	return l, nil
}

// merged puts streams into one order: by the time of storing, never against the order of a
// stream, and no advice before its cause in JOB, whatever the clocks of two servers say.
func merged(streams [][]replayRecord) []replayRecord {
	var all []replayRecord
	jobs := uint64(0) // the last sequence of JOB in all
	for {
		first, early := -1, -1
		for i, s := range streams {
			if len(s) == 0 {
				continue
			}
			cause, _, _ := madeFrom(&s[0])
			next := &first
			if s[0].stream == schemas.StreamAdvice && cause > jobs {
				next = &early
			}
			if *next < 0 || s[0].StoredAt.Before(streams[*next][0].StoredAt) {
				*next = i
			}
		}
		if first < 0 {
			first = early // its cause is not in the log
		}
		if first < 0 {
			return all
		}
		r := streams[first][0]
		if r.stream == schemas.StreamJob {
			jobs = r.Sequence
		}
		all, streams[first] = append(all, r), streams[first][1:]
	}
}

// readDirectory reads the log of a courier all: through its server where it
// runs, else through one that is started on its files.
func readDirectory(w *world, dir string) (*replayLog, error) {
	if _, err := os.Stat(filepath.Join(dir, "nats")); err != nil {
		return nil, fmt.Errorf("%s holds no log: %w", dir, err)
	}
	release, err := services.LockDir(dir)
	if err != nil {
		var e Endpoints
		if data, missing := os.ReadFile(filepath.Join(dir, "run", "endpoints.json")); missing != nil || json.Unmarshal(data, &e) != nil {
			return nil, err
		}
		return readURL(w, natsFlags{NATSURL: e.NATSURL})
	}
	defer release()
	s, err := server.New(server.Options{DataDir: filepath.Join(dir, "nats"), Port: -1}, w.log)
	if err != nil {
		return nil, err
	}
	if err := s.Start(w.ctx); err != nil {
		return nil, err
	}
	defer s.Stop()
	b, err := bus.Connect(w.ctx, bus.Options{InProcess: s, Name: "courier-replay"}, w.log, nil)
	if err != nil {
		return nil, err
	}
	defer closeBus(b)
	return readBus(w.ctx, b)
}

func readURL(w *world, n natsFlags) (*replayLog, error) {
	b, err := n.connect(w)
	if err != nil {
		return nil, err
	}
	defer closeBus(b)
	return readBus(w.ctx, b)
}

// logLine is a line of a saved log: an event with its place, or an artifact.
type logLine struct {
	Subject  string          `json:"subject,omitempty"`
	Stream   string          `json:"stream,omitempty"`   // ADVICE; absent: JOB, NODE or REGRESSOR, as the subject says
	Sequence uint64          `json:"sequence,omitempty"` // in its stream
	StoredAt *time.Time      `json:"stored_at,omitempty"`
	Event    json.RawMessage `json:"event,omitempty"`
	Artifact string          `json:"artifact,omitempty"` // sha256 of data, in hex
	Data     []byte          `json:"data,omitempty"`     // base64 in JSON
}

// write writes the log as JSON lines: artifacts first, by their names, then the
// events. The same log gives the same bytes.
func (l *replayLog) write(out io.Writer) error {
	lines := bufio.NewWriter(out)
	e := json.NewEncoder(lines)
	digests := make([]string, 0, len(l.artifacts))
	for digest := range l.artifacts {
		digests = append(digests, digest)
	}
	slices.Sort(digests)
	for _, digest := range digests {
		if err := e.Encode(logLine{Artifact: digest, Data: l.artifacts[digest]}); err != nil {
			return err
		}
	}
	for i := range l.records {
		r := &l.records[i]
		event, err := schemas.Marshal(r.Event)
		if err != nil {
			return err
		}
		line := logLine{Subject: r.Subject, Sequence: r.Sequence, StoredAt: &r.StoredAt, Event: event}
		if r.stream == schemas.StreamAdvice {
			line.Stream = r.stream
		}
		if err := e.Encode(line); err != nil {
			return err
		}
	}
	return lines.Flush()
}

// parseLog reads what write wrote. The error names the line.
func parseLog(in io.Reader) (*replayLog, error) {
	l := &replayLog{artifacts: map[string][]byte{}}
	d := json.NewDecoder(bufio.NewReader(in))
	for n := 1; ; n++ {
		var line logLine
		err := d.Decode(&line)
		if errors.Is(err, io.EOF) {
			return l, nil
		}
		if err == nil {
			err = l.add(&line)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %s", n, plain(err))
		}
	}
}

func (l *replayLog) add(line *logLine) error {
	switch {
	case line.Artifact != "":
		l.artifacts[line.Artifact] = line.Data
		return nil
	case line.StoredAt == nil || line.Sequence == 0:
		return errors.New("want an event with subject, sequence and stored_at, or an artifact")
	}
	e, err := schemas.Parse(line.Subject, line.Event)
	if err != nil {
		return err
	}
	if s, ok := e.(interface{ SetSequence(uint64) }); ok {
		s.SetSequence(line.Sequence)
	}
	r := bus.Record{Event: e, Subject: line.Subject, Sequence: line.Sequence, StoredAt: line.StoredAt.UTC()}
	l.records = append(l.records, replayRecord{r, cmp.Or(line.Stream, streamOf(e))})
	return nil
}

// streamOf returns the stream that stores an event, or that stored an advice before ADVICE did.
func streamOf(e schemas.Event) string {
	switch e.(type) {
	case *schemas.Sample:
		return schemas.StreamNode
	case *schemas.Trained, *schemas.Promoted, *schemas.Rejected, *schemas.Drift:
		return schemas.StreamRegressor
	}
	return schemas.StreamJob
}
