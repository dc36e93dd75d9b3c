package runner

import "os"

// lockDirectory does not lock: directories of killed runs stay.
func lockDirectory(string) (*os.File, error) { return nil, nil }
