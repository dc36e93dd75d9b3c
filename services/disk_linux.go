package services

import "golang.org/x/sys/unix"

// FreeBytes returns the space that unprivileged users may use on the file system of a directory.
func FreeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
