package bus

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"courier/schemas"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Options names the server and the user of a connection. Without any of the files, only the URL
// determines whether the connection uses TLS and credentials.
type Options struct {
	URL       string                     // such as "nats://127.0.0.1:4222"; comma-separated
	InProcess nats.InProcessConnProvider // a server in this process; takes precedence over URL
	Name      string                     // connection name that the server shows

	// Replicas is the minimum number of NATS servers that keep a copy of each stream and
	// bucket, 1 to 5. 0 means the number that schemas.Stream declares.
	Replicas int

	Identity

	// Person limits the user to jobs that the user owns. Submissions, cancellations and
	// events go to subjects with the user's name, and the advisor checks the ownership.
	Person bool
}

// Identity has the files and the name by which a client is known to the servers. The tags are those of
// the flags of courier. Secrets are in files, not on the command line.
type Identity struct {
	CAFile    string `name:"nats-ca" group:"nats" help:"File with the certificates (PEM) of the authorities of the NATS servers. Requires TLS." env:"COURIER_NATS_CA"`
	CertFile  string `name:"nats-cert" group:"nats" help:"File with the client certificate (PEM) for NATS." env:"COURIER_NATS_CERT"`
	KeyFile   string `name:"nats-key" group:"nats" help:"File with the key of --nats-cert." env:"COURIER_NATS_KEY"`
	SeedFile  string `name:"nats-nkey" group:"nats" help:"File with the nkey seed to authenticate with at NATS." env:"COURIER_NATS_NKEY"`
	CredsFile string `name:"nats-creds" group:"nats" help:"File with the credentials (JWT and nkey seed) to authenticate with at NATS." env:"COURIER_NATS_CREDS"`
	User      string `name:"nats-user" group:"nats" help:"User of the nkey seed or of the credentials (default: the name of the file of the seed up to the first dot)." env:"COURIER_NATS_USER"`
	Context   string `name:"nats-context" group:"nats" help:"Context of the nats CLI, by its name or the path of its file: its servers, files, user and JetStream domain are used instead of those of other flags." env:"COURIER_NATS_CONTEXT"`
	Domain    string `name:"nats-domain" group:"nats" help:"JetStream domain, for example of a leaf node." env:"COURIER_NATS_DOMAIN"`
}

// ErrAuthorization reports that the servers do not accept the user.
var ErrAuthorization = nats.ErrAuthorization

// ErrIdentity reports an address, or a file with a certificate, key or seed, that cannot be
// used. Retrying does not help.
var ErrIdentity = errors.New("not usable for a connection to nats")

// credentials checks the address and the files, and returns the client options for TLS and
// authentication. It sets User if that is empty.
func (o *Options) credentials() ([]nats.Option, error) {
	if err := checkURLs(o.URL); err != nil {
		return nil, err
	}
	var options []nats.Option

	if o.CAFile != "" {
		if _, err := Authorities(o.CAFile); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIdentity, err)
		}
		// The client reads the file at each connection: a new file needs no restart.
		options = append(options, nats.RootCAs(o.CAFile))
	}

	if (o.CertFile == "") != (o.KeyFile == "") {
		return nil, fmt.Errorf("%w: a client certificate (%q) needs its key (%q), and vice versa",
			ErrIdentity, o.CertFile, o.KeyFile)
	}
	if o.CertFile != "" {
		if _, err := tls.LoadX509KeyPair(o.CertFile, o.KeyFile); err != nil {
			return nil, fmt.Errorf("%w: certificate %s with key %s: %w",
				ErrIdentity, o.CertFile, o.KeyFile, err)
		}
		options = append(options, nats.ClientCert(o.CertFile, o.KeyFile))
	}

	switch {
	case o.SeedFile != "" && o.CredsFile != "":
		return nil, fmt.Errorf("%w: a seed (%q) and credentials (%q): want one of them",
			ErrIdentity, o.SeedFile, o.CredsFile)
	case o.CredsFile != "":
		read := nats.UserCredentials(o.CredsFile)
		if err := checkCredentials(read); err != nil {
			return nil, fmt.Errorf("%w: credentials: %w", ErrIdentity, err)
		}
		options = append(options, read)
	case o.SeedFile != "":
		sign, err := nats.NkeyOptionFromSeed(o.SeedFile)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrIdentity, seedError(o.SeedFile))
		}
		options = append(options, sign)
		o.User = cmp.Or(o.User, UserOf(o.SeedFile))
	}
	if !o.isNamed() {
		return options, nil
	}
	if !schemas.ValidToken(o.User) {
		return nil, fmt.Errorf("%w: user %q is not a name of 1 to 64 characters "+
			"from a-z, 0-9, _ and -: name the user", ErrIdentity, o.User)
	}
	return append(options, nats.CustomInboxPrefix(schemas.InboxPrefix(o.User))), nil
}

// checkCredentials checks that a file of credentials has a JWT and a seed, as a connection reads it.
func checkCredentials(read nats.Option) error {
	var o nats.Options
	if err := read(&o); err != nil {
		return err
	}
	if _, err := o.UserJWT(); err != nil {
		return err
	}
	_, err := o.SignatureCB([]byte("any"))
	return err
}

// isNamed reports whether the server knows the user by name, and limits the user's subjects.
func (o *Options) isNamed() bool {
	return o.SeedFile != "" || o.User != "" && (o.CredsFile != "" || o.Context != "")
}

// UserOf returns the user of a seed file by its name: "keys/ada.nk" belongs to ada.
func UserOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	return name
}

