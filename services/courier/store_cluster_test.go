package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/schemas"
	"courier/store/storetest"
	"courier/store/storetest/cluster"
)

// The commands write and compare the shards of a cluster.
func TestStoreCluster_WritesAndVerifiesShards(t *testing.T) {
	servers, server := cluster.Start(t, 1, 1), bustest.NewServer(t)
	b := server.Connect(t)
	last := uint64(0)
	for n := range uint64(40) {
		node := fmt.Sprintf("node-%d", n%8)
		sequence, err := b.Publish(within(t, patience), &schemas.Sample{
			Stamp: schemas.Stamp{
				EventID: schemas.SampleID(node, "boot", n),
				At:      time.Now().UTC(),
			},
			Node:            node,
			BootID:          "boot",
			Number:          n,
			IntervalSeconds: 2,
			Cores:           2,
		})
		if err != nil {
			t.Fatal(err)
		}
		last = sequence
	}
	flags := []string{
		"--nats-url=" + server.URL(),
		"--clickhouse-url=" + servers.URL(0, "courier"),
		"--clickhouse-cluster=" + cluster.Name,
	}
	spawn(t, append([]string{"store"}, flags...)...)
	readers := storetest.Open(t, servers.URL(1, "courier"))
	await(t, "rows of all shards", func() bool {
		n, err := readers.Position(within(t, oneTry), schemas.StreamNode)
		return err == nil && n >= last
	})

	var out bytes.Buffer
	err := run(within(t, patience), append([]string{"store", "verify"}, flags...),
		func(string) string { return "" }, &out, &out)
	if err != nil {
		t.Fatalf("courier store verify: %v\n%s", err, out.String())
	}
	for _, want := range []string{
		"shard 1 NODE", "shard 2 NODE", "Log, tables and roll-ups agree.",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("courier store verify prints no %q:\n%s", want, out.String())
		}
	}
}
