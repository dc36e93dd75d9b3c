package regress

import "errors"

// The errors that callers tell apart with errors.Is. Every error of the package
// that is caused by what was handed in wraps one of them and names the field.
var (
	// ErrTooFewExamples says that there is not enough to learn from: the caller
	// should gather examples, not trust a regressor.
	ErrTooFewExamples = errors.New("too few examples")
	// ErrBadExamples says that a Dataset breaks a rule that Validate checks.
	ErrBadExamples = errors.New("bad examples")
	// ErrBadSettings says that options are out of range.
	ErrBadSettings = errors.New("bad settings")
	// ErrBadFile says that a regressor's file or manifest is damaged, foreign or
	// hostile. Nothing of it may be used.
	ErrBadFile = errors.New("bad regressor file")
	// ErrBadRow says that a row to predict has the wrong length or a value that
	// is not a finite number.
	ErrBadRow = errors.New("bad row")
	// ErrDisagree says that two readers of one file predict differently; Load
	// refuses such a file.
	ErrDisagree = errors.New("readers of the file disagree")
)
