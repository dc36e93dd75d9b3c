package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// streamBackup is the backup of a stream in the form of nats stream backup: its configuration, and
// an archive of its messages and consumers.
type streamBackup struct {
	Config json.RawMessage `json:"config"`
	State  json.RawMessage `json:"state"`
	Error  *nats.APIError  `json:"error,omitempty"`

	chunks [][]byte
}

// backUp requests a snapshot of a stream ($JS.API.STREAM.SNAPSHOT). The server sends chunks, some
// of which need an empty reply as acknowledgement, and an empty message at the end.
func backUp(t *testing.T, nc *nats.Conn, stream string) *streamBackup {
	t.Helper()
	pieces, err := nc.SubscribeSync(nats.NewInbox())
	if err != nil {
		t.Fatal(err)
	}
	b := &streamBackup{}
	askServer(t, nc, "$JS.API.STREAM.SNAPSHOT."+stream, map[string]any{
		"deliver_subject": pieces.Subject,
		"jsck":            true,
	}, b)
	if b.Error != nil {
		t.Fatalf("back up %s: %v", stream, b.Error)
	}
	for {
		m, err := pieces.NextMsg(patience)
		if err != nil {
			t.Fatalf("back up %s: %v", stream, err)
		}
		if len(m.Data) == 0 {
			if status := m.Header.Get("Status"); status != "" && status != "204" {
				t.Fatalf("back up %s: %s %s", stream, status, m.Header.Get("Description"))
			}
			return b
		}
		b.chunks = append(b.chunks, slices.Clone(m.Data))
		if m.Reply == "" {
			continue
		}
		if err := m.Respond(nil); err != nil {
			t.Fatal(err)
		}
	}
}

// restore creates the stream on a server that does not have it.
func (b *streamBackup) restore(t *testing.T, nc *nats.Conn, stream string) {
	t.Helper()
	var to struct {
		Subject string         `json:"deliver_subject"`
		Error   *nats.APIError `json:"error"`
	}
	askServer(t, nc, "$JS.API.STREAM.RESTORE."+stream, b, &to)
	if to.Error != nil {
		t.Fatalf("restore %s: %v", stream, to.Error)
	}
	for _, piece := range append(slices.Clone(b.chunks), nil) {
		m, err := nc.Request(to.Subject, piece, patience)
		if err != nil {
			t.Fatalf("restore %s: %v", stream, err)
		}
		var answer struct{ Error *nats.APIError }
		if len(m.Data) > 0 && (json.Unmarshal(m.Data, &answer) != nil || answer.Error != nil) {
			t.Fatalf("restore %s: %s", stream, m.Data)
		}
	}
}

func askServer(t *testing.T, nc *nats.Conn, subject string, question, answer any) {
	t.Helper()
	data, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	m, err := nc.Request(subject, data, patience)
	if err == nil {
		err = json.Unmarshal(m.Data, answer)
	}
	if err != nil {
		t.Fatalf("%s: %v", subject, err)
	}
}

