package placement

import (
	"cmp"
	"math"
	"slices"

	"courier/policy/quality"
)

// Migration is the move of a running job to another node.
type Migration struct {
	Job, From, To string
	SavedSeconds  float64 // predicted, over all jobs of both nodes
}

// MigrateOptions are the options of Migrate.
type MigrateOptions struct {
	// CostSeconds is how long a job stands still when it moves: checkpoint, stop and start. Default: 60
	// (resource policies, section 1.2).
	CostSeconds float64
	// IsPublished moves a job even if that saves too little.
	IsPublished bool
}

// paidBack is how many times its cost a move has to save (resource policies, section 1.3).
const paidBack = 2

// Migrate returns the best move of a job whose loss has stopped falling away from jobs whose loss
// still falls; nil if there is none. It is the rule of SpeCon (Mao et al., IEEE Systems Journal 2021):
// the job is completing and can move, its node holds at least two growing jobs, and the other node none. The
// best move saves the most completion time over all jobs, if nodes are shared fairly. It must save at
// least twice its cost; the published rule does not predict that. Of equal moves the first one wins.
func Migrate(nodes []Node, o MigrateOptions) *Migration {
	cost := cmp.Or(o.CostSeconds, 60)
	all := make([]sharedNode, len(nodes))
	for i := range nodes {
		all[i] = newSharedNode(&nodes[i])
	}
	var best *Migration
	for i := range all {
		if all[i].growing < 2 {
			continue
		}
		for k := range nodes[i].Jobs {
			if j := &nodes[i].Jobs[k]; j.Phase == quality.Completing && j.CanMove {
				best = better(best, all[i].bestMove(j, all, cost))
			}
		}
	}
	if best == nil || !o.IsPublished && !(best.SavedSeconds >= paidBack*cost) {
		return nil
	}
	return best
}

// better returns the move that saves more, the first one of equals.
func better(a, b *Migration) *Migration {
	if a == nil || b != nil && b.SavedSeconds > a.SavedSeconds {
		return b
	}
	return a
}

// sharedNode is a node whose jobs share it fairly.
type sharedNode struct {
	*Node
	growing   int       // number of growing jobs: those that FlowCon calls new
	remaining []float64 // seconds of the jobs, sorted
	total     float64   // sum of the completion times
}

func newSharedNode(n *Node) sharedNode {
	s := sharedNode{Node: n}
	for i := range n.Jobs {
		if n.Jobs[i].Phase == quality.Growing {
			s.growing++
		}
		s.remaining = append(s.remaining, n.Jobs[i].remaining())
	}
	slices.Sort(s.remaining)
	s.total = totalSeconds(s.remaining)
	return s
}

// bestMove returns the best move of a job from the node; nil if there is none, or if a remaining time is
// not known.
func (from *sharedNode) bestMove(j *Job, nodes []sharedNode, cost float64) (best *Migration) {
	at, _ := slices.BinarySearch(from.remaining, j.remaining())
	rest := slices.Delete(slices.Clone(from.remaining), at, at+1)
	left := from.total - totalSeconds(rest)
	for i := range nodes {
		to := &nodes[i]
		if to.growing > 0 || !(from.total+to.total < math.Inf(1)) {
			continue
		}
		saved := left + to.total - totalWithLate(to.remaining, j.remaining(), cost)
		if best == nil || saved > best.SavedSeconds {
			best = &Migration{Job: j.Name, From: from.Name, To: to.Name, SavedSeconds: saved}
		}
	}
	return best
}

// totalSeconds returns the sum of the completion times of jobs that share a node fairly.
func totalSeconds(sorted []float64) float64 {
	now, done, sum := 0.0, 0.0, 0.0
	for i, seconds := range sorted {
		now += (seconds - done) * float64(len(sorted)-i)
		done = seconds
		sum += now
	}
	return sum
}

// totalWithLate returns the same with another job that starts late; its completion time includes the
// wait.
func totalWithLate(sorted []float64, late, start float64) float64 {
	now, done, sum := 0.0, 0.0, 0.0 // done: the work that each running job has got
	for len(sorted) > 0 {
		step := (sorted[0] - done) * float64(len(sorted))
		if now+step >= start {
			done += (start - now) / float64(len(sorted))
			break
		}
		now += step
		done = sorted[0]
		sorted = sorted[1:]
		sum += now
	}

	now, late = start, done+late
	for isRunning := true; isRunning || len(sorted) > 0; {
		n := len(sorted)
		if isRunning {
			n++
		}
		next := late
		if !isRunning || len(sorted) > 0 && sorted[0] <= late {
			next, sorted = sorted[0], sorted[1:]
		} else {
			isRunning = false
		}
		now += (next - done) * float64(n)
		done = next
		sum += now
	}
	return sum
}
