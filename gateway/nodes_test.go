package gateway_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"courier/bus/bustest"
	"courier/gateway"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

func TestNodes_AreTheLastSamplesByName(t *testing.T) {
	b := bustest.New(t)
	now := time.Now().UTC()
	put := func(node string, n uint64, cpu float64) {
		t.Helper()
		s := example[schemas.Sample](t, "sample")
		s.IntervalSeconds = patience.Seconds() // the node stays live during the test
		s.Node, s.Number, s.CPURatio, s.At = node, n, &cpu, now.Add(
			time.Duration(n)*time.Millisecond,
		)
		s.EventID = schemas.SampleID(node, s.BootID, n)
		if _, err := b.Publish(within(t), s); err != nil {
			t.Fatal(err)
		}
	}
	put("node-b", 1, 0.1) // before the gateway starts: it reads only the last sample of a node
	put("node-b", 2, 0.2)
	put("node-a", 1, 0.3)
	h := open(t, b, gateway.Options{})
	nodes := func(path string, want string) {
		t.Helper()
		eventually(t, func() error {
			got := ""
			for _, n := range read[gateway.NodeList](t, h.do(t, "GET", path, "")).Nodes {
				if !n.Live || n.AgeSeconds < 0 || n.AgeSeconds > n.PatienceSeconds {
					t.Errorf("%s: live %v after %v s, want live", n.Node, n.Live, n.AgeSeconds)
				}
				got += fmt.Sprintf("%s #%d %.1f", n.Node, n.Sample.Number, *n.Sample.CPURatio)
				for _, p := range n.Recent {
					got += fmt.Sprintf(" %.1f", *p.CPURatio)
				}
				got += "; "
			}
			if got != want {
				return fmt.Errorf("GET %s = %q, want %q", path, got, want)
			}
			return nil
		})
	}
	nodes("/api/v1/nodes", "node-a #1 0.3; node-b #2 0.2; ")
	put("node-b", 3, 0.4)
	nodes("/api/v1/nodes?recent_seconds=3600", "node-a #1 0.3 0.3; node-b #3 0.4 0.2 0.4; ")
	nodes("/api/v1/nodes?limit=1&after=node-a", "node-b #3 0.4; ")
	nodes("/api/v1/nodes?node=node-a,node-x&live=true", "node-a #1 0.3; ")
	nodes("/api/v1/nodes?search=E-B", "node-b #3 0.4; ")
	for field, query := range map[string]string{
		"limit": "limit=0",
		"sort":  "sort=load",
		"live":  "live=yes",
		"node":  "node=A,b",
	} {
		checkError(t, query, h.do(t, "GET", "/api/v1/nodes?"+query, ""), 400, schemas.CodeInvalid,
			field)
	}
	checkError(t, "recent_seconds=-1", h.do(t, "GET", "/api/v1/nodes?recent_seconds=-1", ""), 400,
		schemas.CodeInvalid, "recent_seconds")
}

func TestNodes_AreAnEmptyListWhereNoneReported(t *testing.T) {
	h := open(t, bustest.New(t), gateway.Options{})
	for path, want := range map[string]string{
		"/api/v1/nodes":      `{"nodes":[],"total":0,"live":0}`,
		"/api/v1/regressors": `{"regressors":[]}`,
	} {
		if a := h.do(t, "GET", path, ""); a.status != http.StatusOK ||
			strings.TrimSpace(a.body) != want {
			t.Errorf("GET %s = %d %s, want 200 %s", path, a.status, a.body, want)
		}
	}
}

func TestRegressors_AreTheChampionsWithTheirFigures(t *testing.T) {
	b := bustest.New(t)
	h := open(t, b, gateway.Options{})
	promoted := example[schemas.Promoted](t, "promoted")
	champion := schemas.Champion{
		Target:         promoted.Target,
		ModelDigest:    promoted.ModelDigest,
		ManifestDigest: promoted.ManifestDigest,
	}
	revision, err := b.SetChampion(within(t), champion, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := gateway.ChampionList{Regressors: []gateway.ChampionStatus{{
		Target: champion.Target, ModelDigest: champion.ModelDigest, ManifestDigest: champion.ManifestDigest,
		Revision: revision,
	}}}
	list := func() string {
		return cmp.Diff(want,
			read[gateway.ChampionList](t, h.do(t, "GET", "/api/v1/regressors", "")))
	}
	if d := list(); d != "" {
		t.Errorf("before the event: GET /api/v1/regressors (-want +got):\n%s", d)
	}
	promoted.Revision = revision
	promoted.EventID = schemas.PromotedID(promoted.Target, revision)
	if _, err := b.Publish(within(t), promoted); err != nil {
		t.Fatal(err)
	}
	want.Regressors[0].Promoted = promoted
	eventually(t, func() error {
		if d := list(); d != "" {
			return errors.New("GET /api/v1/regressors (-want +got):\n" + d)
		}
		return nil
	})
}
