package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"courier/bus"
	"courier/bus/bustest"
	"courier/bus/server"
	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// trial is an action that a user tries on a separate connection.
type trial func(nc *nats.Conn) error

func publishes(subject string) trial {
	return func(nc *nats.Conn) error {
		return nc.PublishRequest(subject, nc.NewRespInbox(), []byte("{}"))
	}
}

func listens(subject string) trial {
	return func(nc *nats.Conn) error { _, err := nc.SubscribeSync(subject); return err }
}

// permits reports whether the server permits an action. The server answers a flush after it has
// checked all earlier messages.
func (g *secureServer) permits(user string, try trial) bool {
	g.t.Helper()
	nc, refused := g.raw(user)
	if err := errors.Join(try(nc), nc.FlushTimeout(patience)); err != nil {
		g.t.Fatalf("%s: %v", user, err)
	}
	// The client reads a rejection before the answer to the flush, but another goroutine handles it.
	// Rejections are handled in order: after the rejection of a second action, the first is
	// handled.
	if err := errors.Join(publishes("not.permitted.to.anybody")(nc), nc.FlushTimeout(patience)); err != nil {
		g.t.Fatalf("%s: %v", user, err)
	}
	select {
	case err := <-refused:
		return strings.Contains(err.Error(), "not.permitted.to.anybody")
	case <-time.After(patience):
		g.t.Fatalf("%s: the server did not reject a forbidden action", user)
	}
	return false
}

