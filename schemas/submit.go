package schemas

import (
	"crypto/rand"
	"strings"
	"time"
)

// SubmitTimeout bounds how long the advisor works on a submission. A client that
// gives up earlier does not know whether its job was recorded.
const SubmitTimeout = 5 * time.Second

// jobIDLength is the number of random characters of a job ID: 60 bits.
const jobIDLength = 12

// NewJobID returns a random ID for a job whose request has none.
func NewJobID() string { return JobIDPrefix + strings.ToLower(rand.Text()[:jobIDLength]) }

// JobIDPrefix begins every job ID that Courier creates.
const JobIDPrefix = "job-"
