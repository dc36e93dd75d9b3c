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

// archivedLibrary is where the library lies in a package archive.
const archivedLibrary = "package/" + libraryName

// largestLibrary bounds in bytes what is unpacked; the pinned one has 566 MB.
const largestLibrary = 4 << 30

// unpack writes the library from a package archive to target. The archive is
// compared with its checksum, in npm's form, before anything in it is believed.
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

// extract finds the library in a compressed archive and copies it to target. It
// reads the archive to its end, and refuses one with a path that would leave
// the folder it is unpacked in: such an archive is not npm's.
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

// copyTo writes a new file from source.
func copyTo(target string, source io.Reader) error {
	file, err := os.OpenFile(target, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	n, err := io.Copy(file, io.LimitReader(source, largestLibrary+1))
	if err == nil && n > largestLibrary {
		err = fmt.Errorf("%s is larger than %d bytes", archivedLibrary, int64(largestLibrary))
	}
	return errors.Join(err, file.Close())
}
