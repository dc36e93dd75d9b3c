package bus

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"

	"github.com/nats-io/nats.go/jetstream"
)

// Prepare creates the streams and buckets, or changes them to the settings that schemas
// declares. Every service may call it at every start. Limits that keep more than declared
// stay.
func (b *Bus) Prepare(ctx context.Context) error {
	for _, s := range schemas.Streams() {
		if err := b.prepareStream(ctx, s); err != nil {
			return err
		}
	}
	return b.prepareBuckets(ctx)
}

// AwaitPrepared calls Prepare until it succeeds or ctx ends: JetStream may not be ready yet.
func (b *Bus) AwaitPrepared(ctx context.Context) error {
	for {
		trial, cancel := context.WithTimeout(ctx, 10*time.Second)
		err := b.Prepare(trial)
		cancel()
		if err == nil || ctx.Err() != nil {
			return err
		}
		b.log.Warn("streams are not ready, retrying", "error", err)
		if Sleep(ctx, 500*time.Millisecond) != nil {
			return err
		}
	}
}

func (b *Bus) prepareStream(ctx context.Context, s schemas.Stream) error {
	stream, err := b.js.Stream(ctx, s.Name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		ctx, done := b.permissions.watch(ctx, b.api+"STREAM.CREATE."+s.Name)
		_, err := b.js.CreateStream(ctx, b.declared(s, jetstream.StreamConfig{}))
		if err = done(err); err != nil {
			return fmt.Errorf("create stream %s: %w", s.Name, unavailable(err))
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("inspect stream %s: %w", s.Name, unavailable(err))
	}

	have := stream.CachedInfo().Config
	want := b.declared(s, have)
	differences := compare(have, want)
	if differences == "" {
		return nil
	}
	if err := b.updateStream(ctx, want); err != nil {
		return fmt.Errorf("change stream %s (%s): %w", s.Name, differences, unavailable(err))
	}
	b.log.Info("stream changed to its declared settings", "stream", s.Name, "changes", differences)
	return nil
}

// compare describes the settings that differ, such as "max_age is 1h0m0s, want 168h0m0s".
func compare(have, want jetstream.StreamConfig) string {
	var all []string
	h, w := reflect.ValueOf(have), reflect.ValueOf(want)
	for i := range h.NumField() {
		x, y := h.Field(i).Interface(), w.Field(i).Interface()
		if !reflect.DeepEqual(x, y) {
			name, _, _ := strings.Cut(h.Type().Field(i).Tag.Get("json"), ",")
			all = append(all, fmt.Sprintf("%s is %v, want %v", name, x, y))
		}
	}
	return strings.Join(all, "; ")
}

func (b *Bus) updateStream(ctx context.Context, c jetstream.StreamConfig) error {
	ctx, done := b.permissions.watch(ctx, b.api+"STREAM.UPDATE."+c.Name)
	_, err := b.js.UpdateStream(ctx, c)
	return done(err)
}

// declared returns the configuration of a stream with the settings that schemas declares, and with
// those that would lose messages if they were changed. Other settings, and limits that keep more
// than declared, stay.
func (b *Bus) declared(s schemas.Stream, have jetstream.StreamConfig) jetstream.StreamConfig {
	c := have
	c.Name = s.Name
	c.Duplicates = s.Duplicates
	c.MaxMsgSize = s.MaxMessage
	c.Storage = jetstream.FileStorage
	c.Retention = jetstream.LimitsPolicy
	c.Discard = jetstream.DiscardOld
	c.AllowDirect = true
	c.Sealed, c.NoAck = false, false
	c.MaxMsgs, c.MaxMsgsPerSubject, c.MaxConsumers = -1, -1, -1
	c.Replicas = max(have.Replicas, s.Replicas, b.minReplicas)
	if !slices.Equal(slices.Sorted(slices.Values(have.Subjects)), slices.Sorted(slices.Values(s.Subjects))) {
		c.Subjects = s.Subjects
	}

	isNew := have.Name == "" // limits below 1 of an existing stream mean that there is none
	if isNew || have.MaxAge > 0 {
		c.MaxAge = max(have.MaxAge, s.MaxAge)
	}
	if isNew || have.MaxBytes > 0 {
		c.MaxBytes = max(have.MaxBytes, s.MaxBytes)
	}
	return c
}

// prepareBuckets creates missing buckets and raises the number of replicas where it is too
// low. It does not touch other buckets, so a user without the right to create buckets can
// call it once they exist.
func (b *Bus) prepareBuckets(ctx context.Context) error {
	for _, bucket := range []string{
		schemas.BucketAdmission,
		schemas.BucketChampions,
		schemas.BucketIntents,
		schemas.BucketLeases,
	} {
		config := jetstream.KeyValueConfig{
			Bucket: bucket, History: 5, Storage: jetstream.FileStorage, Replicas: b.minReplicas,
		}
		err := prepareBucket(ctx, b, "KV_"+bucket, config, b.js.CreateKeyValue, b.js.UpdateKeyValue)
		if err != nil {
			return fmt.Errorf("create bucket %s: %w", bucket, unavailable(err))
		}
	}
	for _, o := range []jetstream.ObjectStoreConfig{
		{Bucket: schemas.BucketRegressors},
		{Bucket: schemas.BucketSnapshots, TTL: schemas.SnapshotAge},
	} {
		o.Storage, o.Replicas = jetstream.FileStorage, b.minReplicas
		err := prepareBucket(ctx, b, "OBJ_"+o.Bucket, o, b.js.CreateObjectStore, b.js.UpdateObjectStore)
		if err != nil {
			return fmt.Errorf("create object store %s: %w", o.Bucket, unavailable(err))
		}
	}
	return nil
}

// createTimeout bounds one attempt to create a bucket. If two services create it at the same
// time in a NATS cluster, one of them gets no answer (2.15: its update reaches a stream
// without a leader). At the next attempt the bucket exists.
const createTimeout = time.Second

// prepareBucket creates a bucket, or updates it if its stream has too few replicas.
func prepareBucket[C, S any](
	ctx context.Context, b *Bus, stream string, config C,
	create, update func(context.Context, C) (S, error),
) error {
	for {
		s, err := b.js.Stream(ctx, stream)
		if err == nil && s.CachedInfo().Config.Replicas >= b.minReplicas {
			return nil
		}
		write, verb := update, "UPDATE"
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			write, verb = create, "CREATE"
		} else if err != nil {
			return err
		}

		attempt, cancel := context.WithTimeout(ctx, createTimeout)
		watched, done := b.permissions.watch(attempt, b.api+"STREAM."+verb+"."+stream)
		_, err = write(watched, config)
		err = done(err)
		timedOut := attempt.Err() != nil && ctx.Err() == nil
		cancel()
		if err == nil || !timedOut && !errors.Is(err, jetstream.ErrBucketExists) {
			return err
		}
	}
}

