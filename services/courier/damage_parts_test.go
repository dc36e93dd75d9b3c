//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/url"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"courier/bus/server"
	"courier/store"
	"courier/store/storetest"
)

// natsRole is the first argument of a test binary that runs as a NATS server. Its directory and
// port follow.
const natsRole = "nats-server-of-tests"

func init() {
	if len(os.Args) > 3 && os.Args[1] == natsRole {
		if err := natsServer(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
}

// natsServer is the main function of a NATS server.
func natsServer(args []string) error {
	port, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelInfo}))
	s, err := server.New(server.Options{DataDir: args[0], Port: port, Start: patience}, log)
	if err != nil {
		return err
	}
	return errors.Join(s.Start(ctx), s.Wait(ctx))
}

// site has the parts of the cluster and the ways to damage them.
type site struct {
	t                *testing.T
	long             bool
	draw             *rand.Rand // used only by the goroutine of the test
	pause            time.Duration
	nats             *child
	natsURL          string // without a proxy
	clickhouse       *storetest.Server
	address          string // of ClickHouse, without a proxy
	tables           *store.Database
	store, collector *child
	published        *faultyProxy // proxies by the side of their clients
	collected        *faultyProxy
	stored, written  *faultyProxy
	disks            map[string]string // directories of the servers that are small disks

	busy    map[string]*sync.Mutex // by part: one damage at a time
	ongoing sync.WaitGroup         // damages that have not ended
}

func newSite(t *testing.T, long bool, seed uint64) *site {
	s := &site{
		t:     t,
		long:  long,
		draw:  rand.New(rand.NewPCG(seed, 0)),
		pause: 500 * time.Millisecond,
		disks: make(map[string]string),
		busy:  make(map[string]*sync.Mutex),
	}
	for _, part := range []string{
		"nats", "clickhouse", "store", "collector", "publishers-line", "collector-line",
		"store-line", "tables-line",
	} {
		s.busy[part] = new(sync.Mutex)
	}
	natsDir, tablesDir := t.TempDir(), t.TempDir()
	s.disk(t, "nats", natsDir)
	s.disk(t, "clickhouse", tablesDir)
	s.clickhouse = storetest.NewServerIn(t, filepath.Join(tablesDir, "engine"))
	port := storetest.FreePort(t)
	s.nats = spawn(t, natsRole, filepath.Join(natsDir, "jetstream"), strconv.Itoa(port))
	nats := fmt.Sprintf("127.0.0.1:%d", port)
	s.natsURL = "nats://" + nats
	s.published, s.collected, s.stored = newFaultyProxy(t, nats), newFaultyProxy(t, nats), newFaultyProxy(t, nats)
	s.address = s.clickhouse.Address(t)
	u, err := url.Parse(s.address)
	if err != nil {
		t.Fatal(err)
	}
	s.written = newFaultyProxy(t, u.Host)
	s.tables = storetest.Open(t, s.address)
	u.Host = s.written.address()
	s.store = spawn(t, "store", "--nats-url="+s.stored.url("nats"),
		"--clickhouse-url="+u.String(), "--batch-age=50ms")
	spool := filepath.Join(t.TempDir(), "spool")
	s.collector = spawn(t, "collector", "--nats-url="+s.collected.url("nats"), "--node=node-a",
		"--interval=250ms", "--spool-dir="+spool)
	return s
}

// engine returns the current process of ClickHouse.
func (s *site) engine() *os.Process { return s.clickhouse.Process(s.t) }

// deck returns damages in random order. The short version has one of each kind. The long version
// has several kills of every part, and the other kinds for every part.
func (s *site) deck() []damage {
	kills, others := []damage{s.killEngine()}, [][]damage{{s.stopEngine()}, nil, nil}
	for _, p := range []struct {
		name string
		*child
	}{{"nats", s.nats}, {"store", s.store}, {"collector", s.collector}} {
		kills = append(kills, damage{
			name:  "kill " + p.name,
			kill:  true,
			begin: p.kill,
			end:   p.start,
			lasts: 300 * time.Millisecond,
		})
		others[0] = append(others[0], s.stop(p.name, func() *os.Process { return p.cmd.Process }))
	}
	for _, l := range []struct {
		name string
		*faultyProxy
	}{
		{"publishers-line", s.published},
		{"collector-line", s.collected},
		{"store-line", s.stored},
		{"tables-line", s.written},
	} {
		others[1] = append(others[1], damage{
			name:  "cut " + l.name,
			begin: l.cut,
			end:   l.mend,
			lasts: s.at(time.Second, 2*time.Second),
		},
			damage{
				name:  "silence " + l.name,
				begin: l.stall,
				end:   l.mend,
				lasts: s.at(time.Second, 5*time.Second),
			})
	}
	for _, name := range slices.Sorted(maps.Keys(s.disks)) {
		others[2] = append(others[2], s.fill(name))
	}
	all := kills
	if s.long {
		all = slices.Concat(kills, kills, kills, kills, slices.Concat(others...))
		far := others[1][s.draw.IntN(len(others[1]))]
		far.waits = 30 * time.Second
		all = append(all, far)
	} else {
		for _, some := range others {
			s.draw.Shuffle(len(some), func(i, j int) { some[i], some[j] = some[j], some[i] })
			all = append(all, some[:min(1, len(some))]...)
		}
	}
	s.draw.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// at returns the duration for the short or the long version.
func (s *site) at(short, long time.Duration) time.Duration {
	if s.long {
		return long
	}
	return short
}

// killEngine kills ClickHouse, which its supervisor restarts.
func (s *site) killEngine() damage {
	return damage{
		name:  "kill clickhouse",
		kill:  true,
		begin: func() { _ = s.engine().Kill() },
		end:   func() {},
	}
}

func (s *site) stopEngine() damage { return s.stop("clickhouse", s.engine) }

// stop stops a process for a while with SIGSTOP.
func (s *site) stop(name string, process func() *os.Process) damage {
	var p *os.Process
	return damage{name: "stop " + name, lasts: s.at(time.Second, 5*time.Second),
		begin: func() { p = process(); _ = p.Signal(syscall.SIGSTOP) },
		end:   func() { _ = p.Signal(syscall.SIGCONT) }}
}

// disk mounts a small file system for the directory of a server. If that is not possible, the test
// logs this and does not fill disks.
func (s *site) disk(t *testing.T, name, dir string) {
	size := "128m"
	if s.long {
		size = "1g"
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size="+
		size, "tmpfs", dir).CombinedOutput(); err != nil {
		t.Run("full disk of "+name, func(t *testing.T) {
			t.Skipf("mounting a disk is not permitted: %v %s", err, out)
		})
		return
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", "--lazy", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %v %s", err, out)
		}
	})
	s.disks[name] = dir
}

// fill fills the disk of a server for a while.
func (s *site) fill(name string) damage {
	path := filepath.Join(s.disks[name], "filler")
	return damage{
		name:  "fill " + name,
		lasts: s.at(time.Second, 3*time.Second),
		waits: 300 * time.Millisecond,
		begin: func() {
			f, err := os.Create(path)
			if err != nil {
				return // the disk is already full
			}
			zeros := make([]byte, 1<<20)
			for err == nil {
				_, err = f.Write(zeros)
			}
			_ = f.Close() // an error only shows that the disk is full
		},
		end: func() { _ = os.Remove(path) },
	}
}
