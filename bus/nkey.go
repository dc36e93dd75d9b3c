package bus

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"

	"github.com/nats-io/nats.go"
)

// Prefixes of nkeys: they become the first letters of what is written, "SU" and
// "U" (github.com/nats-io/nkeys, strkey.go).
const (
	prefixSeed = 18 << 3
	prefixUser = 20 << 3
)

// NewUser makes the nkey of a user: the seed, which proves who connects and which
// only he may have, and the public key, by which the server knows him.
func NewUser() (seed, public string, err error) {
	key, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	head := []byte{prefixSeed | prefixUser>>5, prefixUser & 31 << 3}
	return encodeNkey(append(head, private.Seed()...)), encodeNkey(append([]byte{prefixUser}, key...)), nil
}

// encodeNkey writes bytes as an nkey: base32, with a checksum at their end.
func encodeNkey(data []byte) string {
	data = binary.LittleEndian.AppendUint16(data, checksum(data))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(data)
}

// checksum is CRC-16 with the polynomial 0x1021 and nothing before it (XMODEM).
func checksum(data []byte) (crc uint16) {
	for _, b := range data {
		crc ^= uint16(b) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			if crc <<= 1; carry {
				crc ^= 0x1021
			}
		}
	}
	return crc
}

// PublicNkey returns the public key of the seed in a file.
func PublicNkey(file string) (string, error) {
	option, err := nats.NkeyOptionFromSeed(file)
	if err != nil {
		return "", seedError(file)
	}
	var o nats.Options
	if err := option(&o); err != nil {
		return "", err
	}
	return o.Nkey, nil
}
