package services

import "golang.org/x/sys/unix"

// FreeBytes returns the free space of the file system with a directory, for a user without privileges.
func FreeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return s.Bavail * uint64(s.Bsize), nil
}
