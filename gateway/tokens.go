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

// Role is what whoever asks may do; each may do all that the one before may.
type Role int

// Roles, from the least.
const (
	Anybody   Role = iota // the page's files, health, the description of the API
	Reader                // all that changes nothing
	Submitter             // submits jobs, and cancels those of his own
	Admin                 // cancels any job, changes the regressors in use
)

var roleNames = []string{"anybody", "reader", "submitter", "admin"}

// String returns the role's name in the file of tokens.
func (r Role) String() string { return roleNames[r] }

// asker is who asks.
type asker struct {
	user string // "": the gateway has no tokens, or this one has none
	role Role
}

// Tokens knows who asks by the token that he shows. It holds hashes only, and
// reads its file again when that changes.
type Tokens struct {
	file string

	mu     sync.Mutex
	all    []tokenOf
	looked time.Time // at the file
	stamp  stamp     // of what was read; the zero one of a file that could not be
}

// stamp tells a file that was changed from one that was not.
type stamp struct {
	at   time.Time
	size int64
}

// lookEvery is how long a token may still work that was taken out of the file.
const lookEvery = time.Second

type tokenOf struct {
	hash [sha256.Size]byte
	asker
}

// ReadTokens reads a file of tokens: a line for each with the sha256 of the token
// in hex, the user and the role reader, submitter or admin; # begins a comment.
// An error names the line, never what it holds.
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
	t := &Tokens{file: file, stamp: stamp{info.ModTime(), info.Size()}}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		if len(words) == 0 {
			continue
		}
		token, err := readToken(words)
		if err != nil {
			return nil, fmt.Errorf("tokens: %s line %d: %w", file, n, err)
		}
		if slices.ContainsFunc(t.all, func(other tokenOf) bool { return other.hash == token.hash }) {
			return nil, fmt.Errorf("tokens: %s line %d: this token stands there twice", file, n)
		}
		t.all = append(t.all, token)
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("tokens: read %s: %w", file, err)
	}
	if len(t.all) == 0 {
		return nil, fmt.Errorf("tokens: %s has none, so that nobody could ask", file)
	}
	return t, nil
}

func readToken(words []string) (t tokenOf, err error) {
	if len(words) != 3 {
		return t, fmt.Errorf("want sha256, user and role, there are %d words", len(words))
	}
	hash, err := hex.DecodeString(words[0])
	if err != nil || len(hash) != len(t.hash) {
		return t, errors.New("the first word is no sha256 in hex; the token itself must not stand there")
	}
	copy(t.hash[:], hash)
	role := slices.Index(roleNames, words[2])
	if role < int(Reader) {
		return t, errors.New("the role is none of reader, submitter and admin")
	}
	if !schemas.ValidToken(words[1]) {
		return t, errors.New("the user is not a name of 1 to 64 of a-z, 0-9, _ and -")
	}
	t.asker = asker{words[1], Role(role)}
	return t, nil
}

// refresh reads the file again if it has changed. A file that is wrong changes
// nothing, and the log says so once.
func (t *Tokens) refresh(now time.Time, log *slog.Logger) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now.Sub(t.looked) < lookEvery {
		return
	}
	t.looked = now
	is := stamp{}
	info, err := os.Stat(t.file)
	if err == nil {
		is = stamp{info.ModTime(), info.Size()}
	}
	if is == t.stamp {
		return
	}
	t.stamp = is
	var fresh *Tokens
	if err == nil {
		fresh, err = ReadTokens(t.file)
	}
	if err != nil {
		log.Warn("tokens stay as they were", "error", err)
		return
	}
	t.all, t.stamp = fresh.all, fresh.stamp
	log.Info("tokens are read again", "tokens", len(t.all))
}

// find returns to whom a token belongs. Each is compared in the same time,
// whatever was shown.
func (t *Tokens) find(token string) (who asker, found bool) {
	hash := sha256.Sum256([]byte(token))
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.all {
		if subtle.ConstantTimeCompare(hash[:], t.all[i].hash[:]) == 1 {
			who, found = t.all[i].asker, true
		}
	}
	return who, found
}

// sessionCookie carries the token of the page, which cannot send a header with
// every request that it makes (EventSource).
const sessionCookie = "courier_token"

// shown is the token of a request, "" if it has none.
func shown(r *http.Request) string {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return strings.TrimSpace(token)
	}
	if c, err := r.Cookie(sessionCookie); err == nil {
		return c.Value
	}
	return ""
}

// identify says who asks. Without tokens everybody is the one who may do all.
func (g *Gateway) identify(r *http.Request) (who asker, wrong bool) {
	if g.options.Tokens == nil {
		return asker{"", Admin}, false
	}
	token := shown(r)
	if token == "" {
		return asker{}, false
	}
	g.options.Tokens.refresh(time.Now(), g.log)
	who, found := g.options.Tokens.find(token)
	return who, !found
}

// permit refuses who may not use a route.
func (g *Gateway) permit(w http.ResponseWriter, rt route, who asker, wrong bool) error {
	if rt.role <= who.role {
		return nil
	}
	if who.user != "" {
		return &schemas.Error{Code: schemas.CodeForbidden, Message: fmt.Sprintf("%s may do what a %s may; this is for the role %s", who.user, who.role, rt.role)}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="courier"`)
	message := "show a token: Authorization: Bearer TOKEN"
	if wrong {
		message = "this token is not known here"
	}
	return &statusError{http.StatusUnauthorized, &schemas.Error{Code: schemas.CodeForbidden, Message: message}}
}

type askerKey struct{}

// withAsker remembers who asks.
func withAsker(r *http.Request, who asker) *http.Request {
	return r.WithContext(context.WithValue(r.Context(), askerKey{}, who))
}

// askerOf is who asks.
func askerOf(ctx context.Context) asker {
	who, _ := ctx.Value(askerKey{}).(asker)
	return who
}

// Session answers /api/v1/session: who asks, and what he may do.
type Session struct {
	User   string `json:"user,omitempty"` // absent: nobody is known by name
	Role   string `json:"role"`           // anybody, reader, submitter or admin
	Tokens bool   `json:"tokens"`         // this gateway wants tokens
}

// session says who asks.
func (g *Gateway) session(w http.ResponseWriter, r *http.Request) error {
	who := askerOf(r.Context())
	return writeJSON(w, http.StatusOK, Session{User: who.user, Role: who.role.String(), Tokens: g.options.Tokens != nil})
}

// openSession gives a browser its token as a cookie that no script reads and
// that no other site can have sent.
func (g *Gateway) openSession(w http.ResponseWriter, r *http.Request) error {
	if g.options.Tokens != nil {
		http.SetCookie(w, g.cookie(r, shown(r), 0))
	}
	return g.session(w, r)
}

// endSession takes the cookie away.
func (g *Gateway) endSession(w http.ResponseWriter, r *http.Request) error {
	http.SetCookie(w, g.cookie(r, "", -1))
	return writeJSON(w, http.StatusOK, Session{Role: Anybody.String(), Tokens: g.options.Tokens != nil})
}

func (g *Gateway) cookie(r *http.Request, value string, age int) *http.Cookie {
	return &http.Cookie{Name: sessionCookie, Value: value, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil}
}
