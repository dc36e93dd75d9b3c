package schemas

import "time"

// Lease is the value of a key in the bucket of leases: who alone may do
// something. The holder writes it again before it runs out; whoever sees the same
// revision for that long, by its own clock, may take it.
type Lease struct {
	Holder     string  `json:"holder"`      // drawn at random by each process; "" if it was given back
	TTLSeconds float64 `json:"ttl_seconds"` // for how long one write holds
}

// Names of leases.
const (
	LeaseTrainer = "trainer"      // who alone fits and promotes
	LeaseRepair  = "store-repair" // who alone repairs the tables
)

// LeaseTTL is for how long one write of a lease holds: a trainer that was killed is
// replaced after so long.
const LeaseTTL = 5 * time.Second

// StoreLeaseTTL is the same for the writer of a stream's tables, whose lease has the
// name of its durable: rows wait so long where a store was killed. A store whose disk stalls
// for two thirds of it loses the lease and repeats its batch, so it is no shorter.
const StoreLeaseTTL = 5 * time.Second
