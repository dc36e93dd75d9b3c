package advisor

import (
	"testing"
	"time"

	"courier/advisor/advisortest"
	"courier/bus"
	"courier/bus/bustest"
	"courier/schemas"

	"github.com/google/go-cmp/cmp"
)

// lastMove returns the move of the last advice for a running job; nil if it has none.
func lastMove(t *testing.T, b *bus.Bus, job string) *schemas.PlannedMove {
	t.Helper()
	subject := schemas.JobSubject(job, schemas.EventAdvice)
	records, err := b.Last(within(t), schemas.StreamAdvice, subject)
	if err != nil || len(records) == 0 {
		return nil
	}
	return records[0].Event.(*schemas.Advice).Move
}

// elasticServer is a server with an advisor for jobs on nodes with two cores.
type elasticServer struct {
	*bus.Bus
	t *testing.T
}

func newElasticServer(t *testing.T, o Options, nodes ...string) *elasticServer {
	t.Helper()
	server := bustest.NewServer(t)
	s := &elasticServer{server.Connect(t), t}
	promoteFitted(t, s.Bus, advisortest.FitTwoCores)
	startWith(t, server.Connect(t), o, nil)
	for _, node := range nodes {
		publish(t, s.Bus, advisortest.SampleOf(node, advisortest.Small, func(s *schemas.Sample) {
			s.EventID, s.At, s.Number, s.IntervalSeconds = node+"/1", time.Now(), 1, 5
		}))
	}
	q := s.request("", time.Hour, nodes...)
	await(t, "all regressors and nodes", func() bool {
		q.Nodes = nil
		if a := predict(t, s.Bus, q); len(a.Regressors) < len(schemas.Targets()) || len(a.Nodes) == 0 {
			return false
		}
		for _, node := range nodes {
			var a schemas.Advice
			q.Nodes = []string{node} // which is refused until the advisor has its sample
			err := s.Request(within(t), schemas.SubjectJobPredict, &q, &a)
			if err != nil || a.Load.ProcessesPerCore == 0 {
				return false
			}
		}
		return true
	})
	return s
}

// request returns the request of an elastic job of 1,000 epochs.
func (s *elasticServer) request(id string, slo time.Duration, nodes ...string) schemas.JobRequest {
	q := manyEpochs(id, slo)
	q.CPUs, q.Elastic, q.Nodes = schemas.CPUs{1, 2}, true, nodes
	return q
}

// start starts a job with a number of CPUs.
func (s *elasticServer) start(q *schemas.JobRequest, cpus uint32) {
	s.t.Helper()
	e := manyStarted(q.JobID)
	e.CPUs, e.Epochs, e.Nodes = cpus, uint32(q.Epochs), q.Nodes
	if q.Elastic {
		e.Moves = []string{schemas.MoveCPUs}
	}
	publish(s.t, s.Bus, e)
	awaitRunning(s.t, s.Bus, q.JobID)
}

// run submits and starts a job.
func (s *elasticServer) run(q schemas.JobRequest, cpus uint32) {
	s.t.Helper()
	if v, a := verdict(s.t, s.Bus, q); v != schemas.Admitted {
		s.t.Fatalf("%s: %s: %s; want admitted", q.JobID, v, a.Message)
	}
	s.start(&q, cpus)
}