// checkURLs rejects invalid addresses; the client's own error would quote the password.
func checkURLs(urls string) error {
	for s := range strings.SplitSeq(urls, ",") {
		if s = strings.TrimSpace(s); !strings.Contains(s, "://") {
			s = "nats://" + s
		}
		if _, err := url.Parse(s); err != nil {
			return fmt.Errorf("%w: invalid address %s "+
				"(write special characters of user and password as %%xx)",
				ErrIdentity, WithoutSecrets(s))
		}
	}
	return nil
}

// Authorities reads the PEM certificates of certificate authorities. The error names the
// file.
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

// seedError describes why a file is not a seed file, without quoting its content.
func seedError(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("nkey seed: %w", err)
	}
	if strings.HasPrefix(strings.TrimSpace(string(data)), "U") {
		return fmt.Errorf("%s holds a public nkey: name the file of the seed, which begins with SU", file)
	}
	return fmt.Errorf("%s holds no seed of a user's nkey, which begins with SU", file)
}

// explain adds the cause in terms of the options to an error of a connection attempt.
func (o *Options) explain(err error) error {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	switch {
	case errors.As(err, &unknown) && o.CAFile == "":
		return fmt.Errorf("%w; name the file of the authority that signed it", err)
	case errors.As(err, &unknown):
		return fmt.Errorf("%w; the server's certificate was not signed by the authority in %s", err, o.CAFile)
	case errors.As(err, &host):
		return fmt.Errorf("%w; connect by a name in the server's certificate", err)
	case errors.Is(err, nats.ErrAuthorization) && o.SeedFile != "":
		return fmt.Errorf("%w: the server knows no user with the nkey in %s", err, o.SeedFile)
	case errors.Is(err, nats.ErrAuthorization) && o.CredsFile != "":
		return fmt.Errorf("%w: the server does not accept the credentials in %s; they may have expired",
			err, o.CredsFile)
	case errors.Is(err, nats.ErrAuthorization) && o.Context != "":
		return fmt.Errorf("%w: the server does not accept the user of context %s", err, o.Context)
	case errors.Is(err, nats.ErrAuthorization), errors.Is(err, nats.ErrNkeysNotSupported):
		return fmt.Errorf("%w: the server requires authentication", err)
	case o.CertFile == "" && o.CAFile != "" && isRefusedTLS(err):
		return fmt.Errorf("%w; if the server wants a certificate of its clients, name its file", err)
	}
	return err
}

// isRefusedTLS reports whether the server ended the TLS handshake. The server may close the connection
// before the client reads the reason, which crypto/tls returns as a net.OpError.
func isRefusedTLS(err error) bool {
	var alert *net.OpError
	return errors.Is(err, nats.ErrTLS) || errors.As(err, &alert) && alert.Op == "remote error"
}

// WithoutSecrets removes users, passwords and tokens from a list of addresses. Addresses may be
// invalid.
func WithoutSecrets(urls string) string {
	list := strings.Split(urls, ",")
	for i, s := range list {
		scheme, rest, found := strings.Cut(strings.TrimSpace(s), "://")
		if !found {
			scheme, rest = "", scheme
		} else {
			scheme += "://"
		}
		list[i] = scheme + rest[strings.LastIndex(rest, "@")+1:]
	}
	return strings.Join(list, ",")
}

// permissions reports violations of the permissions of a user. The server reports a violation
// outside of the request, and sends no answer to it.
type permissions struct {
	log     *slog.Logger
	user    string   // "" if it has no name
	pending sync.Map // *pendingSend to context.CancelCauseFunc
}

// pendingSend is a subject, or the beginning of one and ">".
type pendingSend struct{ subject string }

func (p *permissions) violated(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	// nats: permissions violation: Permissions Violation for Publish to "subject"
	text := err.Error()
	p.log.Warn("nats permission violation", "user", p.user, "error", text)
	_, sent, _ := strings.Cut(text, `Publish to "`)
	sent, _, _ = strings.Cut(sent, `"`)
	isSent := func(subject string) bool {
		prefix, isPrefix := strings.CutSuffix(subject, ">")
		return sent == subject || isPrefix && strings.HasPrefix(sent, prefix)
	}
	p.pending.Range(func(key, cancel any) bool {
		s := key.(*pendingSend)
		// The server names a request to a domain by its subject without the domain.
		_, request, isAPI := strings.Cut(s.subject, ".API.")
		if isSent(s.subject) || isAPI && isSent(jetstream.DefaultAPIPrefix+request) {
			cancel.(context.CancelCauseFunc)(forbidden(p.user, s.subject))
		}
		return true
	})
}

func forbidden(user, subject string) error {
	who := "this user"
	if user != "" {
		who = fmt.Sprintf("user %q", user)
	}
	return schemas.Errorf(schemas.CodeForbidden, "", "nats does not permit %s to publish to %s", who, subject)
}

// watch returns a context that is cancelled when the server forbids a message on subject. The
// caller passes the error of the call to done, which ends the watch and returns that error or,
// instead of it, the violation.
func (p *permissions) watch(
	ctx context.Context, subject string,
) (watched context.Context, done func(error) error) {
	ctx, cancel := context.WithCancelCause(ctx)
	s := &pendingSend{subject}
	p.pending.Store(s, cancel)
	return ctx, func(err error) error {
		p.pending.Delete(s)
		defer cancel(nil)
		if err != nil && errors.Is(context.Cause(ctx), schemas.ErrForbidden) {
			return context.Cause(ctx)
		}
		return err
	}
}
