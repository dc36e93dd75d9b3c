package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"

	"courier/schemas"
)

// AnyHost as an allowed host turns the check of host names off.
const AnyHost = "*"

// hostNames are the names by which the gateway may be asked without tokens.
//
// A page of another site can point its own name at the gateway's address (DNS
// rebinding); the browser then takes both for one site, but still sends that name in
// Host. IP addresses are safe, because no DNS answer is involved.
type hostNames struct {
	any   bool
	names map[string]bool // lower case, without port and final dot
}

// newHostNames returns localhost and the given names. An error names one that is none.
func newHostNames(allowed []string) (hostNames, error) {
	h := hostNames{names: map[string]bool{"localhost": true}}
	for _, name := range allowed {
		if name == AnyHost {
			h.any = true
			continue
		}
		if name == "" || strings.ContainsAny(name, ":/*@ ") {
			return h, fmt.Errorf("allowed host %q: want a name without scheme, port and wildcard, or %s alone", name, AnyHost)
		}
		h.names[plainHost(name)] = true
	}
	return h, nil
}

// plainHost returns the host of a Host header without its port, in lower case.
func plainHost(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.ToLower(strings.TrimSuffix(host, "."))
}

// allows reports whether a request with this Host header may be answered. Without one
// (HTTP/1.0) it does not come from a browser.
func (h hostNames) allows(host string) bool {
	name := plainHost(host)
	if h.any || name == "" || h.names[name] {
		return true
	}
	_, err := netip.ParseAddr(strings.Trim(name, "[]"))
	return err == nil
}

// checkHost refuses a request under a name that is not the gateway's. Tokens make the
// check unnecessary, since a browser sends the cookie to the gateway's own name only;
// so does TLS, since the certificate is of that name.
func (g *Gateway) checkHost(r *http.Request) error {
	if g.options.Tokens != nil || r.TLS != nil || g.hosts.allows(r.Host) {
		return nil
	}
	const most = 255 // bytes, of a DNS name
	name := plainHost(r.Host)
	message := fmt.Sprintf("%.*q is not a name of this gateway; to allow it, start the gateway with "+
		"--allowed-host (COURIER_ALLOWED_HOST), or with --tokens", most, name)
	return &statusError{http.StatusMisdirectedRequest, &schemas.Error{Code: schemas.CodeForbidden, Message: message}}
}
