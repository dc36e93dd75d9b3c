package main

import (
	"bufio"
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

// replayLog is a recorded log: the events of jobs, nodes and regressors in the
// order in which they were stored, and the files of the regressors.
type replayLog struct {
	records   []bus.Record
	artifacts map[string][]byte // by sha256, in hex
}

// replayStreams are what a replay reads.
var replayStreams = []string{schemas.StreamJob, schemas.StreamNode, schemas.StreamRegressor}

// readBus reads all that the streams keep, up to their present end. An artifact
// that is gone is left out: what it predicted cannot be repeated, and that is said.
func readBus(ctx context.Context, b *bus.Bus) (*replayLog, error) {
	if _, _, err := b.Champion(ctx, schemas.TargetEpochTime); err != nil && !errors.Is(err, schemas.ErrNotFound) {
		return nil, fmt.Errorf("no courier keeps its log there: %w", err)
	}
	l := &replayLog{artifacts: map[string][]byte{}}
	streams := make([][]bus.Record, len(replayStreams))
	for i, stream := range replayStreams {
		err := b.Read(ctx, bus.FollowOptions{Stream: stream}, func(r bus.Record) error {
			streams[i] = append(streams[i], r)
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

// merged puts streams into one order: by the time of storing, and never against
// the order of a stream.
func merged(streams [][]bus.Record) []bus.Record {
	var all []bus.Record
	for {
		first := -1
		for i, s := range streams {
			if len(s) > 0 && (first < 0 || s[0].StoredAt.Before(streams[first][0].StoredAt)) {
				first = i
			}
		}
		if first < 0 {
			return all
		}
		all, streams[first] = append(all, streams[first][0]), streams[first][1:]
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
		if err := e.Encode(logLine{Subject: r.Subject, Sequence: r.Sequence, StoredAt: &r.StoredAt, Event: event}); err != nil {
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
	l.records = append(l.records, bus.Record{Event: e, Subject: line.Subject, Sequence: line.Sequence, StoredAt: line.StoredAt.UTC()})
	return nil
}
