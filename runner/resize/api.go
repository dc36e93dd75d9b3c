package resize

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// maxReply bounds the bytes of a reply that are read.
const maxReply = 4 << 20

// newClient returns a client that trusts the authority of a service account.
func newClient(credentials string) (*http.Client, error) {
	ca, err := os.ReadFile(filepath.Join(credentials, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s/ca.crt has no certificate", credentials)
	}
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}, nil
}

// apiError is a request that the API server refused.
type apiError struct {
	code    int // of HTTP
	method  string
	message string
}

func (e *apiError) Error() string {
	return fmt.Sprintf("the API server refused %s: %s", e.method, e.message)
}

// call sends a request for the pod or one of its subresources to the Kubernetes API. A body is a patch.
func (p *Pod) call(ctx context.Context, method, subresource string, body any) (*podObject, error) {
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	address := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s%s",
		p.server, url.PathEscape(p.Namespace), url.PathEscape(p.Name), subresource)
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if body != nil {
		request, err = http.NewRequestWithContext(ctx, method, address, bytes.NewReader(text))
	}
	if err != nil {
		return nil, err
	}
	// The token is read for each request, because Kubernetes replaces it.
	token, err := os.ReadFile(filepath.Join(p.credentials, "token"))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}

	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	reply, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		var status struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(reply, &status) != nil || status.Message == "" {
			status.Message = response.Status
		}
		return nil, &apiError{response.StatusCode, method, status.Message}
	}
	found := &podObject{}
	return found, json.Unmarshal(reply, found)
}
