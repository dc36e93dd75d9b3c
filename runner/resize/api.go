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

// apiClient calls the Kubernetes API with the credentials of a service account.
type apiClient struct {
	server      string // URL of the API server
	credentials string // directory with the token
	client      *http.Client
}

func newAPIClient(server, credentials string) (*apiClient, error) {
	ca, err := os.ReadFile(filepath.Join(credentials, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the pod has no service account: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s/ca.crt has no certificate", credentials)
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
	return &apiClient{server, credentials, &http.Client{Transport: transport}}, nil
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

// call sends a request for a pod or one of its subresources, and decodes the reply.
func (a *apiClient) call(
	ctx context.Context, method, namespace, pod, subresource string, body, reply any,
) error {
	request, err := a.newRequest(ctx, method, namespace, pod, subresource, body)
	if err != nil {
		return err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(response.Body, maxReply))
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		var status struct {
			Message string `json:"message"`
		}
		if json.Unmarshal(text, &status) != nil || status.Message == "" {
			status.Message = response.Status
		}
		return &apiError{response.StatusCode, method, status.Message}
	}
	return json.Unmarshal(text, reply)
}

func (a *apiClient) newRequest(
	ctx context.Context, method, namespace, pod, subresource string, body any,
) (*http.Request, error) {
	address := fmt.Sprintf("%s/api/v1/namespaces/%s/pods/%s%s",
		a.server, url.PathEscape(namespace), url.PathEscape(pod), subresource)
	var content io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, err
	}
	// The token is read for each request, because Kubernetes replaces it.
	token, err := os.ReadFile(filepath.Join(a.credentials, "token"))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", "application/strategic-merge-patch+json")
	}
	return request, nil
}
