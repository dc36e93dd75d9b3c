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

// credentials are the passwords of one data directory.
type credentials struct {
	Courier string `json:"courier"`
	Reader  string `json:"reader"`
}

// loadCredentials reads the passwords of the data directory, and makes them the
// first time. The file lies beside the directories that the engine can read.
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
		return credentials{}, fmt.Errorf("read the engine's passwords in %s: one is empty; remove the file to make new ones", path)
	}
	return c, nil
}

// Writer returns the user that may read and write every database of the engine of
// a data directory, and its password, for a tool of the directory's owner. The
// error says that no engine has run there, or that the owner is another.
func Writer(dataDir string) (user, password string, err error) {
	c, err := readCredentials(dataDir)
	return userCourier, c.Courier, err
}

// newCredentials makes random passwords of 128 bits or more and keeps them.
func newCredentials(path string) (credentials, error) {
	c := credentials{Courier: rand.Text(), Reader: rand.Text()}
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return credentials{}, err
	}
	if err := writeFile(path, append(content, '\n')); err != nil {
		return credentials{}, fmt.Errorf("keep the engine's passwords: %w", err)
	}
	return c, nil
}

// writeFile puts a file in place whole, readable by this user only: a crash
// leaves the old one or the new one.
func writeFile(path string, content []byte) error {
	temporary := path + ".new"
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	if err == nil {
		err = file.Sync()
	}
	if closed := file.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
