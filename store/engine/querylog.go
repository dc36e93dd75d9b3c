package engine

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// seedSystemDatabase makes the engine keep its database system on disk, before the first start.
// Otherwise the database is in memory, and after a restart the engine cannot create a log table
// whose data exists.
func seedSystemDatabase(metadata string) error {
	path := filepath.Join(metadata, "system.sql")
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.MkdirAll(metadata, 0o750); err != nil {
		return fmt.Errorf("create the engine's system database: %w", err)
	}
	statement := fmt.Sprintf("ATTACH DATABASE _ UUID '%s'\nENGINE = Atomic\n", newUUID())
	if err := writeFile(path, []byte(statement)); err != nil {
		return fmt.Errorf("create the engine's system database: %w", err)
	}
	return nil
}

// newUUID returns a random UUID (version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:]) // never returns an error
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}
