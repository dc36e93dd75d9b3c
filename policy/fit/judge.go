package fit

import "math"

// judge compares the latest move of a job with its prediction, and returns a move that undoes it if
// less than half of the gain came and going back pays.
//
// Two windows differ by noise alone, so the measured gain counts at its upper bound. A move that
// brought some speed is kept even if it promised more: going back would cost a pause to lose it.
func (p *resizePlan) judge(j *planned, record *ResizeRecord) *proposal {
	trial := record.Trial
	record.Trial = nil
	if trial == nil || trial.From == j.Shape || !j.Facts.allows(&trial.From) {
		return nil
	}
	speed := j.Facts.Speed(j.Shape, j.mean.StepSeconds)
	measured := math.Log(speed / j.Facts.Speed(trial.From, trial.StepSeconds))
	cores := math.Log(float64(j.Shape.Cores()) / float64(trial.From.Cores()))
	gain := measured
	if trial.IsShrink {
		gain -= cores
	}
	reports := 1/float64(len(j.Window)) + 1/float64(max(1, trial.Reports))
	bound := deadlineFactor * noiseRatio * math.Sqrt(reports)
	if gain+bound >= trial.Gain/2 {
		record.Fruitless = 0
		return nil
	}

	record.Fruitless++
	record.Barred = append(record.Barred, BarredShape{j.Shape, p.now.Add(barredTime)})
	if record.Fruitless >= fruitlessMoves {
		record.Fruitless = 0
		record.RestUntil = p.now.Add(restTime)
	}
	ratio, lower := math.Exp(-measured), math.Exp(-measured-bound)
	pause := j.pauseBefore(trial.From)
	isFaster := j.paysBack(lower, pause)
	isCheaper := cores > 0 && j.paysBack(lower*math.Exp(cores), pause) &&
		j.keepsDeadline(lower, pause)
	if !isFaster && !isCheaper {
		return nil
	}
	return &proposal{Resizing: Resizing{
		To: trial.From, Rule: RuleUndo,
		SpeedRatio: ratio, LowerSpeedRatio: lower,
	}}
}
