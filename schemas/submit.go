package schemas

import (
	"crypto/rand"
	"strings"
	"time"
)

// SubmitTimeout is the maximum time that the advisor works on a submission. A client that times out
// earlier does not know whether its job was recorded.
const SubmitTimeout = 5 * time.Second

// jobIDLength is the number of random characters in a generated job ID: 60 bits.
const jobIDLength = 12

// NewJobID returns a random ID for a job whose request has no ID.
func NewJobID() string { return JobIDPrefix + strings.ToLower(rand.Text()[:jobIDLength]) }

// JobIDPrefix is the prefix of every generated job ID.
const JobIDPrefix = "job-"
