package trainer

import (
	"time"

	"courier/schemas"
)

// Example is one measurement that a regressor learns from.
type Example struct {
	Job      string // empty if the example belongs to no job
	Run      uint32 // number of the run of that job
	Model    string
	Dataset  string           // dataset of the job; "" if none was named
	Nodes    []string         // nodes of the job
	Hardware schemas.Hardware // of the most loaded node
	Features schemas.Features
	Value    float64 // value of the target
	At       time.Time
	EndedAt  time.Time // end of the run; zero while it runs
	Count    int       // epochs of which Value is the mean: those of a run in which none was recognized
	Seconds  float64   // duration of the measurement, which ended at At
}

// level names the model and its dataset.
func (x *Example) level() string { return schemas.ModelLevel(x.Model, x.Dataset) }

// Reasons for skipping an event or example.
const (
	skippedFinished = "epoch after the end of its run"
	skippedStartup  = "first epoch timed by arrival: it includes the start-up"
	skippedBurst    = "the elastic job used more CPUs than it was granted"
	skippedMixed    = "accuracy of epochs with several batch sizes"
)
