// Package mlflow shows the predicted end of a job as tags of a run in MLflow.
//
// Start creates the run, or uses an existing one. Its environment lets mlflow.start_run of the
// training continue the same run. Predict never waits for the server: of several predictions the
// last one is written.
package mlflow

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"courier/schemas"
)

// Names of the tags.
const (
	TagJob         = "courier.job_id"
	TagEnds        = "courier.ends_at"         // median of the predicted end
	TagLatest      = "courier.latest_at"       // not exceeded with the confidence
	TagProbability = "courier.slo_probability" // of meeting the SLO
	TagDecision    = "courier.decision"
)

// timeout is the timeout of one request.
const timeout = 10 * time.Second

// TrackedRun is a run of MLflow. Its methods must not be called concurrently, except Predict.
type TrackedRun struct {
	ID string

	base   *url.URL // of the tracking server
	isOwn  bool     // created by Start
	log    *slog.Logger
	latest chan map[string]string // at most one set of tags
	ended  chan struct{}
	stop   context.CancelFunc
}

// Start creates a run in an experiment of the tracking server at an address such as
// http://mlflow:5000, and creates the experiment if it does not exist. With MLFLOW_RUN_ID in the
// environment it uses that run. User and password are those of the address, or MLFLOW_TRACKING_TOKEN
// is sent. The Run writes tags until End.
func Start(ctx context.Context, address, experiment, name string, log *slog.Logger) (*TrackedRun, error) {
	base, err := url.Parse(address)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" {
		return nil, fmt.Errorf("mlflow: %q is not an address such as http://mlflow:5000", address)
	}
	r := &TrackedRun{
		ID:     os.Getenv("MLFLOW_RUN_ID"),
		base:   base,
		log:    log,
		latest: make(chan map[string]string, 1),
		ended:  make(chan struct{}),
	}
	if r.ID == "" {
		if err := r.create(ctx, experiment, name); err != nil {
			return nil, err
		}
	}
	writing, stop := context.WithCancel(context.WithoutCancel(ctx)) // the last tags follow a signal
	r.stop = stop
	go r.write(writing)
	return r, nil
}

// create creates the run.
func (r *TrackedRun) create(ctx context.Context, experiment, name string) error {
	found, err := r.send(ctx, http.MethodGet,
		"experiments/get-by-name?experiment_name="+url.QueryEscape(experiment), nil)
	id := found.Experiment.ID
	if found.status == http.StatusNotFound {
		found, err = r.send(ctx, http.MethodPost, "experiments/create", map[string]any{"name": experiment})
		id = found.ID
	}
	if err != nil {
		return err
	}
	created, err := r.send(ctx, http.MethodPost, "runs/create", map[string]any{
		"experiment_id": id,
		"run_name":      name,
		"start_time":    time.Now().UnixMilli(),
	})
	r.ID, r.isOwn = created.Run.Info.ID, true
	return err
}

// Environment returns the variables with which the training continues the run.
func (r *TrackedRun) Environment() []string {
	return []string{"MLFLOW_TRACKING_URI=" + r.base.String(), "MLFLOW_RUN_ID=" + r.ID}
}

// Predict sets the tags of an advice for a job that runs with a batch size and CPUs.
func (r *TrackedRun) Predict(a *schemas.Advice, batchSize, cpus uint32) {
	tags := map[string]string{TagJob: a.JobID, TagDecision: string(a.Decision)}
	running := a.Running(batchSize, cpus)
	if running == nil {
		running = a.Chosen
	}
	if running != nil {
		at := func(seconds *float64) string {
			if seconds == nil {
				return "unknown"
			}
			end := a.At.Add(time.Duration(*seconds * float64(time.Second)))
			return end.UTC().Format(time.RFC3339)
		}
		tags[TagEnds], tags[TagLatest] = at(running.PredictedSeconds), at(running.UpperBoundSeconds)
		if p := running.Probability; p != nil {
			tags[TagProbability] = strconv.FormatFloat(*p, 'g', 3, 64)
		}
	}
	select {
	case <-r.latest: // replaced by newer tags
	default:
	}
	r.latest <- tags // Predict alone sends, so that there is room
}

// write writes tags until End.
func (r *TrackedRun) write(ctx context.Context) {
	defer close(r.ended)
	for tags := range r.latest {
		for key, value := range tags {
			_, err := r.send(ctx, http.MethodPost, "runs/set-tag",
				map[string]any{"run_id": r.ID, "key": key, "value": value})
			if err != nil {
				r.log.Warn("tag not written to MLflow", "tag", key, "error", err)
				break
			}
		}
	}
}

// End waits until the last tags are written, at most until ctx ends or a request times out, and
// ends a run that Start created. Predict must not be called after it.
func (r *TrackedRun) End(ctx context.Context, isFinished bool) {
	close(r.latest)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	stop := context.AfterFunc(ctx, r.stop)
	<-r.ended
	stop()
	r.stop()
	if !r.isOwn {
		return
	}
	status := "FAILED"
	if isFinished {
		status = "FINISHED"
	}
	_, err := r.send(ctx, http.MethodPost, "runs/update",
		map[string]any{"run_id": r.ID, "status": status, "end_time": time.Now().UnixMilli()})
	if err != nil {
		r.log.Warn("run not ended in MLflow", "run", r.ID, "error", err)
	}
}

// response has the fields of all responses.
type response struct {
	status     int    // of HTTP
	ID         string `json:"experiment_id"` // of experiments/create
	Experiment struct {
		ID string `json:"experiment_id"`
	} `json:"experiment"`
	Run struct {
		Info struct {
			ID string `json:"run_id"`
		} `json:"info"`
	} `json:"run"`
}

// send sends a request to the REST API (version 2.0) and decodes the response.
func (r *TrackedRun) send(ctx context.Context, method, path string, body any) (found response, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	data, err := json.Marshal(body)
	if err != nil {
		return found, err
	}
	base := *r.base
	base.User = nil
	address := strings.TrimSuffix(base.String(), "/") + "/api/2.0/mlflow/" + path
	q, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(data))
	if err != nil {
		return found, fmt.Errorf("mlflow: %w", err)
	}
	q.Header.Set("Content-Type", "application/json")
	if password, ok := r.base.User.Password(); ok {
		q.SetBasicAuth(r.base.User.Username(), password)
	} else if token := os.Getenv("MLFLOW_TRACKING_TOKEN"); token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	reply, err := http.DefaultClient.Do(q)
	if err != nil {
		return found, fmt.Errorf("mlflow: %w", err)
	}
	defer reply.Body.Close()
	const most = 1 << 20
	text, err := io.ReadAll(io.LimitReader(reply.Body, most))
	if err != nil {
		return found, fmt.Errorf("mlflow: %w", err)
	}
	found.status = reply.StatusCode
	if found.status != http.StatusOK {
		return found, fmt.Errorf("mlflow: HTTP %d: %s", found.status,
			strings.TrimSpace(string(text[:min(len(text), 300)])))
	}
	if err := json.Unmarshal(text, &found); err != nil {
		return found, fmt.Errorf("mlflow: decode the response to %s: %w", path, err)
	}
	return found, nil
}
