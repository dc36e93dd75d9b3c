package containers_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// maxPause is the longest accepted interruption of writes when the leader of a stream is lost: two
// election timeouts of NATS, of 9 s at most, because the two servers that are left may vote for
// themselves at first, and one second until the clients notice.
const maxPause = 19 * time.Second

// damage kills containers one at a time and disconnects their networks, under load.
func (c *composeCluster) damage(t *testing.T) *load {
	t.Helper()
	l := startLoad(t, c, "damage", requestRate(t), retriesDamaged)
	leader := c.leader(t, l, "NODE")
	begin := time.Now()
	c.kill(t, c.id(t, leader))
	c.acknowledged(t, l, begin, 3*time.Second)
	c.checkPause(t, l, begin, "the NATS server that leads the stream was killed")
	begin = time.Now()
	c.start(t, c.id(t, leader))
	t.Logf("NATS server healthy again after %.1f s", time.Since(begin).Seconds())

	for _, service := range []string{"advisor", "store"} {
		begin = time.Now()
		c.kill(t, c.id(t, service))
		c.acknowledged(t, l, begin, time.Second)
		c.start(t, c.id(t, service))
		t.Logf("%s healthy again %.1f s after it was killed", service, time.Since(begin).Seconds())
	}

	leader = c.leader(t, l, "JOB")
	begin = time.Now()
	network := c.project
	must(t, "docker", "network", "disconnect", network, c.id(t, leader))
	c.acknowledged(t, l, begin, 3*time.Second)
	c.checkPause(t, l, begin, "the network of the leading NATS server was disconnected")
	must(t, "docker", "network", "connect", "--alias", leader, network, c.id(t, leader))
	c.awaitHealth(t, c.id(t, leader))
	begin = time.Now()
	must(t, "docker", "network", "disconnect", network, c.id(t, "store"))
	c.acknowledged(t, l, begin, 2*time.Second)
	must(t, "docker", "network", "connect", "--alias", "store", network, c.id(t, "store"))
	c.awaitHealth(t, c.id(t, "store"))
	l.stop(t)
	return l
}

// leader returns the name of the NATS server that leads a stream.
func (c *composeCluster) leader(t *testing.T, l *load, stream string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	s, err := l.js.Stream(ctx, stream)
	if err != nil {
		t.Fatal(err)
	}
	if s.CachedInfo().Cluster == nil {
		t.Fatalf("stream %s is not replicated in a cluster", stream)
	}
	return s.CachedInfo().Cluster.Leader
}

// acknowledged waits for an acknowledgement of an event at begin+after or later.
func (c *composeCluster) acknowledged(t *testing.T, l *load, begin time.Time, after time.Duration) {
	t.Helper()
	await(t, 30*time.Second, "an acknowledgement", func() error {
		l.mu.Lock()
		defer l.mu.Unlock()
		at := l.counts["event over NATS"].at
		if len(at) == 0 || at[len(at)-1].Before(begin.Add(after)) {
			return errors.New("none yet")
		}
		return nil
	})
}

// checkPause compares the longest pauses since begin with maxPause.
func (c *composeCluster) checkPause(t *testing.T, l *load, begin time.Time, what string) {
	t.Helper()
	for _, name := range []string{"event over NATS", "submit over HTTP"} {
		longest := l.pause(name, begin)
		t.Logf("%s: longest pause of %q %.2f s (want at most %s)", what, name, longest.Seconds(),
			maxPause)
		if longest > maxPause {
			t.Errorf("%s: %q paused for %s, want at most %s", what, name, longest, maxPause)
		}
	}
}

// roll replaces every container by a new one, one service at a time, like an upgrade. It waits
// until a service is healthy before it replaces the next.
func (c *composeCluster) roll(t *testing.T) *load {
	t.Helper()
	l := startLoad(t, c, "rolling", requestRate(t), retriesRolled)
	begin := time.Now()
	for _, service := range []string{
		"nats1", "nats2", "nats3", "clickhouse", "store", "trainer", "advisor", "collector",
		"gateway", "worker",
	} {
		one, before := time.Now(), c.ids(t, service)
		if service == "advisor" {
			c.renewAdvisors(t)
		} else if out, err := c.compose("up", "--detach", "--no-build", "--no-deps",
			"--force-recreate", service); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		c.awaitHealth(t, c.ids(t, service)...)
		if slices.ContainsFunc(c.ids(t, service), func(id string) bool {
			return slices.Contains(before, id)
		}) {
			t.Errorf("%s still has an old container", service)
		}
		t.Logf("%s replaced in %.1f s, longest pause of predict %.2f s, of events %.2f s",
			service,
			time.Since(one).Seconds(),
			l.pause("predict over HTTP", one).Seconds(),
			l.pause("event over NATS", one).Seconds())
	}
	t.Logf("all containers replaced in %.1f s", time.Since(begin).Seconds())
	l.stop(t)
	return l
}

