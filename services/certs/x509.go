package certs

import (
	"cmp"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"
)

// routes is the certificate with which NATS servers authenticate each other. A route has more
// permissions than any user, so this certificate is its own authority: no other one is accepted.
const routes = "routes"

type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

// certificates creates absent certificates, and the authority if one of them needs it: the key of
// the authority may be kept elsewhere.
func (d *directory) certificates(hosts []string) error {
	var a *authority
	local := []string{"localhost", "127.0.0.1", "::1"}
	nats := append([]string{"nats", "nats-1", "nats-2", "nats-3", "nats1", "nats2", "nats3"}, local...)
	server := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	client := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	for _, c := range []struct {
		name   string
		hosts  []string
		usages []x509.ExtKeyUsage
	}{
		{"nats", nats, server},
		{"clickhouse", append([]string{"clickhouse"}, local...), server},
		{"gateway", append([]string{"gateway"}, local...), server},
		{"client", nil, client},
		{routes, nats, slices.Concat(server, client)},
	} {
		if d.has(c.name + ".crt") {
			continue
		}
		if a == nil && c.name != routes {
			var err error
			if a, err = d.authority(); err != nil {
				return err
			}
		}
		if c.hosts != nil {
			c.hosts = slices.Concat(c.hosts, hosts)
		}
		signer := a
		if c.name == routes {
			signer = nil
		}
		if err := d.sign(signer, c.name, leaf(c.name, c.hosts, c.usages)); err != nil {
			return fmt.Errorf("create %s.crt: %w", c.name, err)
		}
	}
	return nil
}

// authority reads the authority, or creates it.
func (d *directory) authority() (*authority, error) {
	if !d.has("ca.crt") {
		template := &x509.Certificate{
			Subject: pkix.Name{CommonName: "Courier"}, IsCA: true, BasicConstraintsValid: true,
			MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
		}
		if err := d.sign(nil, "ca", template); err != nil {
			return nil, fmt.Errorf("create ca.crt: %w", err)
		}
	}
	pair, err := tls.LoadX509KeyPair(d.file("ca.crt"), d.file("ca.key"))
	if err != nil {
		return nil, fmt.Errorf("load the authority ca.crt with its key ca.key: %w", err)
	}
	key, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		return nil, errors.New("the key of the authority cannot sign")
	}
	return &authority{pair.Leaf, key}, nil
}

// leaf returns the template for a server with names and addresses, or for a client.
func leaf(name string, hosts []string, usages []x509.ExtKeyUsage) *x509.Certificate {
	c := &x509.Certificate{
		Subject: pkix.Name{CommonName: name}, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: usages,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			c.IPAddresses = append(c.IPAddresses, ip)
		} else {
			c.DNSNames = append(c.DNSNames, h)
		}
	}
	return c
}

// sign creates a key and a certificate, signed by an authority, or by itself if a is nil.
func (d *directory) sign(a *authority, name string, template *x509.Certificate) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), d.until // Clocks differ.
	a = cmp.Or(a, &authority{template, key})
	if template.NotAfter.After(a.certificate.NotAfter) {
		template.NotAfter = a.certificate.NotAfter
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key.Public(), a.key)
	if err != nil {
		return err
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	if err := d.add(name+".key", pem.EncodeToMemory(&pem.Block{
		Type:  "PRIVATE KEY",
		Bytes: secret,
	})); err != nil {
		return err
	}
	return d.add(name+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
}