func dial(t testing.TB, url string) *nats.Conn {
	t.Helper()
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// streamsOf lists the streams of a server, including those of buckets.
func streamsOf(t *testing.T, nc *nats.Conn) []string {
	t.Helper()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	names := js.StreamNames(within(t, patience))
	for name := range names.Name() {
		all = append(all, name)
	}
	if names.Err() != nil {
		t.Fatal(names.Err())
	}
	slices.Sort(all)
	return all
}

// statement runs SQL on the data of a stopped engine as its operator, who may BACKUP and RESTORE.
// Backups are in the folder backups of the data directory.
func statement(t *testing.T, library, data, sql string) {
	t.Helper()
	store, run := filepath.Join(data, "store"), t.TempDir()
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(run, "config.xml")
	text := fmt.Sprintf("<clickhouse><path>%s</path><backups>"+
		"<allowed_path>%s/backups</allowed_path></backups><logger><level>warning</level>"+
		"</logger></clickhouse>",
		store, store)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	alive, held, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	done := filepath.Join(store, "done.tsv")
	cmd := exec.CommandContext(within(t, patience), program(t), "engine-host", "-library", library,
		"-store", store, "--",
		"--config-file="+config, "--path="+store, "--query="+sql+"; SELECT 1 INTO OUTFILE '"+done+
			"' TRUNCATE FORMAT TSV")
	cmd.Dir, cmd.Env, cmd.ExtraFiles = run, []string{"HOME=" + run, "TZ=UTC"}, []*os.File{alive}
	out, _ := cmd.CombinedOutput() // the status is an error after every statement
	_ = alive.Close()              // the process has a copy
	if _, err := os.Stat(done); err != nil {
		t.Fatalf("%s: %s", sql, out)
	}
	if err := os.Remove(done); err != nil {
		t.Fatal(err)
	}
}

// logAndTables is a log, its tables, and a store between them.
type logAndTables struct {
	log   *bus.Bus
	url   string
	table string // address of ClickHouse
}

// running starts NATS, ClickHouse and a store with their directories, calls do, and stops them.
func running(t *testing.T, name string, server *bustest.Server, data string, do func(t *testing.T, c *logAndTables)) {
	t.Helper()
	t.Run(name, func(t *testing.T) {
		c := &logAndTables{
			log:   server.Connect(t),
			url:   server.URL(),
			table: storetest.NewServerIn(t, data).Address(t),
		}
		spawn(t, "store", "--nats-url="+c.url, "--clickhouse-url="+c.table, "--batch-age=50ms")
		do(t, c)
	})
	if t.Failed() {
		t.FailNow()
	}
}

// publish publishes numbered samples and epochs, and waits until the tables have them.
func (c *logAndTables) publish(t *testing.T, from, to uint64) {
	t.Helper()
	accuracy := 0.9
	for n := from; n < to; n++ {
		e := &schemas.Epoch{
			Setting: schemas.Setting{
				Model: "m", BatchSize: 64, CPUs: 2, Epochs: 1000, Nodes: []string{"node-a"},
			},
			Epoch:           uint32(n) + 1,
			DurationSeconds: 1,
			DurationSource:  schemas.DurationReported,
			Accuracy:        &accuracy,
		}
		e.EventID, e.At, e.JobID, e.Run = schemas.EpochID("job", 1, e.Epoch), time.Now().UTC(), "job", 1
		for _, event := range []schemas.Event{sampleOf("node-a", n), e} {
			if _, err := c.log.Publish(within(t, patience), event); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.count(t, to)
}

// count waits until tables and roll-ups have these numbers of samples and epochs, without
// duplicates.
func (c *logAndTables) count(t *testing.T, want uint64) {
	t.Helper()
	d := storetest.Open(t, c.table)
	await(t, fmt.Sprintf("%d in every table", want), func() bool {
		for _, sql := range []string{
			"SELECT count() AS n FROM node_sample",
			"SELECT uniqExact(event_id) AS n FROM node_sample",
			"SELECT sum(samples) AS n FROM node_minute",
			"SELECT count() AS n FROM job_epoch",
			"SELECT uniqExact(event_id) AS n FROM job_epoch",
		} {
			if n, err := count(t, d, sql); err != nil || n != want {
				return false // the table may not exist yet
			}
		}
		return true
	})
}

// command runs courier store rebuild or verify as an operator.
func (c *logAndTables) command(t *testing.T, want int, args ...string) {
	t.Helper()
	out, err := courier(t, append([]string{"store"},
		append(args, "--nats-url", c.url, "--clickhouse-url", c.table)...)...)
	if exitCode(err) != want {
		t.Fatalf("courier store %s = %v, want code %d\n%s", strings.Join(args, " "), err, want, out)
	}
}

// backups has the backups of a cluster.
type backups struct {
	log    map[string]*streamBackup
	tables string // folder of the engine whose backup it has
	digest string // of the champion
}

// Numbers of the events in the first backup, in the second one, and after both.
const early, late, later = 300, 400, 450

// keep publishes events and backs them up, the tables before or after the log.
func keep(t *testing.T, library string, logFirst bool) *backups {
	t.Helper()
	server, k := bustest.NewServer(t), &backups{
		log:    map[string]*streamBackup{},
		tables: t.TempDir(),
	}
	backUpLog := func(t *testing.T) {
		nc := dial(t, server.URL())
		for _, stream := range streamsOf(t, nc) {
			k.log[stream] = backUp(t, nc, stream)
		}
	}
	running(t, "before", server, k.tables, func(t *testing.T, c *logAndTables) {
		c.publish(t, 0, early)
		var err error
		if k.digest, err = c.log.PutArtifact(
			within(t, patience), []byte("a regressor"),
		); err != nil {
			t.Fatal(err)
		}
		if _, err := c.log.SetChampion(within(t, patience), schemas.Champion{
			Target:      schemas.TargetEpochTime,
			ModelDigest: k.digest,
		}, 0); err != nil {
			t.Fatal(err)
		}
		if logFirst {
			backUpLog(t)
			c.publish(t, early, late)
		}
	})
	statement(t, library, k.tables, "BACKUP DATABASE courier TO File('courier')")
	if !logFirst {
		running(t, "meanwhile", server, k.tables, func(t *testing.T, c *logAndTables) {
			c.publish(t, early, late)
			backUpLog(t)
		})
	}
	server.Stop()
	return k
}

// restore creates servers with the data of the backups.
func (k *backups) restore(t *testing.T, library string) (server *bustest.Server, data string) {
	t.Helper()
	server, data = bustest.NewServer(t), t.TempDir()
	nc := dial(t, server.URL())
	for stream, b := range k.log {
		b.restore(t, nc, stream)
	}
	if diff := cmp.Diff(documentedStreams(t), streamsOf(t, nc)); diff != "" {
		t.Errorf("streams (-documented +restored):\n%s", diff)
	}
	store := filepath.Join(data, "store")
	if err := os.MkdirAll(store, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(store, "backups"),
		os.DirFS(filepath.Join(k.tables, "store", "backups"))); err != nil {
		t.Fatal(err)
	}
	statement(t, library, data, "RESTORE DATABASE courier FROM File('courier')")
	return server, data
}

// Everything except the backups is lost. The backups of log and tables are of different times.
// After a restore, every event of either backup exists once, and the cluster works.
func TestBackup_BringsBackLogAndTables(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes half a minute on a busy machine")
	}
	library := testLibrary(t)
	if library == "" {
		t.Skip("no ClickHouse engine")
	}
	for name, logFirst := range map[string]bool{"tables first": false, "log first": true} {
		t.Run(name, func(t *testing.T) {
			k := keep(t, library, logFirst)
			server, data := k.restore(t, library)
			if !logFirst { // the log has events that the tables lack
				t.Run("rebuild", func(t *testing.T) {
					(&logAndTables{
						url:   server.URL(),
						table: storetest.NewServerIn(t, data).Address(t),
					}).command(t, 0, "rebuild")
				})
			}
			running(t, "after", server, data, func(t *testing.T, c *logAndTables) {
				c.count(t, late)
				if text, err := c.log.Artifact(within(t, patience), k.digest); err != nil ||
					string(text) != "a regressor" {
					t.Errorf("restored regressor = %q, %v, want the one in the backup", text, err)
				}
				if champion, _, err := c.log.Champion(within(t, patience),
					schemas.TargetEpochTime); err != nil || champion.ModelDigest != k.digest {
					t.Errorf("restored champion = %+v, %v, want the one in the backup", champion, err)
				}
				c.publish(t, late, later)
				if !logFirst {
					c.command(t, 0, "verify")
				}
			})
		})
	}
}

// documentedStreams are the streams that docs/howto/back-up.md lists.
func documentedStreams(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile("../../docs/howto/back-up.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(string(text), "for s in ")
	list, _, ended := strings.Cut(list, ";")
	if !found || !ended {
		t.Fatal("docs/howto/back-up.md does not list the streams to back up")
	}
	all := strings.Fields(list)
	slices.Sort(all)
	return all
}