// renewAdvisors starts new advisors before it stops the old ones.
func (c *composeCluster) renewAdvisors(t *testing.T) {
	t.Helper()
	old := c.ids(t, "advisor")
	if out, err := c.compose("up", "--detach", "--no-build", "--no-deps", "--no-recreate",
		"--scale", fmt.Sprintf("advisor=%d", 2*len(old)), "advisor"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c.awaitHealth(t, c.ids(t, "advisor")...)
	for _, id := range old {
		must(t, "docker", "stop", id)
		must(t, "docker", "rm", id)
	}
}

// loseQuorum kills two of three NATS servers. Requests are then rejected with a reason, and
// succeed again once the servers are back.
func (c *composeCluster) loseQuorum(t *testing.T) {
	t.Helper()
	lost := []string{c.id(t, "nats1"), c.id(t, "nats3")}
	c.kill(t, lost...)
	body := encode(t, jobRequestWithID("minority"))
	await(t, 20*time.Second, "a rejection with a reason", func() error {
		status, answer, err := c.post("/api/v1/jobs", body, 10*time.Second)
		if err != nil {
			return err
		}
		var refusal struct{ Code, Message string }
		if err := json.Unmarshal(answer, &refusal); err != nil || status != 503 ||
			refusal.Code != "unavailable" || !strings.Contains(refusal.Message, "nats") {
			return fmt.Errorf("%d %s", status, answer)
		}
		t.Logf("with two NATS servers killed: %d %s", status, answer)
		return nil
	})
	begin := time.Now()
	must(t, "docker", append([]string{"start"}, lost...)...)
	await(t, time.Minute, "an answer after NATS is back", func() error {
		status, answer, err := c.post("/api/v1/jobs", body, 5*time.Second)
		if err == nil && status != 201 {
			err = fmt.Errorf("%d %s", status, answer)
		}
		return err
	})
	t.Logf("jobs are accepted again %.1f s after the start of the servers",
		time.Since(begin).Seconds())
}

// checkTables stops the workers and compares the log with the tables.
func (c *composeCluster) checkTables(t *testing.T, loads ...*load) {
	t.Helper()
	if out, err := c.compose("stop", "worker"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, l := range loads {
		l.checkStored(t)
	}
	took := await(t, time.Minute, "tables that equal the log", func() error {
		_, err := c.courier(t, "store", "store", "verify")
		return err
	})
	t.Logf("courier store verify: no difference after %.1f s", took.Seconds())

	// The jobs of the workers have also published epochs while NATS was damaged.
	answer, err := c.sql(t,
		"SELECT countIf(state = 'finished'), countIf(state = 'finished' AND epochs_done != 6) FROM jobs FORMAT TSV")
	if finished, short, _ := strings.Cut(answer, "\t"); err != nil || short != "0" {
		t.Errorf("%[2]s of %[1]s finished jobs lack epochs (%[3]v)", finished, short, err)
	} else {
		t.Logf("%s jobs of the workers finished with all epochs", finished)
	}
	c.checkDashboards(t)
	c.checkDeadLetters(t)
}

// checkDashboards runs the queries of the dashboards as their user.
func (c *composeCluster) checkDashboards(t *testing.T) {
	t.Helper()
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ RawSQL string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, root+"/deploy/grafana/dashboards/history.json")),
		&board); err != nil {
		t.Fatal(err)
	}
	rows := 0
	inPeriod := regexp.MustCompile(`\$__timeFilter\((\w+)\)`)
	anything := regexp.MustCompile(`(\w+) IN \(\$\{\w+:singlequote\}\)`) // every value of a variable
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			query := anything.ReplaceAllString(target.RawSQL, "$1 = $1")
			answer, err := c.sql(t, inPeriod.ReplaceAllString(query, "$1 > now() - INTERVAL 1 DAY"))
			if err != nil {
				t.Errorf("panel %q: %v", p.Title, err)
			}
			rows += len(strings.Split(answer, "\n"))
		}
	}
	t.Logf("the queries of %d panels return %d rows", len(board.Panels), rows)
}
