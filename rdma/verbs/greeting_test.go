package verbs

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/rdma"
)

var someAddress = address{pair: 0x1234, first: 0xffffff, gid: [16]byte{10: 0xff, 11: 0xff, 12: 10, 15: 1}, lid: 7, mtu: 5, reads: 16, key: 1 << 30}

func TestGreeting(t *testing.T) {
	want := greeting{purpose: datagrams, from: 1, to: 65535, worker: 3, dial: 1 << 31, life: 1 << 63, cluster: [16]byte{1, 15: 2}, address: someAddress}
	if got, err := readGreeting(bytes.NewReader(want.encode())); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for at, c := range map[int]struct {
		value byte
		want  error
	}{0: {1, errGarbage}, 4: {2, refusals[otherFormat]}, 43: {1, errGarbage}, 47: {1, errGarbage}, 66: {6, errGarbage}} {
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
	good := reply{life: 5, address: someAddress}
	if life, a, err := readReply(bytes.NewReader(good.encode())); life != 5 || a != someAddress || err != nil {
		t.Errorf("%d, %+v, %v", life, a, err)
	}
	for why, want := range refusals {
		r := reply{refusal: why}
		if _, _, err := readReply(bytes.NewReader(r.encode())); !errors.Is(err, want) {
			t.Errorf("refusal %d: %v, want %v", why, err, want)
		}
	}
	r := reply{refusal: 99}
	if _, _, err := readReply(bytes.NewReader(r.encode())); err == nil || !strings.Contains(err.Error(), "reason 99") {
		t.Errorf("an unknown refusal: %v", err)
	}
	b := good.encode()
	b[0]++
	if _, _, err := readReply(bytes.NewReader(b)); !errors.Is(err, errGarbage) {
		t.Errorf("garbage: %v", err)
	}
	b = good.encode()
	b[4]++
	if _, _, err := readReply(bytes.NewReader(b)); !errors.Is(err, refusals[otherFormat]) {
		t.Errorf("another format: %v", err)
	}
	if _, _, err := readReply(bytes.NewReader(nil)); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
}

func TestAnswer(t *testing.T) {
	want := answer{kind: ended, key: 1 << 63, target: target{rkey: 7, address: 1 << 40, bytes: 1 << 30}}
	if got, err := decodeAnswer(want.encode()); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for _, bad := range []answer{{kind: 3}, {target: target{address: 1<<64 - 1, bytes: 2}}} {
		if _, err := decodeAnswer(bad.encode()); !errors.Is(err, errGarbage) {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

// What strangers send makes errors, and what is accepted is what was sent.
func FuzzGreeting(f *testing.F) {
	g := greeting{purpose: datagrams, from: 1, to: 2, address: someAddress}
	r := reply{address: someAddress}
	f.Add(g.encode())
	f.Add(r.encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := readGreeting(bytes.NewReader(b)); err == nil && !bytes.Equal(g.encode(), b[:greetingBytes]) {
			t.Errorf("greeting %x was read as %+v", b, g)
		}
		_, _, _ = readReply(bytes.NewReader(b))
		if len(b) >= answerBytes {
			_, _ = decodeAnswer(b[:answerBytes])
		}
	})
}

func TestTarget(t *testing.T) {
	m := target{bytes: 1 << 16}
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