// The test tries each action as the users who may not do it. It also tries the action as a user who
// may, because an action that always fails proves nothing.
func TestSecure_RightsHold(t *testing.T) {
	g := guard(t, false, "ada", "bob")
	if err := g.as(schemas.Operator, false).Prepare(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	advice, epoch := schemas.JobSubject("j1", schemas.EventAdvice), schemas.JobSubject("j1", schemas.EventEpoch)
	admitted := schemas.JobSubject("j1", schemas.EventAdmitted)
	promoted := schemas.RegressorSubject(schemas.TargetEpochTime, schemas.EventPromoted)
	champion := publishes("$KV.CHAMPIONS." + schemas.TargetEpochTime)
	asks := func(call string) trial { return publishes("$JS.API." + call) }
	hears := func(event string) trial { return listens(schemas.JobSubject("*", event)) }
	asAda := func(subject string) trial { return publishes(schemas.PersonSubject("ada", subject)) }
	const everyone = "ada bob worker collector store trainer gateway advisor"
	for _, c := range []struct {
		what    string
		try     trial
		allowed string // users who may; "": none
		others  string // users who may, too, or need not be tried; all others may not
	}{
		{"hear advice", hears(schemas.EventAdvice), "ada", "bob worker advisor"},
		{"read advice", asks("DIRECT.GET.ADVICE." + advice), "ada gateway", "bob worker store advisor"},
		{"read the last advice", asks("STREAM.MSG.GET.ADVICE"), "ada store", "bob worker"},
		{"read advice of an old log", asks("DIRECT.GET.JOB." + advice), "ada advisor gateway", "bob worker store"},
		{"subscribe to admissions of jobs", hears(schemas.EventAdmitted), "ada", "bob worker advisor"},
		{"read that a job is admitted", asks("DIRECT.GET.JOB." + admitted), "ada", "bob worker store gateway advisor"},
		{"create a consumer of advice", asks("CONSUMER.CREATE.ADVICE.mine." + advice), "gateway store", ""},
		{"consume advice by the durable of the store", asks("CONSUMER.MSG.NEXT.ADVICE.store-ADVICE"), "store", ""},
		{"read any message of jobs", asks("STREAM.MSG.GET.JOB"), "store advisor", ""},
		{"create a consumer of jobs", asks("CONSUMER.CREATE.JOB.mine." + advice), "advisor trainer gateway store", ""},
		{"create a consumer of jobs by the old API", asks("CONSUMER.DURABLE.CREATE.JOB.mine"), "", ""},
		{"consume jobs by the durable of the store", asks("CONSUMER.MSG.NEXT.JOB.store-JOB"), "store", ""},
		{"delete the store's durable", asks("CONSUMER.DELETE.JOB.store-JOB"), "store", ""},
		{"write an epoch", publishes(epoch), "advisor", ""},
		{"publish an event of a job as ada", asAda(epoch), "ada", ""},
		{"submit without a name", publishes(schemas.SubjectJobSubmit), "", ""},
		{"submit as ada", asAda(schemas.SubjectJobSubmit), "ada gateway", ""},
		{"cancel as ada", asAda(schemas.SubjectJobCancel), "ada gateway", ""},
		{"cancel a job of any user", publishes(schemas.SubjectJobCancel), "gateway", ""},
		{"answer requests", listens(schemas.SubjectJobSubmit), "advisor", ""},
		{"subscribe to events of bob worker", listens("person.>"), "", "advisor"},
		{"subscribe to ada's replies", listens(schemas.InboxPrefix("ada") + ".>"), "ada", ""},
		{"write to ada's inbox", publishes(schemas.InboxPrefix("ada") + ".x"), "", "ada"},
		{"request a promotion", publishes(schemas.SubjectRegressorPromote), "gateway", ""},
		{"publish a promotion", publishes(promoted), "trainer", ""},
		{"write the key of a champion", champion, "trainer", ""},
		{"replace a regressor", publishes("$O.REGRESSORS.C.x"), "trainer", ""},
		{"write an intent", publishes("$KV.INTENTS.store-JOB"), "store", ""},
		{"admit a job", publishes("$KV.ADMISSION." + schemas.AdmissionPool), "advisor", ""},
		{"take a stream's lease", publishes("$KV.LEASES.store-JOB"), "store", ""},
		{"take the lease of a shard", publishes("$KV.LEASES.store-JOB-courier-s3"), "store", ""},
		{"acknowledge messages of a shard", publishes("$JS.ACK.JOB.store-JOB-courier-s3.1.1.1.1.0"), "store", ""},
		{"take the trainer's lease", publishes("$KV.LEASES." + schemas.LeaseTrainer), "trainer", ""},
		{"write a sample", publishes(schemas.NodeSubject("node-a", schemas.EventSample)), "collector", ""},
		{"change a stream", asks("STREAM.UPDATE.JOB"), "operator", ""},
		{"write a snapshot", publishes("$O.SNAPSHOTS.C.x"), "advisor", ""},
		{"delete a stream", asks("STREAM.DELETE.JOB"), "operator", ""},
		{"delete a message", asks("STREAM.MSG.DELETE.JOB"), "operator", ""},
		{"create a stream of any name", asks("STREAM.CREATE.MINE"), "operator", ""},
		{"read the state of the server", publishes("$SYS.REQ.SERVER.PING"), "", ""},
	} {
		for user := range strings.FieldsSeq(c.allowed) {
			if user != schemas.Operator && !g.permits(user, c.try) {
				t.Errorf("%s may not %s, want permission", user, c.what)
			}
		}
		for user := range strings.FieldsSeq(everyone) {
			if slices.Contains(strings.Fields(c.allowed+" "+c.others), user) {
				continue
			}
			if g.permits(user, c.try) {
				t.Errorf("%s may %s, want a violation", user, c.what)
			}
		}
	}
	if g.permits(schemas.Operator, champion) {
		t.Error("the operator may write the key of a champion, want a violation: only the trainer promotes")
	}
}

// A person can only submit and publish under their own name. A rejected request or event returns an
// error instead of a timeout.
func TestSecure_RejectionsAreReported(t *testing.T) {
	g := guard(t, false, "ada")
	if err := g.as(schemas.Operator, false).Prepare(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"promote": g.as("ada", true).Request(within(t, patience), schemas.SubjectRegressorPromote,
			&schemas.PromoteRequest{}, new(schemas.Promoted)),
		"publish": func() error {
			_, err := g.as("store", false).Publish(within(t, patience), sampleOf("node-a", 1))
			return err
		}(),
	} {
		if !errors.Is(err, schemas.ErrForbidden) ||
			!strings.Contains(fmt.Sprint(err), "does not permit") {
			t.Errorf("%s = %v, want forbidden by nats", what, err)
		}
	}
}

// The file in deploy takes its nkeys from the environment.
func TestSecure_TheRightsTakeNkeysFromTheEnvironment(t *testing.T) {
	g := guard(t, false)
	for line := range strings.Lines(read(t, g.file("nkeys.env"))) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
		t.Setenv(name, value)
	}
	absolute, err := filepath.Abs(rights)
	if err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(config,
		[]byte("include "+"\""+relative(t, filepath.Dir(config), absolute)+
			"\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := server.New(server.Options{
		DataDir: t.TempDir(),
		Config:  config,
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	b, err := bus.Connect(within(t, patience), bus.Options{
		URL:      s.URL(),
		Identity: bus.Identity{SeedFile: g.file("advisor.nk")},
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer closeBus(b)
	if err := b.Prepare(within(t, patience)); err != nil {
		t.Errorf("create the streams as the advisor: %v", err)
	}
}

func relative(t *testing.T, from, to string) string {
	t.Helper()
	path, err := filepath.Rel(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(path)
}

// Mistakes in the credentials are reported at once, with a correction and without secrets.
func TestSecure_MistakesAreReported(t *testing.T) {
	t.Parallel()
	g, other := guard(t, true, "ada"), guard(t, false)
	empty := filepath.Join(t.TempDir(), "empty.nk")
	if err := os.WriteFile(empty, []byte("SUsomethingelse\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	public := filepath.Join(t.TempDir(), "ada.nk")
	key, err := nkeys.FromSeed([]byte(strings.TrimSpace(read(t, g.file("ada.nk")))))
	if err != nil {
		t.Fatal(err)
	}
	nkey, err := key.PublicKey()
	if err != nil || os.WriteFile(public, []byte(nkey+"\n"), 0o600) != nil {
		t.Fatal(err)
	}
	strange := filepath.Join(t.TempDir(), "Ada Lovelace.nk")
	if err := os.WriteFile(strange, []byte(read(t, g.file("ada.nk"))), 0o600); err != nil {
		t.Fatal(err)
	}
	ca, nk := "--nats-ca="+g.file("ca.crt"), "--nats-nkey="+g.file("ada.nk")
	cert := []string{"--nats-cert=" + g.file("client.crt"), "--nats-key=" + g.file("client.key")}
	secrets := append(g.secrets(), "SUsomethingelse")
	var mistakes sync.WaitGroup
	with := func(more ...string) []string { return append(append([]string{}, cert...), more...) }
	for _, c := range []struct {
		args []string
		want string
	}{
		{with("--nats-ca=/nowhere/ca.crt", nk), "/nowhere/ca.crt: no such file"},
		{with("--nats-ca="+g.file("ada.nk"), nk), "holds no certificate in PEM"},
		{with("--nats-ca="+other.file("ca.crt"), nk), "was not signed by the authority in"},
		{with(nk), "name the file of the authority"},
		{with(ca, "--nats-nkey=/nowhere/ada.nk"), "/nowhere/ada.nk: no such file"},
		{with(ca, "--nats-nkey="+empty), "holds no seed"},
		{with(ca, "--nats-nkey="+public), "holds a public nkey"},
		{with(ca, "--nats-nkey="+strange), "is not a name"},
		{with(ca, "--nats-nkey="+other.file("advisor.nk")), "knows no user with the nkey in"},
		{with(ca), "requires authentication"},
		{[]string{ca, nk, "--nats-cert=" + g.file("client.crt")}, "and vice versa"},
		{
			[]string{
				ca,
				nk,
				"--nats-cert=" + g.file("client.crt"),
				"--nats-key=" + g.file("ca.key"),
			},
			"private key does not match",
		},
		{[]string{ca, nk}, "a certificate of its clients"},
	} {
		mistakes.Go(func() { // concurrently, because most retry for some seconds
			out, err := courier(t, append([]string{"jobs", "--nats-url=" + g.url()}, c.args...)...)
			text := fmt.Sprint(err) + out
			if err == nil || !strings.Contains(text, c.want) {
				t.Errorf("courier jobs %v: %s, want %q", c.args, text, c.want)
			}
			checkNoSecret(t, fmt.Sprint(c.args), text, secrets)
		})
	}
	mistakes.Wait()
	clear := bustest.NewServer(t)
	_, err = courier(t, "jobs", "--nats-url="+clear.URL(), ca)
	if err == nil || !strings.Contains(err.Error(), "secure connection not available") {
		t.Errorf("an authority with a server without TLS: %v, want an error", err)
	}
	b, err := bus.Connect(within(t, patience), bus.Options{
		URL: g.url(),
		Identity: bus.Identity{
			CAFile: g.file("ca.crt"), CertFile: g.file("client.crt"), KeyFile: g.file("client.key"),
			SeedFile: g.file("ada.nk"),
		},
	}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatalf("with valid credentials: %v", err)
	}
	closeBus(b)
}

// No error and no log line contains a secret of an address.
func TestSecure_AddressesKeepTheirSecrets(t *testing.T) {
	t.Parallel()
	const secret = "pa55-w0rd-of-ada"
	var addresses sync.WaitGroup
	for _, args := range [][]string{
		{"jobs", "--nats-url=nats://ada:" + secret + "@127.0.0.1:1"},
		{"jobs", "--nats-url=nats://" + secret + "@127.0.0.1:1"},
		{
			"jobs",
			"--nats-url=nats://ada:" + secret + "%zz@127.0.0.1:1,nats://ada:" + secret +
				"@127.0.0.1:2",
		},
		{"jobs", "--nats-url=ada:" + secret + "@127.0.0.1:1"},
		{"jobs", "--nats-url=nats://ada:" + secret + "@[::1"},
		{
			"store",
			"--nats-url=nats://ada:" + secret + "@127.0.0.1:1",
			"--clickhouse-url=clickhouse://ada:" + secret + "@127.0.0.1:1/courier",
		},
		{
			"store",
			"verify",
			"--nats-url=nats://ada:" + secret + "@127.0.0.1:1",
			"--clickhouse-url=clickhouse://ada:" + secret + "%zz@127.0.0.1:1/courier",
		},
		{
			"all",
			"--data=" + t.TempDir(),
			"--nats-port=0",
			"--http-port=0",
			"--clickhouse-url=clickhouse://ada:" + secret + "%zz@127.0.0.1:1/courier",
		},
		{
			"all",
			"--data=" + t.TempDir(),
			"--nats-url=nats://ada:" + secret + "@127.0.0.1:1",
			"--http-port=0",
		},
	} {
		addresses.Go(func() {
			text := runUntilUnreachable(within(t, patience), append(args, "--log-level=debug"))
			if text == "" {
				t.Errorf("courier %s prints nothing", args[0])
			}
			checkNoSecret(t, fmt.Sprint("courier ", args[0]), text, []string{secret})
		})
	}
	addresses.Wait()
}

// runUntilUnreachable runs the program to its end, or a service until it has logged an unreachable
// address. It returns the output and the error.
func runUntilUnreachable(ctx context.Context, args []string) string {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	// The output of this process and of its trainer.
	out := &watchedBuffer{Buffer: bustest.NewBuffer(), word: "127.0.0.1:1", seen: func() {}}
	if args[0] != "jobs" && args[1] != "verify" {
		out.seen = stop
	}
	err := run(ctx, args, func(string) string { return "" }, out, out)
	if err == nil {
		return out.String()
	}
	return err.Error() + out.String()
}

// watchedBuffer calls seen after a text was written.
type watchedBuffer struct {
	*bustest.Buffer
	word string
	seen func()
}

func (b *watchedBuffer) Write(p []byte) (int, error) {
	n, err := b.Buffer.Write(p)
	if strings.Contains(b.String(), b.word) {
		b.seen()
	}
	return n, err
}