// Under both policies, a running elastic job lends a CPU to a new one that would not fit otherwise.
// It is advised before the new job starts, and gets the CPU back after the end of that job: if the job is
// cancelled, after the last heartbeat of its runner.
func TestAdmission_LendsCPUsAndReturnsThem(t *testing.T) {
	for _, policy := range []string{schemas.AdmissionProtect, schemas.AdmissionQueue} {
		t.Run(policy, func(t *testing.T) {
			b := newElasticServer(t, Options{Policy: Policy{
				Admission: policy, MoveCPUs: MovesOn,
			}}, "node-a")
			old := b.request("old", 4*time.Hour, "node-a")
			old.Epochs = 3000
			b.run(old, 2)

			urgent := b.request("urgent", 2000*time.Second, "node-a")
			v, a := verdict(t, b.Bus, urgent)
			want := []schemas.Loan{{JobID: "old", FromCPUs: 2, ToCPUs: 1}}
			if diff := cmp.Diff(want, a.Admission.Loans); v != schemas.Admitted || diff != "" {
				t.Fatalf("urgent: %s: %s; loans (-want +got):\n%s", v, a.Message, diff)
			}
			await(t, "old to lend a CPU before the start of urgent", func() bool {
				m := lastMove(t, b.Bus, "old")
				return m != nil && m.Purpose == schemas.MoveLent && m.ToCPUs == 1 && !m.DryRun
			})
			b.start(&urgent, 1)

			e := advisortest.EpochEvent("old", 1, 1)
			e.At, e.DurationSeconds, e.CPUs, e.Epochs = time.Now(), 1.5, 1, 3000
			publish(t, b.Bus, e)
			ended := advisortest.FinishedEvent("urgent", 1)
			ended.At, ended.CPUs, ended.Epochs = time.Now(), 1, 1000
			if policy == schemas.AdmissionProtect {
				publish(t, b.Bus, ended)
			} else {
				cancelled := schemas.JobStatus{}
				if err := b.Request(within(t), schemas.SubjectJobCancel,
					&schemas.JobCancelRequest{JobID: "urgent"}, &cancelled); err != nil {
					t.Fatal(err)
				}
				last := &schemas.Alive{JobStamp: ended.JobStamp, Ended: true}
				if err := b.Notify(within(t), last); err != nil {
					t.Fatal(err)
				}
			}
			await(t, "old to get the CPU back", func() bool {
				m := lastMove(t, b.Bus, "old")
				return m != nil && m.Purpose == schemas.MoveReturned && m.ToCPUs == 2
			})
		})
	}
}

// The deadline policy is asked for every job on one node that may hold CPUs of elastic jobs, or is
// elastic, also on another node than the least loaded one. If moves are not turned on, no running job is
// lowered.
func TestAdmission_AsksTheDeadlinePolicy(t *testing.T) {
	longRun := func(b *elasticServer, id, node string, cpus uint32) {
		q := b.request(id, 4*time.Hour, node)
		q.Epochs = 3000
		b.run(q, cpus)
	}
	loan := func(id string) schemas.Loan {
		return schemas.Loan{JobID: id, FromCPUs: 2, ToCPUs: 1}
	}
	for _, test := range []struct {
		name     string
		moves    string
		prepare  func(b *elasticServer)
		nodes    []string // of the request
		rigid    int      // CPUs of a job that is not elastic; 0: it is
		want     bool     // admitted
		cpus     uint32
		on       []string
		wantLoan []schemas.Loan
	}{
		{
			name: "free CPUs, moves off", moves: MovesOff,
			prepare: func(b *elasticServer) { longRun(b, "old", "node-a", 1) },
			nodes:   []string{"node-a"}, want: true, cpus: 1, on: []string{"node-a"},
		},
		{
			name: "no free CPUs, moves off", moves: MovesOff,
			prepare: func(b *elasticServer) { longRun(b, "old", "node-a", 2) },
			nodes:   []string{"node-a"},
		},
		{
			name: "no free CPUs, dry run", moves: MovesDryRun,
			prepare: func(b *elasticServer) { longRun(b, "old", "node-a", 2) },
			nodes:   []string{"node-a"},
		},
		{
			name: "free CPUs of another node, dry run", moves: MovesDryRun,
			prepare: func(b *elasticServer) {
				longRun(b, "old", "node-a", 2)
				longRun(b, "neighbour", "node-b", 2)
				longRun(b, "third", "node-c", 1)
			},
			want: true, cpus: 1, on: []string{"node-c"},
		},
		{
			name: "a lender on another node", moves: MovesOn, rigid: 1,
			prepare: func(b *elasticServer) {
				tight := b.request("tight", 800*time.Second, "node-a") // 750 s of work
				tight.CPUs, tight.Elastic = schemas.CPUs{2}, false
				b.run(tight, 2)
				longRun(b, "neighbour", "node-b", 2)
				longRun(b, "third", "node-c", 2)
			},
			want: true, cpus: 1, on: []string{"node-b"}, wantLoan: []schemas.Loan{loan("neighbour")},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newElasticServer(t, Options{Policy: Policy{
				Admission: schemas.AdmissionProtect, MoveCPUs: test.moves,
			}}, "node-a", "node-b", "node-c")
			test.prepare(b)
			q := b.request("new", 2000*time.Second, test.nodes...)
			if test.rigid > 0 {
				q.CPUs, q.Elastic = schemas.CPUs{test.rigid}, false
			}
			v, a := verdict(t, b.Bus, q)
			if !test.want {
				if v != schemas.Refused {
					t.Errorf("verdict: got %s with %d CPUs: %s; want refused", v, a.Chosen.CPUs, a.Message)
				}
				return
			}
			if v != schemas.Admitted || a.Chosen.CPUs != test.cpus {
				t.Fatalf("verdict: got %s with %d CPUs: %s; want admitted with %d",
					v, a.Chosen.CPUs, a.Message, test.cpus)
			}
			if diff := cmp.Diff(test.on, a.Nodes); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.wantLoan, a.Admission.Loans); diff != "" {
				t.Errorf("loans (-want +got):\n%s", diff)
			}
		})
	}
}

