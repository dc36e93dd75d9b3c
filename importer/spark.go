package importer

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// spark reads an event log of Spark (core/util/JsonProtocol). Its application is one run. The
// processes are the cores of the executors, the nodes their hosts, and the time before the first
// job is the start-up. An epoch consists of the jobs with its number in the description or group
// ("epoch 3"); without any, only the total time is known. Model and batch size come from Spark
// properties that the user names, or from the arguments of the command.
func (r *Reader) spark(name string, in io.Reader) error {
	a := newApplication(name)
	if err := a.read(in, name); err != nil {
		return err
	}
	r.application(a)
	return nil
}

// application adds the run of an event log.
func (r *Reader) application(a *application) {
	d, why := a.end(r.o.Columns)
	if why != nil {
		r.reject(d.Place, why)
		return
	}
	r.addRun(d)
}

// application is the state of reading an event log.
type application struct {
	draft           *runDraft
	id, user        string
	started, ended  int64 // milliseconds since 1970
	properties      map[string]string
	command         string
	executors       map[string]int // cores, by ID
	cores, maxCores int            // current and maximum cores of the executors
	hosts           []string
	jobs            map[int]*sparkJob
	broken          *Refusal
}

// sparkJob is a job in the sense of Spark, or all jobs of an epoch.
type sparkJob struct {
	epoch       int // -1: none
	from, until int64
	succeeded   bool
}

func newApplication(name string) *application {
	return &application{draft: newDraft(Place{File: name}), executors: map[string]int{}, jobs: map[int]*sparkJob{}}
}

// sparkEvent has the relevant fields of all events.
type sparkEvent struct {
	Event      string
	AppID      string `json:"App ID"`
	Timestamp  int64
	User       string
	ExecutorID string `json:"Executor ID"`
	Executor   struct {
		Host  string
		Cores int `json:"Total Cores"`
	} `json:"Executor Info"`
	JobID      int                     `json:"Job ID"`
	Submitted  int64                   `json:"Submission Time"`
	Completed  int64                   `json:"Completion Time"`
	Properties map[string]string       `json:"Properties"`
	JobResult  struct{ Result string } `json:"Job Result"`
	Spark      map[string]string       `json:"Spark Properties"`
	System     map[string]string       `json:"System Properties"`
}

// wanted matches the relevant events; there may be a million others.
var wanted = regexp.MustCompile(
	`"Event":\s*"SparkListener(ApplicationStart|ApplicationEnd|EnvironmentUpdate|ExecutorAdded|ExecutorRemoved|JobStart|JobEnd)"`,
)

func (a *application) read(in io.Reader, name string) error {
	err := eachLine(in, func(number int, line []byte) {
		head := line[:min(len(line), 120)]
		if a.broken != nil || line == nil || !wanted.Match(head) {
			return
		}
		var e sparkEvent
		if err := json.Unmarshal(line, &e); err != nil {
			a.draft.File, a.draft.Line = name, number
			a.broken = refuse(ReasonUnreadable, "", "not a Spark event: %s", err)
			return
		}
		a.event(&e)
	})
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	return nil
}

func (a *application) event(e *sparkEvent) {
	switch e.Event {
	case "SparkListenerApplicationStart":
		a.id, a.user, a.started = e.AppID, e.User, e.Timestamp
	case "SparkListenerApplicationEnd":
		a.ended = e.Timestamp
	case "SparkListenerEnvironmentUpdate":
		a.properties, a.command = e.Spark, e.System["sun.java.command"]
	case "SparkListenerExecutorAdded":
		a.cores += e.Executor.Cores - a.executors[e.ExecutorID]
		a.executors[e.ExecutorID] = e.Executor.Cores
		a.maxCores = max(a.maxCores, a.cores)
		host, _, _ := strings.Cut(e.Executor.Host, ":")
		if node := schemas.NodeName(host); host != "" && !slices.Contains(a.hosts, node) {
			a.hosts = append(a.hosts, node)
		}
	case "SparkListenerExecutorRemoved":
		a.cores -= a.executors[e.ExecutorID]
		delete(a.executors, e.ExecutorID)
	case "SparkListenerJobStart":
		a.jobs[e.JobID] = &sparkJob{epoch: epochNamed(e.Properties), from: e.Submitted}
	case "SparkListenerJobEnd":
		if j := a.jobs[e.JobID]; j != nil {
			j.until = cmp.Or(e.Completed, -1) // 0: it has not ended
			j.succeeded = e.JobResult.Result == "JobSucceeded"
		}
	}
}

