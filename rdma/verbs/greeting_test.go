package verbs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

var someAddress = address{pair: 0x1234, first: 0xffffff, gid: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, lid: 7, mtu: 5, reads: 16, key: 1 << 30}

func TestGreeting(t *testing.T) {
	want := greeting{Greeting: hosts.Greeting{Purpose: datagrams, From: 1, To: 65535, Worker: 3, Dial: 1 << 31, Life: 1 << 63, Cluster: [16]byte{1, 15: 2}}, at: someAddress}
	if got, err := readGreeting(bytes.NewReader(want.encode())); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for at, c := range map[int]struct {
		value byte
		want  error
	}{4: {2, hosts.Refusals[hosts.OtherFormat]}, 44: {1, hosts.ErrGarbage}, 48: {1, hosts.ErrGarbage}, 67: {6, hosts.ErrGarbage}} {
		b := want.encode()
		b[at] = c.value
		if _, err := readGreeting(bytes.NewReader(b)); !errors.Is(err, c.want) {
			t.Errorf("byte %d is %d: %v, want %v", at, c.value, err, c.want)
		}
	}
	if _, err := readGreeting(bytes.NewReader(want.encode()[:50])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half a greeting: %v", err)
	}
}

func TestReply(t *testing.T) {
	good := reply{Reply: hosts.Reply{Life: 5}, at: someAddress}
	if life, a, err := readReply(bytes.NewReader(good.encode())); life != 5 || a != someAddress || err != nil {
		t.Errorf("%d, %+v, %v", life, a, err)
	}
	no := reply{Reply: hosts.Reply{Refusal: hosts.CardBroken}}
	if _, _, err := readReply(bytes.NewReader(no.encode())); !errors.Is(err, hosts.Refusals[hosts.CardBroken]) {
		t.Errorf("a refusal: %v", err)
	}
	if _, _, err := readReply(bytes.NewReader(good.encode()[:40])); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("half an address: %v", err)
	}
	if _, _, err := readReply(bytes.NewReader(nil)); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
}

func TestAnswer(t *testing.T) {
	want := answer{kind: outside, rkey: 7, question: question{1 << 63, 1<<32 - 1}, address: 1 << 40, bytes: 1 << 30}
	if got, err := decodeAnswer(want.encode()); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []answer{{kind: unpinned + 1}, {kind: ended, address: 1<<64 - 1, bytes: 2}, {kind: ended, bytes: memoryBytesMax + 1}, {question: question{piece: 1}, bytes: pieceBytes}} {
		if _, err := decodeAnswer(bad.encode()); !errors.Is(err, hosts.ErrGarbage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What strangers send makes errors, and what is accepted is what was sent.
func FuzzGreeting(f *testing.F) {
	g := greeting{Greeting: hosts.Greeting{Purpose: datagrams, From: 1, To: 2}, at: someAddress}
	r := reply{at: someAddress}
	f.Add(g.encode())
	f.Add(r.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := readGreeting(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, g.encode()) {
			t.Errorf("greeting %x was read as %+v", b, g)
		}
		_, _, _ = readReply(bytes.NewReader(b))
		if len(b) >= answerBytes {
			_, _ = decodeAnswer(b[:answerBytes])
		}
	})
}

func TestTarget(t *testing.T) {
	m := &remote{bytes: 1 << 16}
	for _, c := range []struct {
		off  uint64
		n    int
		want bool
	}{{0, 8, true}, {1<<16 - 8, 8, true}, {1 << 16, 8, false}, {1<<16 - 8, 16, false}, {1<<64 - 8, 8, false}, {0, 1<<16 + 8, false}} {
		if m.has(c.off, c.n) != c.want {
			t.Errorf("%d bytes at %d: %v", c.n, c.off, !c.want)
		}
	}
}

// An error names device, port, peer, and what verbs say, and matches ErrBroken.
func TestLinkError(t *testing.T) {
	for _, c := range []struct {
		reason error
		want   string
	}{
		{&StatusError{Status: uint32(statusAccess)}, "rdma: connection broken: device mlx5_0, port 1, to machine 7: verbs status remote access error (10): the peer has ended the registration meanwhile"},
		{&StatusError{Status: uint32(statusRetries), Vendor: 0x81}, "rdma: connection broken: device mlx5_0, port 1, to machine 7: verbs status transport retry counter exceeded (12): the peer's card does not answer, vendor error 0x81"},
		{&StatusError{Status: uint32(statusNotReady)}, "rdma: connection broken: device mlx5_0, port 1, to machine 7: verbs status RNR retry counter exceeded (13): the peer has not looked for rings for too long"},
		{&StatusError{Status: 99}, "rdma: connection broken: device mlx5_0, port 1, to machine 7: verbs status status 99"},
		{errCut, "rdma: connection broken: device mlx5_0, port 1, to machine 7: cut off"},
	} {
		err := &LinkError{Device: "mlx5_0", Port: 1, Peer: 7, Reason: c.reason}
		if err.Error() != c.want || !errors.Is(err, rdma.ErrBroken) || !errors.Is(err, c.reason) {
			t.Errorf("%q, want %q", err, c.want)
		}
	}
}

func TestConfigIsChecked(t *testing.T) {
	for name, c := range map[string]struct {
		cfg  Config
		want string
	}{
		"port":          {Config{Port: 256}, "port 256"},
		"GID":           {Config{GIDIndex: -2}, "GID index -2"},
		"traffic class": {Config{TrafficClass: 256}, "traffic class 256"},
		"MTU":           {Config{MTU: 1500}, "MTU 1500 is none of [256 512 1024 2048 4096]"},
	} {
		if _, err := Join(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	for i, bytes := range mtus {
		if code := mtuCode(bytes); int(code) != i+1 || mtuBytes(code) != bytes {
			t.Errorf("MTU %d has code %d, which is %d", bytes, code, mtuBytes(code))
		}
	}
	if mtuBytes(0) != 0 || mtuBytes(6) != 0 {
		t.Error("codes that are none have an MTU")
	}
}
