package engine

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

type credentials struct {
	Courier string `json:"courier"`
	Reader  string `json:"reader"`
}

// loadCredentials reads the passwords of a data directory, and generates them the first time. The
// file is outside of the directories that the engine can read.
func loadCredentials(dataDir string) (credentials, error) {
	c, err := readCredentials(dataDir)
	if errors.Is(err, fs.ErrNotExist) {
		return newCredentials(credentialsPath(dataDir))
	}
	return c, err
}

func credentialsPath(dataDir string) string { return filepath.Join(dataDir, "credentials.json") }

func readCredentials(dataDir string) (credentials, error) {
	path := credentialsPath(dataDir)
	content, err := os.ReadFile(path)
	if err != nil {
		return credentials{}, fmt.Errorf("read the engine's passwords: %w", err)
	}
	var c credentials
	if err := json.Unmarshal(content, &c); err != nil {
		return credentials{}, fmt.Errorf("read the engine's passwords in %s: %w", path, err)
	}
	if c.Courier == "" || c.Reader == "" {
		return credentials{}, fmt.Errorf("read the engine's passwords in %s: "+
			"one is empty; remove the file to generate new ones", path)
	}
	return c, nil
}

// Writer returns the user that may read and write every database of a data directory's engine, and
// its password. It fails if no engine has run there, or if the directory belongs to another user.
func Writer(dataDir string) (user, password string, err error) {
	c, err := readCredentials(dataDir)
	return userCourier, c.Courier, err
}

// newCredentials generates passwords of at least 128 bits and stores them.
func newCredentials(path string) (credentials, error) {
	c := credentials{Courier: rand.Text(), Reader: rand.Text()}
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return credentials{}, err
	}
	if err := writeFile(path, append(content, '\n')); err != nil {
		return credentials{}, fmt.Errorf("store the engine's passwords: %w", err)
	}
	return c, nil
}

// writeFile replaces a file atomically. Only this user can read it.
func writeFile(path string, content []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
