package gateway

import (
	"bufio"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"courier/schemas"
)

// Role is a set of rights. Each role includes the rights of the previous one.
type Role int

// The roles, in the order of their rights.
const (
	Anybody   Role = iota // files of the page, health, description of the API
	Reader                // all requests that change nothing
	Submitter             // submit jobs and cancel own ones
	Admin                 // cancel any job, change champions
)

var roleNames = []string{"anybody", "reader", "submitter", "admin"}

// String returns the role's name in the token file.
func (r Role) String() string { return roleNames[r] }

// identity is the user of a request.
type identity struct {
	user string // "": the gateway has no tokens, or the request has none
	role Role
}

// Tokens identifies users by their tokens. It holds only hashes, and reloads its file when it
// changes.
type Tokens struct {
	file string

	mu        sync.Mutex
	tokens    []userToken
	checkedAt time.Time   // last check of the file
	version   fileVersion // of the loaded file; zero if it could not be read
}

// fileVersion distinguishes versions of a file.
type fileVersion struct {
	modifiedAt time.Time
	size       int64
}

// checkInterval is how long a token remains valid at most after its removal from the file.
const checkInterval = time.Second

// userToken is a line of the token file.
type userToken struct {
	hash [sha256.Size]byte
	identity
}

// ReadTokens reads a token file. Each line contains the sha256 of a token in hex, the user, and the
// role reader, submitter or admin; # starts a comment. An error contains the line number but not
// the content of the line.
func ReadTokens(file string) (*Tokens, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}

	t := &Tokens{file: file, version: fileVersion{info.ModTime(), info.Size()}}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		fields := strings.Fields(text)
		if len(fields) == 0 {
			continue
		}
		token, err := parseToken(fields)
		if err != nil {
			return nil, fmt.Errorf("tokens: %s line %d: %w", file, n, err)
		}
		isDuplicate := func(other userToken) bool { return other.hash == token.hash }
		if slices.ContainsFunc(t.tokens, isDuplicate) {
			return nil, fmt.Errorf("tokens: %s line %d: duplicate token", file, n)
		}
		t.tokens = append(t.tokens, token)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("tokens: read %s: %w", file, err)
	}
	if len(t.tokens) == 0 {
		return nil, fmt.Errorf("tokens: %s contains no token; add at least one", file)
	}
	return t, nil
}

func parseToken(fields []string) (t userToken, err error) {
	if len(fields) != 3 {
		return t, fmt.Errorf("want sha256, user and role, have %d fields", len(fields))
	}
	hash, err := hex.DecodeString(fields[0])
	if err != nil || len(hash) != len(t.hash) {
		return t, errors.New(
			"the first field is not a sha256 in hex; do not store the token itself",
		)
	}
	copy(t.hash[:], hash)

	role := slices.Index(roleNames, fields[2])
	if role < int(Reader) {
		return t, errors.New("the role is not reader, submitter or admin")
	}
	if !schemas.ValidToken(fields[1]) {
		return t, errors.New("the user is not a name of 1 to 64 characters from a-z, 0-9, _ and -")
	}
	t.identity = identity{fields[1], Role(role)}
	return t, nil
}

// refresh reloads the file if it has changed. An invalid file changes nothing and is logged once.
func (t *Tokens) refresh(now time.Time, log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.checkedAt) < checkInterval {
		return
	}
	t.checkedAt = now

	version := fileVersion{}
	info, err := os.Stat(t.file)
	if err == nil {
		version = fileVersion{info.ModTime(), info.Size()}
	}
	if version == t.version {
		return
	}

	t.version = version
	var reloaded *Tokens
	if err == nil {
		reloaded, err = ReadTokens(t.file)
	}
	if err != nil {
		log.Warn("tokens not reloaded, keeping the previous ones", "error", err)
		return
	}
	t.tokens, t.version = reloaded.tokens, reloaded.version
	log.Info("tokens reloaded", "tokens", len(t.tokens))
}

// find returns the identity of a token. It compares all hashes in constant time.
func (t *Tokens) find(token string) (who identity, found bool) {
	hash := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.tokens {
		if subtle.ConstantTimeCompare(hash[:], t.tokens[i].hash[:]) == 1 {
			who, found = t.tokens[i].identity, true
		}
	}
	return who, found
}

// sessionCookie contains the token of the web page, because EventSource cannot send a header.
const sessionCookie = "courier_token"

func tokenOf(r *http.Request) string {
	scheme, token, found := strings.Cut(r.Header.Get("Authorization"), " ")
	if found && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	if c, err := r.Cookie(sessionCookie); err == nil {
		return c.Value
	}
	return ""
}

type identityKey struct{}

func withIdentity(r *http.Request, who identity) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), identityKey{}, who))
}

func identityOf(ctx context.Context) identity {
	who, _ := ctx.Value(identityKey{}).(identity)
	return who
}