var epochName = regexp.MustCompile(`(?i)\bepoch[\s_:#=-]*(\d{1,6})\b`)

// epochNamed returns the epoch number in the properties of a job, or -1.
func epochNamed(properties map[string]string) int {
	for _, key := range []string{"spark.job.description", "spark.jobGroup.id"} {
		if m := epochName.FindStringSubmatch(properties[key]); m != nil {
			n, _ := strconv.Atoi(m[1]) // at most six digits
			return n
		}
	}
	return -1
}

// end returns the run of the log; requested maps fields to names of properties.
func (a *application) end(requested map[string]string) (*runDraft, *Refusal) {
	d := a.draft
	switch {
	case a.broken != nil:
		return d, a.broken
	case a.started == 0:
		return d, refuse(ReasonNothing, "",
			"no SparkListenerApplicationStart: want an uncompressed event log, as"+
				" spark.eventLog.enabled writes it")
	case a.ended == 0:
		return d, refuse(ReasonUnfinished, FieldEndedAt,
			"application %s has no SparkListenerApplicationEnd: it is running, or its log is truncated",
			clip(a.id))
	case a.ended < a.started:
		return d, refuse(ReasonOrder, FieldEndedAt, "application %s ended %d ms before it started",
			clip(a.id), a.started-a.ended)
	}
	d.values[FieldRunID], d.values[FieldUser], d.nodes = a.id, a.user, a.hosts
	d.values[FieldStartedAt] = time.UnixMilli(a.started).UTC().Format(time.RFC3339Nano)
	if a.maxCores > 0 {
		d.set(FieldCPUs, float64(a.maxCores))
	}
	arguments := commandFields(commandFlags(a.command))
	d.values[FieldBatchSize], d.values[FieldEpochs] = arguments[FieldBatchSize], arguments[FieldEpochs]
	for field, name := range requested {
		if v, ok := a.properties[name]; ok {
			d.values[field] = v
		}
	}
	return d, a.times()
}

// times derives start-up, epochs and total time from the Spark jobs.
func (a *application) times() *Refusal {
	d := a.draft
	first, last := int64(math.MaxInt64), int64(0)
	epochs := map[int]*sparkJob{}
	for _, id := range slices.Sorted(maps.Keys(a.jobs)) {
		j := *a.jobs[id]
		switch {
		case j.from < a.started:
			return refuse(ReasonOrder, FieldStartedAt,
				"job %d of Spark was submitted %d ms before its application started", id, a.started-j.from)
		case j.until != 0 && j.until < j.from:
			return refuse(ReasonOrder, FieldEndedAt,
				"job %d of Spark ended %d ms before it was submitted", id, j.from-j.until)
		case !j.succeeded:
			d.values[FieldOutcome] = schemas.EventFailed
		}
		first, last = min(first, j.from), max(last, j.until)
		if e := epochs[j.epoch]; e != nil {
			j.from, j.until, j.succeeded = min(e.from, j.from), max(e.until, j.until), e.succeeded && j.succeeded
		}
		epochs[j.epoch] = &j
	}
	if last <= a.started {
		return refuse(ReasonNothing, "", "no job of Spark ended in application %s", clip(a.id))
	}
	if delete(epochs, -1); len(epochs) > 0 {
		return a.epochs(epochs)
	}
	if first > a.started {
		d.set(FieldStartup, float64(first-a.started)/1000)
	}
	d.set(FieldSeconds, float64(last-a.started)/1000)
	return nil
}

// epochs derives the epochs from their jobs. An epoch begins at the end of the previous one, so
// that it includes the work of the driver between them; the first begins with its first job.
func (a *application) epochs(found map[int]*sparkJob) *Refusal {
	begin := int64(0)
	for _, number := range slices.Sorted(maps.Keys(found)) {
		e := found[number]
		if !e.succeeded {
			break
		}
		if begin == 0 {
			begin = e.from
			if begin > a.started {
				a.draft.set(FieldStartup, float64(begin-a.started)/1000)
			}
		}
		if e.until <= begin {
			return refuse(ReasonPositive, FieldEpochSeconds,
				"epoch %d ended before the previous epoch: their jobs ran at the same time", number)
		}
		a.draft.epochs = append(a.draft.epochs, PastEpoch{
			Number:  uint32(number),
			Seconds: float64(e.until-begin) / 1000,
			Source:  schemas.DurationReported,
		})
		begin = e.until
	}
	if epochs := a.draft.epochs; len(epochs) > 0 && epochs[0].Number == 0 {
		for i := range epochs {
			epochs[i].Number++
		}
	}
	return nil
}
