package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"courier/runner/resize"
	"courier/runner/usage"
	"courier/schemas"
)

// Values of Options.Resize: how the CPUs of a running elastic job change.
const (
	ResizeOff        = "off"                // they do not
	ResizeWeight     = schemas.ByWeight     // the weight of its cgroup
	ResizeCap        = schemas.ByCap        // the weight and the upper limit of its cgroup
	ResizeRestart    = schemas.ByRestart    // it is restarted from its checkpoint after an epoch
	ResizeControl    = schemas.ByControl    // it reads the control file between epochs
	ResizeDocker     = schemas.ByDocker     // the weight of Options.Container
	ResizeDockerCap  = "docker-cap"         // the weight and the upper limit of Options.Container
	ResizeKubernetes = schemas.ByKubernetes // the pod of this process is resized
)

var resizeValues = []string{
	ResizeOff, ResizeWeight, ResizeCap, ResizeControl, ResizeRestart, ResizeDocker, ResizeDockerCap, ResizeKubernetes,
}

// resizeTimeout bounds one change of the CPUs.
const resizeTimeout = 30 * time.Second

// resizer changes the CPUs of the running command in place.
type resizer interface {
	Resize(ctx context.Context, cpus uint32) error
}

// cgroupResizer changes the CPUs of a job by its cgroup, and pins it to as many.
type cgroupResizer struct {
	cgroup      *usage.Cgroup
	reservation *usage.Reservation
	isCapped    bool
}

// Resize implements resizer.
func (r *cgroupResizer) Resize(_ context.Context, cpus uint32) error {
	if err := r.cgroup.SetCPUs(float64(cpus), r.isCapped); err != nil {
		return err
	}
	_, err := r.reservation.Pin(r.cgroup, int(cpus))
	return err
}

// pinInterval is the time until a job that could not be pinned is tried again: the job that lends it
// CPUs releases them at the end of an epoch.
const pinInterval = 100 * time.Millisecond

// pin pins the threads that the command has by now, to CPUs that other jobs may have released by now.
func (j *job) pin() {
	j.pinTimer = nil
	r, ok := j.resizer.(*cgroupResizer)
	if !ok || j.isResizing {
		return
	}
	ok, err := r.reservation.Pin(r.cgroup, int(j.result.Setting.CPUs))
	if err != nil {
		j.log.Debug("job not pinned", "cpus", j.result.Setting.CPUs, "error", err)
	} else if !ok {
		j.pinTimer = time.After(pinInterval)
	}
}

// resizeOutcome is the end of a change of the CPUs.
type resizeOutcome struct {
	cpus uint32
	err  error
}

// isElastic reports whether the CPUs of the job may change while it runs. With several workers they do not.
func (j *job) isElastic() bool {
	return j.o.Request.Elastic && len(j.o.Request.CPUs) > 1 && j.o.Resize != ResizeOff &&
		j.result.Setting.Workers <= 1
}

// startSharing prepares changes of the CPUs. A job whose CPUs cannot change runs with those that it
// was granted.
func (j *job) startSharing() {
	s := &j.result.Setting
	j.sharing = newAdaptation(cpuMoves, "", j.o.Request.CPUs, s)
	if !j.isElastic() {
		return
	}
	r, err := j.newResizer()
	if err == nil && r != nil {
		ctx, cancel := context.WithTimeout(context.Background(), resizeTimeout)
		defer cancel()
		err = r.Resize(ctx, s.CPUs)
	}
	if err != nil {
		j.screen.message("the CPUs of the job cannot change: %s", schemas.OneLine(err.Error()))
		return
	}
	j.resizer, j.sharing.means = r, j.o.resizeMeans()
}

// resizeMeans returns how moves of CPUs are carried out, as their events name it.
func (o *Options) resizeMeans() string {
	if o.Resize == ResizeDockerCap {
		return schemas.ByDocker
	}
	return o.Resize
}

// newResizer returns what changes the CPUs; nil if the command changes them itself or is restarted
// for that.
func (j *job) newResizer() (resizer, error) {
	switch j.o.Resize {
	case ResizeWeight, ResizeCap:
		if j.cgroup == nil {
			return nil, fmt.Errorf("%w, or use --resize control or restart",
				cmp.Or(j.cgroupErr, errors.New("the job has no cgroup, see --no-cgroup")))
		}
		reservation, err := usage.NewReservation()
		if err != nil {
			return nil, err
		}
		return &cgroupResizer{j.cgroup, reservation, j.o.Resize == ResizeCap}, nil
	case ResizeDocker, ResizeDockerCap:
		isCapped := j.o.Resize == ResizeDockerCap
		return &resize.Container{Name: j.o.Container, IsCapped: isCapped}, nil
	case ResizeKubernetes:
		return resize.ThisPod()
	}
	return nil, nil
}

// threads returns the number of CPUs that the command may use at most. A job that is resized in
// place starts with enough threads for all CPUs that it may get.
func (j *job) threads() uint32 {
	if j.sharing == nil || j.resizer == nil {
		return j.result.Setting.CPUs
	}
	return uint32(slices.Max(j.o.Request.CPUs))
}

// resizeAfterEpoch changes the CPUs in place if a move is requested. It is called at the end of an
// epoch, so that no epoch runs with two numbers of CPUs. It does not wait.
func (j *job) resizeAfterEpoch() {
	m := j.sharing.requested
	if m == nil {
		j.pin()
	}
	if m == nil || j.resizer == nil || j.isResizing || !j.process.isRunning() {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), resizeTimeout)
	j.isResizing, j.cancelResize = true, cancel
	go func(r resizer) { j.resized <- resizeOutcome{m.to, r.Resize(ctx, m.to)} }(j.resizer)
}

// releaseCPUs lets other jobs be pinned to the CPUs of this one.
func (j *job) releaseCPUs() {
	if r, ok := j.resizer.(*cgroupResizer); ok {
		r.reservation.Release()
	}
}

// endResize takes the outcome of a change of the CPUs. The following epochs count for the new number.
func (j *job) endResize(o resizeOutcome) {
	j.isResizing = false
	j.cancelResize()
	if o.err != nil {
		j.log.Warn("CPUs not changed", "cpus", o.cpus, "error", o.err)
		j.perform(j.sharing, j.sharing.fail(o.cpus, o.err.Error(), time.Now()))
		return
	}
	j.result.Setting.CPUs = o.cpus
	j.pin()
	j.screen.message("running with %s", schemas.FormatCPUs(o.cpus))
	j.log.Info("CPUs changed",
		"job", j.result.JobID, "run", j.result.Run, "cpus", o.cpus, "from_epoch", j.epochs.last+1)
	j.publishApplied()
}

// publishApplied publishes that the CPUs of the requested move are in effect, so that jobs that wait
// for the CPUs of this one do not wait for its next epoch.
func (j *job) publishApplied() {
	m := j.sharing.requested
	if m == nil || m.to != j.result.Setting.CPUs || !j.process.isRunning() {
		return
	}
	e := m.event(j.sharing, schemas.MoveApplied, "")
	e.Epoch = j.epochs.last + 1
	j.publishMove(e)
}

// awaitResize ends the change of the CPUs that is under way when the job ends.
func (j *job) awaitResize() {
	if j.isResizing {
		j.cancelResize()
		j.endResize(<-j.resized)
	}
}