// StreamInfo describes the content of a stream. CreatedAt distinguishes streams of the same name.
type StreamInfo struct {
	At          time.Time // of the answer, by the server's clock
	CreatedAt   time.Time
	First, Last uint64 // sequences; First is Last+1 in an empty stream
	Messages    uint64
	Bytes       uint64
	FirstAt     time.Time // when the oldest message was stored; zero for an empty stream
	MaxBytes    int64     // below 1: unlimited
}

// stream opens a stream, whose cached information is current. The error matches schemas.ErrNotFound if
// the server does not have it.
func (b *Bus) stream(ctx context.Context, name string) (jetstream.Stream, error) {
	watched, done := b.permissions.watch(ctx, b.api+"STREAM.INFO."+name)
	s, err := b.js.Stream(watched, name)
	err = done(err)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		err = &schemas.Error{Code: schemas.CodeNotFound, Message: "stream not found"}
	}
	if err != nil {
		return nil, fmt.Errorf("open stream %s: %w", name, unavailable(err))
	}
	return s, nil
}

// StreamInfo returns what a stream holds now.
func (b *Bus) StreamInfo(ctx context.Context, stream string) (StreamInfo, error) {
	s, err := b.stream(ctx, stream)
	if err != nil {
		return StreamInfo{}, err
	}
	info := s.CachedInfo()
	return StreamInfo{
		At:        info.TimeStamp,
		CreatedAt: info.Created,
		First:     info.State.FirstSeq,
		Last:      info.State.LastSeq,
		Messages:  info.State.Msgs,
		Bytes:     info.State.Bytes,
		FirstAt:   info.State.FirstTime,
		MaxBytes:  info.Config.MaxBytes,
	}, nil
}

// Bounds returns the first and last sequence of a stream. In an empty stream, first is
// last+1.
func (b *Bus) Bounds(ctx context.Context, stream string) (first, last uint64, err error) {
	info, err := b.StreamInfo(ctx, stream)
	return max(info.First, 1), info.Last, err
}

// LastSequence returns the sequence of the last message of a stream. The error matches
// schemas.ErrNotFound if the server does not have the stream.
func (b *Bus) LastSequence(ctx context.Context, stream string) (uint64, error) {
	info, err := b.StreamInfo(ctx, stream)
	return info.Last, err
}

// ClusterID identifies the cluster by the creation time of the stream JOB.
func (b *Bus) ClusterID(ctx context.Context) (string, error) {
	info, err := b.StreamInfo(ctx, schemas.StreamJob)
	if err != nil {
		return "", fmt.Errorf("identify the cluster: %w", err)
	}
	return strconv.FormatInt(info.CreatedAt.UnixNano(), 36), nil
}
