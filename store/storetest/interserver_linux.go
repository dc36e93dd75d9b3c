//go:build linux && amd64 && !noengine

package storetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"

	"courier/store/engine"
	"courier/store/engine/host"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// replicaLibrary is the SHA-256 of the only library that interserver can change: libchdb
// 26.7.3-stable.1 for Linux on x86-64.
const replicaLibrary = "36ad4e999882821ef13cf2d0f52c93f48e6ee1b4498b35a201c23ce4b8d15bf5"

// CanReplicate returns nil if the engines of tests can have replicated tables.
var CanReplicate = sync.OnceValue(func() error {
	found, err := engine.FindLibrary(os.Getenv(EngineVariable))
	if err != nil {
		return err
	}
	library, err := os.Open(found)
	if err != nil {
		return err
	}
	defer library.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, library); err != nil {
		return fmt.Errorf("read the engine's library: %w", err)
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != replicaLibrary {
		return fmt.Errorf("the engine's library has the SHA-256 %s, need %s", got, replicaLibrary)
	}
	return nil
})

// runReplica runs the engine's host for a server that replicates tables. The first argument is the
// address at which the other replicas fetch its parts; the others are those of the host.
//
// The engine of the library serves queries only: it knows no address for other servers, and answers
// none of their requests. Until it does, this process changes two places of its own copy of the
// code. Each is compared with the expected bytes first.
func runReplica(arguments []string) int {
	if err := allowReplicas(arguments); err != nil {
		fmt.Fprintln(os.Stderr, "host: replicas:", err)
		return 2
	}
	// It would hide the addresses of the configuration.
	isAddress := func(s string) bool { return strings.HasPrefix(s, "--listen_host=") }
	return host.HostMain(slices.DeleteFunc(arguments[1:], isAddress))
}

func allowReplicas(arguments []string) error {
	name, number, err := net.SplitHostPort(arguments[0])
	if err != nil {
		return err
	}
	port, err := strconv.ParseUint(number, 10, 16)
	if err != nil {
		return err
	}
	at := slices.Index(arguments, "-library") + 1
	if at == 0 || at == len(arguments) {
		return errors.New("the host has no -library")
	}
	path := arguments[at]
	if _, err := purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		return err
	}
	base, err := loadAddress(path)
	if err != nil {
		return err
	}
	if err := setInterserverAddress(base, name, uint16(port)); err != nil {
		return err
	}
	return answerOtherServers(base)
}

// loadAddress returns the address of the first mapping of a library.
func loadAddress(path string) (uintptr, error) {
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(strings.TrimSpace(line), path) {
			first, _, _ := strings.Cut(line, "-")
			address, err := strconv.ParseUint(first, 16, 64)
			return uintptr(address), err
		}
	}
	return 0, fmt.Errorf("%s is not mapped", path)
}

// Offsets in the library, and of fields in its objects.
const (
	addressFunction  = 0x1417c9c0 // Context::getInterserverIOAddress
	addressPrologue  = "4156534883ec484c8b36490fbe8e67010000"
	hostField        = 0x150
	portField        = 0x168
	schemeField      = 0x170
	credentialsField = 0x1b0

	factorySwitch  = 0x18395d32 // in createHandlerFactory: the jump for HTTP
	factoryHTTP    = 0x18395ffa
	factoryServers = 0x18395dbc
	factoryPadding = 0x18395c90 // unused bytes in front of the function
	factoryCount   = 0x18395cb8
)

// setInterserverAddress lets getInterserverIOAddress set the address, once.
func setInterserverAddress(base uintptr, host string, port uint16) error {
	target := base + addressFunction
	original := slices.Clone(memory(target, len(addressPrologue)/2))
	page, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC,
		unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return err
	}
	start := uint64(uintptr(unsafe.Pointer(&page[0])))

	// Credentials for other servers: no user, no password, and that pair as the only valid one.
	const credentials, valid = 2048, 2304
	pair := le64(start + valid + 48)
	copy(page[credentials+48:], slices.Concat(le64(start+valid), pair, pair))

	code := unhex("488b06" + "6683b868010000" + "00" + "0f85") // if [rsi].port != 0: jump to the end
	hole := len(code)
	code = append(code, 0, 0, 0, 0)
	store := func(field uint32, value []byte) {
		code = slices.Concat(code, unhex("48b9"), value, unhex("488988"), le32(field))
	}
	hostText, scheme := shortString(host), shortString("http")
	for i := uint32(0); i < 24; i += 8 {
		store(hostField+i, hostText[i:i+8])
		store(schemeField+i, scheme[i:i+8])
	}
	store(credentialsField, le64(start+credentials))
	code = slices.Concat(code, unhex("66c780"), le32(portField), []byte{byte(port), byte(port >> 8)})
	copy(code[hole:], le32(uint32(len(code)-hole-4)))
	back := le64(uint64(target) + uint64(len(original)))
	code = slices.Concat(code, original, unhex("ff2500000000"), back)
	copy(page, code)
	return replaceCode(target, addressPrologue, slices.Concat(unhex("48b8"), le64(start), unhex("ffe0")))
}

// answerOtherServers makes the second listener for HTTP one for requests of other servers.
func answerOtherServers(base uintptr) error {
	relative := func(to, after uint32) []byte { return le32(to - after) }
	pad := uint32(factoryPadding)
	code := slices.Concat(
		unhex("ff05"), relative(factoryCount, pad+6), // count the listeners
		unhex("833d"), relative(factoryCount, pad+13), []byte{2},
		unhex("0f84"), relative(factoryServers, pad+19),
		unhex("e9"), relative(factoryHTTP, pad+24),
		bytes.Repeat([]byte{0xcc}, 16), make([]byte, 4),
	)
	if err := replaceCode(base+factoryPadding, strings.Repeat("cc", 44), code); err != nil {
		return err
	}
	jump := append(unhex("0f84"), relative(factoryPadding, factorySwitch+6)...)
	return replaceCode(base+factorySwitch, "0f84c2020000", jump)
}

func replaceCode(address uintptr, expected string, code []byte) error {
	want := unhex(expected)
	if got := memory(address, len(want)); !bytes.Equal(got, want) {
		return fmt.Errorf("the library has other code: %x, want %x", got, want)
	}
	size := uintptr(unix.Getpagesize())
	page := address &^ (size - 1)
	end := (address + uintptr(len(code)) + size - 1) &^ (size - 1)
	err := unix.Mprotect(memory(page, int(end-page)), unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC)
	if err != nil {
		return err
	}
	copy(memory(address, len(code)), code)
	return nil
}

// memory returns n bytes at an address outside of Go's heap. Where it is inlined, Go 1.26.8 fails to
// compile a copy of a constant number of bytes.
//
//go:noinline
func memory(address uintptr, n int) []byte {
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&address))), n)
}

// shortString is a libc++ string of at most 22 bytes.
func shortString(s string) [24]byte {
	var b [24]byte
	copy(b[:22], s)
	b[23] = byte(len(s))
	return b
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err) // a constant of this file
	}
	return b
}

func le64(v uint64) []byte { return binary.LittleEndian.AppendUint64(nil, v) }
func le32(v uint32) []byte { return binary.LittleEndian.AppendUint32(nil, v) }
