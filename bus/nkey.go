package bus

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base32"
	"encoding/binary"

	"github.com/nats-io/nats.go"
)

// Prefixes of nkeys. They become the first letters of the encoded key, "SU" and "U"
// (github.com/nats-io/nkeys, strkey.go).
const (
	prefixSeed = 18 << 3
	prefixUser = 20 << 3
)

// NewUser generates the nkey of a user. The seed is the user's secret; the public key goes
// into the configuration of the server.
func NewUser() (seed, public string, err error) {
	key, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", "", err
	}
	head := []byte{prefixSeed | prefixUser>>5, prefixUser & 31 << 3}
	seed = encodeNkey(append(head, private.Seed()...))
	public = encodeNkey(append([]byte{prefixUser}, key...))
	return seed, public, nil
}

// encodeNkey encodes bytes as an nkey: base32 of the bytes and their checksum.
func encodeNkey(data []byte) string {
	data = binary.LittleEndian.AppendUint16(data, checksum(data))
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(data)
}

// checksum is CRC-16/XMODEM: polynomial 0x1021, initial value 0.
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
