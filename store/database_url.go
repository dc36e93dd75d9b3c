package store

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"time"

	"courier/bus"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// DefaultDatabase is the database for a URL that names none.
const DefaultDatabase = "courier"

var databaseName = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// parseURL parses the URL and adds the options of every connection.
func parseURL(url string) (*clickhouse.Options, error) {
	scheme, _, _ := strings.Cut(url, "://")
	switch scheme {
	case "clickhouse", "tcp", "http", "https":
	default:
		return nil, errors.New("it does not begin with clickhouse://, tcp://, http:// or https://")
	}
	if scheme == "https" && !strings.Contains(url, "secure=") {
		separator := "?"
		if strings.Contains(url, "?") {
			separator = "&"
		}
		url += separator + "secure=true"
	}
	options, err := clickhouse.ParseDSN(url)
	if err != nil { // not quoted: the error may contain the password
		return nil, errors.New("host, port or settings cannot be read " +
			"(write special characters of user and password as %xx)")
	}

	if options.Auth.Database == "" {
		options.Auth.Database = DefaultDatabase
	}
	if !databaseName.MatchString(options.Auth.Database) {
		return nil, fmt.Errorf("the database name %.80q is not 1 to 64 letters, digits and _",
			options.Auth.Database)
	}
	if options.DialTimeout == 0 {
		options.DialTimeout = 5 * time.Second
	}
	if options.MaxOpenConns == 0 {
		options.MaxOpenConns = 17 // 4 streams, 3 histories with 3 connections each, and queries
	}
	if options.Compression == nil && options.Protocol == clickhouse.Native {
		options.Compression = &clickhouse.Compression{Method: clickhouse.CompressionLZ4}
	}
	product := struct{ Name, Version string }{"courier", ""}
	options.ClientInfo.Products = append(options.ClientInfo.Products, product)
	return options, nil
}

// addSecrets adds the contents of the option's files. No error quotes them.
func (o *Options) addSecrets(options *clickhouse.Options) error {
	if o.PasswordFile != "" {
		if options.Auth.Password != "" {
			return errors.New("the password is given twice: remove it from the URL, " +
				"or the password file")
		}
		data, err := os.ReadFile(o.PasswordFile)
		if err != nil {
			return fmt.Errorf("password: %w", err)
		}
		options.Auth.Password = strings.TrimRight(string(data), "\r\n")
		if options.Auth.Password == "" {
			return fmt.Errorf("password: %s is empty", o.PasswordFile)
		}
	}

	if o.CAFile == "" {
		return nil
	}
	authorities, err := bus.Authorities(o.CAFile)
	if err != nil {
		return err
	}
	if strings.HasPrefix(o.URL, "http://") {
		return errors.New("certificate authorities need TLS: replace http:// by https://")
	}
	if options.TLS == nil {
		options.TLS = &tls.Config{}
	}
	options.TLS.RootCAs = authorities
	return nil
}

// withoutSecrets returns a URL without user, password and settings, including URLs that cannot
// be parsed.
func withoutSecrets(url string) string {
	scheme, rest, found := strings.Cut(url, "://")
	if !found {
		return "(no scheme)"
	}
	rest = rest[strings.LastIndex(rest, "@")+1:]
	rest, _, _ = strings.Cut(rest, "?")
	return scheme + "://" + rest
}
