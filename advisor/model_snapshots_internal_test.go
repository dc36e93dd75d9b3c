package advisor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"time"

	"courier/bus"
	"courier/schemas"
)

func (c *modelBus) StreamInfo(ctx context.Context, stream string) (info bus.StreamInfo, err error) {
	err = c.ask(ctx, func() error {
		stored, _ := c.log.from(stream, 1)
		info = bus.StreamInfo{At: time.Now().UTC(), CreatedAt: c.log.created, First: 1, Last: uint64(len(stored))}
		return nil
	})
	return info, err
}

func (c *modelBus) WidenStream(context.Context, string, int64, time.Duration) (bus.StreamInfo, error) {
	return bus.StreamInfo{}, errors.New("the log of the model has no limits")
}

func (c *modelBus) Snapshots(ctx context.Context, _ string, _ int) (all []bus.Snapshot, err error) {
	err = c.ask(ctx, func() error {
		c.log.mu.Lock()
		defer c.log.mu.Unlock()
		for _, s := range c.log.snapshots {
			all = append([]bus.Snapshot{s.Snapshot}, all...)
		}
		return nil
	})
	return all, err
}

func (c *modelBus) CheckSnapshot(context.Context, bus.Snapshot, bus.StreamInfo) error { return nil }

func (c *modelBus) SaveSnapshot(ctx context.Context, s bus.Snapshot, encode func(io.Writer) error) error {
	var data bytes.Buffer
	if err := encode(&data); err != nil {
		return err
	}
	return c.ask(ctx, func() error {
		c.log.mu.Lock()
		defer c.log.mu.Unlock()
		s.Name = strconv.Itoa(len(c.log.snapshots))
		c.log.snapshots = append(c.log.snapshots, modelSnapshot{s, data.Bytes()})
		slices.SortStableFunc(c.log.snapshots, func(x, y modelSnapshot) int {
			return cmp.Compare(x.Sequence, y.Sequence)
		})
		return nil
	})
}

func (c *modelBus) LoadSnapshot(ctx context.Context, s bus.Snapshot, decode func(io.Reader) error) error {
	return c.ask(ctx, func() error {
		c.log.mu.Lock()
		defer c.log.mu.Unlock()
		for _, kept := range c.log.snapshots {
			if kept.Name == s.Name {
				return decode(bytes.NewReader(kept.data))
			}
		}
		return schemas.ErrNotFound
	})
}

func (c *modelBus) DropSnapshot(context.Context, bus.Snapshot) error { return nil }
