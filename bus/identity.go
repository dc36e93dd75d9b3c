package bus

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"courier/schemas"

	"github.com/nats-io/nats.go"
)

// ErrIdentity says that an address, or a file by which a connection proves who it
// is or knows the server, cannot be used: trying again cannot help.
var ErrIdentity = errors.New("not usable for a connection to nats")

// identity is what the options say about who connects, checked.
func (o *Options) identity() ([]nats.Option, error) {
	if err := checkURLs(o.URL); err != nil {
		return nil, err
	}
	var options []nats.Option
	if o.CAFile != "" {
		if _, err := Authorities(o.CAFile); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
		}
		options = append(options, nats.RootCAs(o.CAFile)) // read at each connection: a new file needs no restart
	}
	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, fmt.Errorf("%w: a client's certificate (%q) and its key (%q) are given together or not at all", ErrIdentity, o.CertFile, o.KeyFile)
	}
	if o.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
			return nil, fmt.Errorf("%w: certificate %s with key %s: %w", ErrIdentity, o.CertFile, o.KeyFile, err)
		}
		options = append(options, nats.ClientCert(o.CertFile, o.KeyFile))
	}
	if o.SeedFile == "" {
		return options, nil
	}
	sign, err := nats.NkeyOptionFromSeed(o.SeedFile)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrIdentity, seedError(o.SeedFile))
	}
	if o.User == "" {
		o.User = UserOf(o.SeedFile)
	}
	if !schemas.ValidToken(o.User) {
		return nil, fmt.Errorf("%w: user %q is not a name of 1 to 64 characters from a-z, 0-9, _ and -: name the one to whom the seed belongs", ErrIdentity, o.User)
	}
	return append(options, sign, nats.CustomInboxPrefix(schemas.InboxPrefix(o.User))), nil
}

// UserOf is the user to whom a file with a seed belongs by its name:
// "keys/ada.nk" is ada's.
func UserOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return name
}

// checkURLs refuses an address that the client could not read: its own error
// would quote all of it, and with it a password.
func checkURLs(urls string) error {
	for s := range strings.SplitSeq(urls, ",") {
		if s = strings.TrimSpace(s); !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		if _, err := url.Parse(s); err != nil {
			return fmt.Errorf("%w: address %s cannot be read (special characters of user and password are written as %%xx)", ErrIdentity, WithoutSecrets(s))
		}
	}
	return nil
}

// Authorities reads the certificates (PEM) of authorities that sign those of servers.
// The error names the file.
func Authorities(file string) (*x509.CertPool, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("certificates of authorities: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		return nil, fmt.Errorf("%s holds no certificate in PEM", file)
	}
	return pool, nil
}

// seedError says what is wrong with a file that should hold a seed, and never
// what it holds.
func seedError(file string) error {
	if data, unread := os.ReadFile(file); unread != nil {
		return fmt.Errorf("nkey seed: %w", unread)
	} else if strings.HasPrefix(strings.TrimSpace(string(data)), "U") {
		return fmt.Errorf("%s holds a public nkey: the server wants the seed, which begins with SU", file)
	}
	return fmt.Errorf("%s holds no seed of a user's nkey, which begins with SU", file)
}

// reason adds to an error of connecting which file it is about.
func (o *Options) reason(err error) error {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(err, &unknown) && o.CAFile == "":
		return fmt.Errorf("%w; name the file of the authority that signed it", err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w; the server's certificate was not signed by the authority in %s", err, o.CAFile)
	case errors.As(err, &host):
		return fmt.Errorf("%w; connect by a name that the server's certificate has", err)
	case errors.Is(err, nats.ErrAuthorization) && o.SeedFile != "":
		return fmt.Errorf("%w: the server knows no user with the nkey in %s", err, o.SeedFile)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrNkeysNotSupported):
		return fmt.Errorf("%w: the server wants to know who connects", err)
	}
	return err
}

// refused tells those who wait for an answer that the server does not permit
// what they asked: it says so beside the conversation, and answers nothing.
func (b *Bus) refused(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	text := err.Error() // nats: permissions violation: Permissions Violation for Publish to "subject"
	b.log.Warn("nats does not permit it", "user", b.user, "error", text)
	b.asking.Range(func(key, cancel any) bool {
		if a := key.(*asked); strings.Contains(text, `Publish to "`+a.subject+`"`) {
			cancel.(context.CancelCauseFunc)(forbidden(b.user, a.subject))
		}
		return true
	})
}

// asked is a message whose answer is waited for.
type asked struct{ subject string }

func forbidden(user, subject string) error {
	return &schemas.Error{Code: schemas.CodeForbidden, Message: fmt.Sprintf("nats does not permit user %q to publish to %s", user, subject)}
}

// permitted returns a context that ends when the server refuses a message on the
// subject, and a function that ends the watch and returns err, or that refusal.
func (b *Bus) permitted(ctx context.Context, subject string) (context.Context, func(error) error) {
	if b.user == "" {
		return ctx, func(err error) error { return err }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	a := &asked{subject}
	b.asking.Store(a, cancel)
	return ctx, func(err error) error {
		b.asking.Delete(a)
		defer cancel(nil)
		if err != nil && errors.Is(context.Cause(ctx), schemas.ErrForbidden) {
			return context.Cause(ctx)
		}
		return err
	}
}
