package store_test

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"courier/schemas"
	"courier/store/storetest"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the answers in testdata/questions again")

// day is a log with something to ask about: two networks' worth of epochs, jobs
// that met and missed their SLO, and two nodes.
func day() (jobs, samples []schemas.Event) {
	s := newStory()
	for i, j := range []struct {
		name    string
		slo     time.Duration
		batch   uint32
		seconds float64
		outcome string
	}{{"morning", 10 * time.Second, 64, 2.5, schemas.EventFinished}, {"noon", 8 * time.Second, 64, 2.25, schemas.EventFinished}, {"evening", time.Minute, 16, 6.5, schemas.EventFailed}, {"night", time.Minute, 16, 6, ""}} {
		s.submitted(j.name, j.slo)
		s.started(j.name, 1)
		for n := uint32(1); n <= 3; n++ {
			s.epoch(j.name, 1, n)
			e := s.events[len(s.events)-1].(*schemas.Epoch)
			e.BatchSize, e.DurationSeconds, e.ConcurrentJobs = j.batch, j.seconds+float64(n)/8, pointer(float64(1+i%2))
			if n == 1 {
				s.advice(j.name, uint64(len(s.events)))
			}
		}
		if j.name == "noon" {
			s.moved(j.name, uint64(len(s.events)))
		}
		if j.outcome != "" {
			s.ended(j.name, 1, j.outcome)
			if j.name == "noon" { // its promise counts all the same
				s.events[len(s.events)-1].(*schemas.Ended).BatchSize = 128
			}
		}
	}
	jobs, s.events = s.events, nil
	for n := range uint64(240) {
		s.sample(fmt.Sprintf("node-%c", 'a'+n%2), n+1)
	}
	return jobs, s.events
}

// reign is a log of regressors: the first, an alarm, a challenger that loses and
// one that wins.
func reign() []schemas.Event {
	s := newStory()
	fitted := func(letter string, medianError float64) schemas.Fitted {
		return schemas.Fitted{ModelDigest: strings.Repeat(letter, 64), ManifestDigest: strings.Repeat(letter, 64), Family: "law", Examples: 60, Settings: 12, MedianAbsoluteRatio: medianError, R2: pointer(0.875), FitSeconds: 0.25}
	}
	trained := func(letter string, medianError float64, reason string) {
		s.add(&schemas.Trained{Stamp: s.stamp(letter + "/trained"), Target: schemas.TargetEpochTime, Fitted: fitted(letter, medianError), Reason: reason, Rival: "a"})
	}
	promoted := func(letter string, revision uint64, medianError float64, by, reason string, j schemas.Judgement) {
		f := fitted(letter, medianError)
		s.add(&schemas.Promoted{Stamp: s.stamp(schemas.PromotedID(schemas.TargetEpochTime, revision)), Target: schemas.TargetEpochTime, Revision: revision, ModelDigest: f.ModelDigest, ManifestDigest: f.ManifestDigest, Family: f.Family,
			Examples: f.Examples, Settings: f.Settings, MedianAbsoluteRatio: f.MedianAbsoluteRatio, R2: f.R2, FitSeconds: f.FitSeconds, Reason: reason, DecidedBy: by, Judgement: j})
	}
	judged := func(loss, coverage float64) schemas.Judgement {
		return schemas.Judgement{JudgedLevel: 0.9, JudgedJobs: 52, JudgedSettings: 9, Loss: &loss, RivalLoss: pointer(0.25), LossDifferenceLow: pointer(-0.125), LossDifferenceHigh: pointer(0.5), CoverageRatio: &coverage, RivalCoverageRatio: pointer(0.75)}
	}
	trained("a", 0.125, "the first regressor")
	promoted("a", 1, 0.125, schemas.DecidedFirst, "the first regressor", schemas.Judgement{})
	s.add(&schemas.Drift{Stamp: s.stamp(schemas.DriftID(schemas.TargetEpochTime, 7)), Target: schemas.TargetEpochTime, ModelDigest: strings.Repeat("a", 64), Scope: schemas.DriftNode, Node: "node-b",
		SinceAt: s.at, WindowSinceAt: s.at, Ratio: 1.25, BeforeRatio: 1, Message: "jobs on node-b take 1.25 times as long"})
	trained("b", 0.25, "drift: node-b")
	s.add(&schemas.Rejected{Stamp: s.stamp("b/rejected"), Target: schemas.TargetEpochTime, ModelDigest: strings.Repeat("b", 64), Reason: "worse", Rival: "a", Judgement: judged(0.5, 0.875)})
	trained("c", 0.0625, "enough new epochs")
	promoted("c", 2, 0.0625, schemas.DecidedTest, "better", judged(0.125, 0.9375))
	s.add(&schemas.Rejected{Stamp: s.stamp("d/rejected"), Target: schemas.TargetAccuracy, ModelDigest: strings.Repeat("d", 64), Reason: "nobody tells of its fit"})
	return s.events
}

