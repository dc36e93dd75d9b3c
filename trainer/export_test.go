package trainer

// DieAfter makes a trainer end with an error after a step, like a crash.
func DieAfter(o Options, step func(name string) error) Options {
	o.step = step
	return o
}
