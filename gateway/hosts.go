package gateway

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// AnyHost as an allowed host disables the check of host names.
const AnyHost = "*"

// hostNames holds the host names under which the gateway answers without tokens.
//
// A page of another site can resolve its own name to the gateway's address (DNS rebinding). The
// browser then treats both as the same site, but still sends that name in the Host header. IP
// addresses are safe, because no name is resolved.
type hostNames struct {
	any   bool
	names map[string]bool // lower case, without port and trailing dot
}

// newHostNames returns localhost and the given names, or an error for an invalid name.
func newHostNames(allowed []string) (hostNames, error) {
	h := hostNames{names: map[string]bool{"localhost": true}}
	for _, name := range allowed {
		if name == AnyHost {
			h.any = true
			continue
		}
		if name == "" || strings.ContainsAny(name, ":/*@ ") {
			return h, fmt.Errorf("invalid allowed host %q: want a name without scheme, port or "+
				"wildcard, or %s alone", name, AnyHost)
		}
		h.names[plainHost(name)] = true
	}
	return h, nil
}

// plainHost returns the value of a Host header without port, in lower case.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// allows reports whether a Host header is allowed. Requests without one (HTTP/1.0) do not come from
// a browser.
func (h hostNames) allows(host string) bool {
	name := plainHost(host)
	if h.any || name == "" || h.names[name] {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil
}
