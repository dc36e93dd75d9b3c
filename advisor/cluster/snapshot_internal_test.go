package cluster

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"courier/schemas"
)

// encoded returns the snapshot of a cluster.
func encoded(t testing.TB, c *Cluster) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := c.Freeze().Encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// restored returns a cluster from its snapshot, with the same limits.
func restored(t testing.TB, c *Cluster) *Cluster {
	t.Helper()
	next, err := Decode(bytes.NewReader(encoded(t, c)))
	if err != nil {
		t.Fatal(err)
	}
	next.limits = c.limits
	return next
}

// decompressed returns the frames of a snapshot.
func decompressed(t testing.TB, snapshot []byte) []byte {
	t.Helper()
	_, packed, _ := bytes.Cut(snapshot, []byte("\n"))
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	frames, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return frames
}

// busyCluster is a state with jobs in every state.
func busyCluster(t testing.TB) *Cluster { return busyRandomCluster(t).c }

func busyRandomCluster(t testing.TB) *randomCluster {
	t.Helper()
	w := newRandomCluster(New(), 1)
	w.c.limits = smallLimits
	for range 5000 {
		w.step(t)
	}
	return w
}

func TestSnapshot_RestoresTheSameState(t *testing.T) {
	w := busyRandomCluster(t)
	c := w.c
	first := encoded(t, c)
	if again := encoded(t, restored(t, c)); !bytes.Equal(again, first) {
		t.Errorf("encoding of the restored state differs: got %d bytes, want %d", len(again), len(first))
	}
	if diff := firstDifference(fingerprint(t, restored(t, c), w.now), fingerprint(t, c, w.now)); diff != "" {
		t.Error(diff)
	}
}

func TestDecodeCluster_RefusesAnotherVersion(t *testing.T) {
	other := fmt.Sprintf(snapshotTitle, SnapshotVersion+1)
	_, rest, _ := strings.Cut(string(encoded(t, New())), "\n")
	if _, err := Decode(strings.NewReader(other + rest)); err == nil || errors.Is(err, errDamaged) {
		t.Errorf("got error %v, want one that names the version", err)
	}
}

// Input with any wrong or missing byte is refused, or gives the same state.
func TestDecodeCluster_RefusesDamage(t *testing.T) {
	c := busyCluster(t)
	data := encoded(t, c)
	for cut := 0; cut < len(data); cut += 1 + len(data)/60 {
		if _, err := Decode(bytes.NewReader(data[:cut])); err == nil {
			t.Fatalf("DecodeCluster accepts the first %d of %d bytes, want an error", cut, len(data))
		}
	}
	for at := 0; at < len(data); at += 1 + len(data)/60 {
		damaged := bytes.Clone(data)
		damaged[at] ^= 0x55
		got, err := Decode(bytes.NewReader(damaged))
		if err == nil && !bytes.Equal(encoded(t, got), data) {
			t.Fatalf("state differs after corrupting byte %d of %d, want the same state or an error", at, len(data))
		}
	}
}

// A copy of the state shares settled jobs, which start again without changing it.
func TestFreeze_IsNotChangedByLaterRuns(t *testing.T) {
	c := New()
	applyCutShort(c, "a", "ada", schemas.EventFinished)
	frozen, scored := c.Freeze(), c.Ended()
	var before, after bytes.Buffer
	if err := frozen.Encode(&before); err != nil {
		t.Fatal(err)
	}
	c.Apply(&schemas.Started{JobStamp: scoredStamp("a", 2, 20), Setting: scoredRun}, 4, scoredAt.Add(time.Minute))
	if err := frozen.Encode(&after); err != nil {
		t.Fatal(err)
	}
	isSame := bytes.Equal(before.Bytes(), after.Bytes()) && scored[0].State == schemas.StateFinished
	if !isSame || c.Job("a").State != schemas.StateRunning {
		t.Errorf("the copy changed: %t; the job is %s, want running", !isSame, c.Job("a").State)
	}
}

func TestDecode_RefusesARunningJobWithoutItsNode(t *testing.T) {
	c := New()
	stamp := schemas.JobStamp{JobID: "a", Run: 1}
	c.Apply(&schemas.Started{JobStamp: stamp, Setting: scoredRun}, 1, stamp.At)
	delete(c.nodes, "node-a")
	_, err := Decode(bytes.NewReader(encoded(t, c)))
	if !errors.Is(err, errDamaged) || !strings.Contains(err.Error(), "job a runs on node node-a") {
		t.Errorf("got error %v, want one that names the job and the node", err)
	}
}

// FuzzDecodeCluster decodes any input, also as the content of a well-formed file.
func FuzzDecode(f *testing.F) {
	data := encoded(f, busyCluster(f))
	f.Add(data)
	f.Add(decompressed(f, data))
	f.Fuzz(func(t *testing.T, data []byte) {
		var file bytes.Buffer
		fmt.Fprintf(&file, snapshotTitle, SnapshotVersion)
		w := gzip.NewWriter(&file)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		for _, input := range [][]byte{data, file.Bytes()} {
			c, err := Decode(bytes.NewReader(input))
			if err != nil {
				continue
			}
			w := newRandomCluster(c, 1) // an accepted state must be usable
			for range 100 {
				w.step(t)
			}
			encoded(t, c)
		}
	})
}
