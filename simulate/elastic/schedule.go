package elastic

import (
	"cmp"
	"encoding/csv"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Stretch is a time in which a job holds one number of GPUs.
type Stretch struct {
	Job       string
	Start     time.Duration
	End       time.Duration
	GPUs      int
	BatchSize int
}

// scheduleHeader names the columns of a schedule.
const scheduleHeader = "job_id,start_seconds,end_seconds,gpus,batch_size"

// WriteSchedule writes a schedule as CSV, in order of start.
func WriteSchedule(out io.Writer, schedule []Stretch) error {
	w := csv.NewWriter(out)
	_ = w.Write(strings.Split(scheduleHeader, ",")) // an error stays until Flush
	for _, s := range schedule {
		_ = w.Write([]string{
			s.Job, seconds(s.Start), seconds(s.End), strconv.Itoa(s.GPUs), strconv.Itoa(s.BatchSize),
		})
	}
	w.Flush()
	return w.Error()
}

// seconds formats a time without rounding.
func seconds(d time.Duration) string {
	return strconv.FormatFloat(d.Seconds(), 'f', -1, 64)
}

// sortSchedule orders stretches by start, then by job.
func sortSchedule(schedule []Stretch) {
	slices.SortFunc(schedule, func(a, b Stretch) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Job, b.Job))
	})
}
