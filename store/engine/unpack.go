package engine

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const archivedLibrary = "package/" + libraryName

// maxLibraryBytes bounds the size of the unpacked library. The pinned one has 566 MB.
const maxLibraryBytes = 4 << 30

// unpack extracts the library of a package archive to target. Before that it checks the archive's
// checksum, which is in npm's format.
func unpack(archive, integrity, target string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	h := sha512.New()
	if _, err := io.Copy(h, file); err != nil {
		return fmt.Errorf("read %s: %w", archive, err)
	}
	if got := "sha512-" + base64.StdEncoding.EncodeToString(h.Sum(nil)); got != integrity {
		return fmt.Errorf("%w: %s has %s, want %s", ErrIntegrity, archive, got, integrity)
	}
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := extract(file, target); err != nil {
		return fmt.Errorf("unpack %s: %w", archive, err)
	}
	return nil
}

// extract copies the library of a compressed archive to target. It reads the whole archive, and
// fails if a path leads outside of the archive's directory.
func extract(compressed io.Reader, target string) error {
	unzipped, err := gzip.NewReader(compressed)
	if err != nil {
		return err
	}
	defer unzipped.Close()
	entries := tar.NewReader(unzipped)
	found := false
	for {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if !filepath.IsLocal(entry.Name) {
			return fmt.Errorf("the archive has an entry %q outside its folder", entry.Name)
		}
		if entry.Name != archivedLibrary {
			continue
		}
		if entry.Typeflag != tar.TypeReg || found {
			return fmt.Errorf("%s is not one regular file in the archive", archivedLibrary)
		}
		found = true
		if err := copyTo(target, entries); err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("the archive has no %s", archivedLibrary)
	}
	return nil
}

func copyTo(target string, source io.Reader) error {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(file, io.LimitReader(source, maxLibraryBytes+1))
	if err == nil && n > maxLibraryBytes {
		err = fmt.Errorf("%s is larger than %d bytes", archivedLibrary, int64(maxLibraryBytes))
	}
	return errors.Join(err, file.Close())
}
