package schemas

import "time"

// Lease is the value of a key in the bucket LEASES. It gives one process the exclusive right to a
// task. The holder renews it before it expires. Another process may take it after it has seen the
// same revision for the duration of the lease, by its own clock.
type Lease struct {
	Holder     string  `json:"holder"`      // random name of the process; "" if it was released
	TTLSeconds float64 `json:"ttl_seconds"` // validity of one write
}

// Names of leases.
const (
	LeaseTrainer = "trainer"      // the right to fit and promote
	LeaseRepair  = "store-repair" // the right to repair the tables
)

// LeaseTTL is the validity of one write of a lease. A killed trainer is replaced after LeaseTTL.
const LeaseTTL = 5 * time.Second

// StoreLeaseTTL is the validity of the lease of the writer of a stream's tables. The lease has the
// name of the writer's durable. After a store is killed, rows are late by StoreLeaseTTL. It is not
// shorter, because a store loses the lease and repeats its batch if its disk stalls for two thirds
// of it.
const StoreLeaseTTL = 5 * time.Second