// TestViews_AnswerQuestions asks what the README shows, over HTTP as curl does.
func TestViews_AnswerQuestions(t *testing.T) {
	if !slices.Contains(storetest.Protocols(t), "http") {
		t.Skip("the server is not known to speak HTTP")
	}
	address := storetest.Address(t, "http")
	d := storetest.Open(t, address)
	must(t, d.Migrate(t.Context()))
	w := newStore(t, nil, d)
	jobs, samples := day()
	write(t, w, batch(schemas.StreamJob, 1, jobs...))
	write(t, w, batch(schemas.StreamNode, 1, samples...))
	write(t, w, batch(schemas.StreamRegressor, 1, reign()...))
	files, err := filepath.Glob("testdata/questions/*.sql")
	must(t, err)
	all := ""
	for _, file := range files {
		question, err := os.ReadFile(file)
		must(t, err)
		all += string(question)
		got, golden := curl(t, address, string(question)), strings.TrimSuffix(file, ".sql")+".txt"
		if *update {
			must(t, os.WriteFile(golden, []byte(got), 0o644))
		}
		want, err := os.ReadFile(golden)
		must(t, err)
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", file, diff)
		}
	}
	var views []struct {
		Name string `ch:"name"`
	}
	must(t, d.Query(t.Context(), &views, "SELECT name FROM system.tables WHERE database = currentDatabase() AND engine = 'View'"))
	for _, v := range views {
		if !strings.Contains(all, "FROM "+v.Name+"\n") {
			t.Errorf("no question asks the view %s", v.Name)
		}
	}
}

// curl asks over HTTP and returns the answer as a table for people.
func curl(t *testing.T, address, question string) string {
	t.Helper()
	u, err := url.Parse(address)
	must(t, err)
	u.RawQuery = url.Values{"database": {strings.TrimPrefix(u.Path, "/")}, "default_format": {"PrettyCompactMonoBlock"},
		"output_format_pretty_color": {"0"}, "output_format_pretty_row_numbers": {"0"}}.Encode()
	u.Path = "/"
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Post(u.String(), "text/plain", strings.NewReader(question))
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK {
		t.Fatalf("%s\n%s", question, answer)
	}
	return string(answer)
}

func TestViews_KnowTheStateOfAJob(t *testing.T) {
	type line struct {
		State  string   `ch:"state"`
		Run    uint32   `ch:"run"`
		Epochs uint32   `ch:"epochs_done"`
		Met    *bool    `ch:"met_slo"`
		Took   *float64 `ch:"response_seconds"`
	}
	yes, no := true, false
	tests := []struct {
		name string
		tell func(s *story, job string)
		want line
	}{
		{"only-submitted", func(s *story, job string) { s.submitted(job, time.Minute) }, line{State: "submitted"}},
		{"running", func(s *story, job string) {
			s.submitted(job, time.Minute)
			s.started(job, 1)
			s.epoch(job, 1, 1)
		}, line{State: "running", Run: 1, Epochs: 1}},
		{"in-time", func(s *story, job string) { s.job(job, time.Minute, schemas.EventFinished) }, line{"finished", 1, 3, &yes, pointer(11.000000077)}},
		{"too-late", func(s *story, job string) { s.job(job, 2*time.Second, schemas.EventFinished) }, line{"finished", 1, 3, &no, pointer(11.000000077)}},
		{"without-slo", func(s *story, job string) { s.job(job, 0, schemas.EventFinished) }, line{"finished", 1, 3, nil, pointer(11.000000077)}},
		{"failed", func(s *story, job string) { s.job(job, time.Minute, schemas.EventFailed) }, line{"failed", 1, 3, &no, pointer(11.000000077)}},
		{"cancelled-before-start", func(s *story, job string) {
			s.submitted(job, time.Minute)
			s.ended(job, 0, schemas.EventCancelled)
		}, line{"cancelled", 0, 0, &no, pointer(1.000000007)}},
		{"lost", func(s *story, job string) {
			s.submitted(job, 0)
			s.started(job, 1)
			s.ended(job, 1, schemas.EventLost)
		}, line{"lost", 1, 0, nil, pointer(2.000000014)}},
		{"lost-and-found", func(s *story, job string) {
			s.submitted(job, 0)
			s.started(job, 1)
			s.ended(job, 1, schemas.EventLost)
			s.epoch(job, 1, 1)
		}, line{State: "running", Run: 1, Epochs: 1}},
		{"late-epoch-of-a-finished-run", func(s *story, job string) {
			s.job(job, 0, schemas.EventFinished)
			s.epoch(job, 1, 4)
		}, line{"finished", 1, 4, nil, pointer(11.000000077)}},
		{"started-again", func(s *story, job string) {
			s.job(job, time.Minute, schemas.EventFailed)
			s.started(job, 2)
		}, line{State: "running", Run: 2}},
	}
	d := storetest.New(t)
	s := newStory()
	for _, test := range tests {
		test.tell(s, test.name)
	}
	write(t, newStore(t, nil, d), batch(schemas.StreamJob, 1, s.events...))
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var got []line
			must(t, d.Query(t.Context(), &got, "SELECT state, run, epochs_done, met_slo, response_seconds FROM jobs WHERE job_id = ?", test.name))
			if diff := cmp.Diff([]line{test.want}, got); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
		})
	}
}
