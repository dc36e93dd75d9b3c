package tune

// expectedTrials returns how many trials each stage has as far as is known: those that will still
// fail are not.
func (s *tuningState) expectedTrials() []int {
	numbers := make([]int, len(s.stages))
	for i := range s.stages {
		alive := 0
		for j := range s.trials {
			if t := &s.trials[j]; !t.isOut() || t.entered > i {
				alive++
			}
		}
		numbers[i] = min(s.stages[i].Trials, alive)
	}
	return numbers
}

// finishedTrials returns how many trials have completed a stage or failed in it.
func (s *tuningState) finishedTrials(stage int) (n int) {
	for i := range s.trials {
		t := &s.trials[i]
		if t.Stage > stage || t.isOut() && t.entered == stage+1 {
			n++
		}
	}
	return n
}

// alive returns the numbers of the trials that are not out.
func (s *tuningState) alive() []int {
	var numbers []int
	for i := range s.trials {
		if !s.trials[i].isOut() {
			numbers = append(numbers, s.trials[i].Trial)
		}
	}
	return numbers
}

// currentStage returns the first stage that has unfinished trials.
func (s *tuningState) currentStage() int {
	for i, n := range s.expectedTrials() {
		if s.finishedTrials(i) < n {
			return i
		}
	}
	return len(s.stages) - 1
}
