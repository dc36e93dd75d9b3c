package explore

import "context"

// ReadRecords returns the runs in the directory of a study, in order.
func ReadRecords(dir string) ([]MeasuredRun, error) {
	s := &Study{dir: dir, done: map[string]int{}}
	err := s.read()
	return s.records, err
}

// Advice returns the advice of the runs so far.
func (s *Study) Advice(ctx context.Context) (*Findings, error) {
	f, err := s.fit(ctx)
	if err != nil {
		return nil, err
	}
	return s.result(f, "so far"), nil
}
