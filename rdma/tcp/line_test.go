package tcp

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

type handedKey struct {
	to  rdma.MachineID
	key [LineKeyBytes]byte
}

// withLine joins machine m, and returns the keys that it hands out.
func withLine(t *testing.T, f *fabric, m rdma.MachineID) (*NIC, chan handedKey) {
	t.Helper()
	cfg := f.config(m)
	cfg.Line = true
	nic, err := Join(cfg)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	f.at[m] = nic.Address()
	f.mu.Unlock()
	t.Cleanup(func() { closeAll(t, nic) })
	handed := make(chan handedKey, 10)
	nic.Line().HandOut(func(to rdma.MachineID, key [LineKeyBytes]byte) { handed <- handedKey{to, key} })
	return nic, handed
}

// A machine that asks gets the key that the other's user has got, each time another one.
func TestKeysOfLine(t *testing.T) {
	f := newFabric(certificates(t))
	one, _ := withLine(t, f, 1)
	two, handed := withLine(t, f, 2)
	var former [LineKeyBytes]byte
	for range 2 {
		key, at, err := one.Line().Ask(t.Context(), 2)
		if err != nil {
			t.Fatal(err)
		}
		if h := <-handed; h.to != 1 || h.key != key || key == former || at.String() != two.Address() {
			t.Errorf("%v has got %v of %v", h, key, at)
		}
		former = key
	}

	two.Line().HandOut(nil)
	if _, _, err := one.Line().Ask(t.Context(), 2); !errors.Is(err, hosts.Refusals[hosts.NoLine]) || errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a line that is not used yet: %v", err)
	}
	if _, err := f.Join(3); err != nil {
		t.Fatal(err)
	}
	defer closeAll(t, f.up[3])
	if _, _, err := one.Line().Ask(t.Context(), 3); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("a machine without a line, as one of the version before: %v", err)
	}
	one.Cut(2)
	if _, _, err := one.Line().Ask(t.Context(), 2); err == nil {
		t.Error("a key through a cut")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := one.Line().Ask(ctx, 3); err == nil {
		t.Error("a key after the end")
	}
	if f.up[3].Line() != nil {
		t.Error("a line without Config.Line")
	}
}

// The line gets its datagrams, and nobody else's; those of the NIC pass beside it.
func TestLineSharesThePort(t *testing.T) {
	f := newFabric(nil)
	one, _ := withLine(t, f, 1)
	two, _ := withLine(t, f, 2)
	arrived := make(chan string, 1)
	two.Datagrams(func(_ rdma.MachineID, b []byte) {
		select {
		case arrived <- string(b):
		default:
		}
	})
	stranger, err := net.Dial("udp", two.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	for _, text := range []string{"f", "fsle", "fsleaud", "fsleaud2 for the mail", LineMagic + " for the line"} {
		if _, err := stranger.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	buf := make([]byte, 100)
	until(t, func() bool {
		n, _, err := unix.Recvfrom(two.Line().Socket(), buf, unix.MSG_DONTWAIT)
		if err == nil && string(buf[:n]) != LineMagic+" for the line" {
			t.Errorf("the line has got %q", buf[:n])
		}
		return err == nil
	}, func() any { return "the line has got nothing" })
	until(t, func() bool {
		if err := one.Datagram(2, []byte("hello")); err != nil {
			t.Fatal(err)
		}
		select {
		case b := <-arrived:
			return b == "hello"
		case <-time.After(time.Millisecond):
			return false
		}
	}, func() any { return "no datagram beside the line" })
}

// Where another program has the port of UDP, the error says what it is needed for.
func TestPortOfUDPIsTaken(t *testing.T) {
	taken, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, line := range []bool{false, true} {
		_, err = Join(Config{Machine: 1, Listen: taken.LocalAddr().String(), Line: line})
		if !errors.Is(err, rdma.ErrMachineTaken) || !strings.Contains(err.Error(), "of UDP, over which leases and configurations go") {
			t.Error(err)
		}
	}
}