// The advisor advises a job at risk to take a free CPU. Without the operator's consent the advice is a
// dry run.
func TestAdvisor_AdvisesMovesOfCPUs(t *testing.T) {
	for _, test := range []struct {
		moves    string
		isDryRun bool
	}{{"", true}, {MovesDryRun, true}, {MovesOn, false}, {MovesOff, false}} {
		t.Run(test.moves, func(t *testing.T) {
			server := bustest.NewServer(t)
			b := server.Connect(t)
			promote(t, b)
			startWith(t, server.Connect(t), Options{Policy: Policy{MoveCPUs: test.moves}}, nil)
			q := manyEpochs("a", 1000*time.Second)
			q.CPUs, q.Elastic = schemas.CPUs{1, 2}, true
			awaitRegressors(t, b)
			if _, err := submit(t, b, q); err != nil {
				t.Fatal(err)
			}
			e := manyStarted("a")
			e.CPUs, e.Moves = 1, []string{schemas.MoveCPUs}
			publish(t, b, e)

			var a *schemas.Advice
			await(t, "advice for the running job", func() bool {
				records, err := b.Last(within(t), schemas.StreamAdvice, schemas.JobSubject("a", schemas.EventAdvice))
				if err != nil || len(records) == 0 {
					return false
				}
				a = records[0].Event.(*schemas.Advice)
				return true
			})
			if test.moves == MovesOff {
				if a.Move != nil || a.Action == schemas.ActionCPUs {
					t.Errorf("advice %s with move %+v, want none", a.Action, a.Move)
				}
				return
			}
			want := schemas.PlannedMove{
				Purpose: schemas.MoveAtRisk, FromCPUs: 1, ToCPUs: 2, DryRun: test.isDryRun,
			}
			if a.Move == nil || a.Move.Rule == "" || a.Move.FreeCPUs != 1 || a.Move.SlackSeconds == nil {
				t.Fatalf("move %+v, want its rule, slack and the free CPU", a.Move)
			}
			want.Rule, want.SlackSeconds, want.FreeCPUs = a.Move.Rule, a.Move.SlackSeconds, 1
			if diff := cmp.Diff(want, *a.Move); diff != "" {
				t.Errorf("move (-want +got):\n%s", diff)
			}
			if a.Action != schemas.ActionCPUs || a.Chosen.CPUs != 2 {
				t.Errorf("advice %s with move %+v to %d CPUs, want %+v",
					a.Action, a.Move, a.Chosen.CPUs, want)
			}
		})
	}
}
