package hosts

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

var protocol = Protocol{Magic: 0x01020304, Format: 1}

func TestGreeting(t *testing.T) {
	want := Greeting{Purpose: 1, From: 1, To: 65535, Worker: 3, Dial: 1 << 31, Life: 1 << 63, Cluster: [16]byte{1, 15: 2}, Address: "db1:7070"}
	b := protocol.EncodeGreeting(want)
	if got, err := protocol.ReadGreeting(bytes.NewReader(b)); err != nil || got != want {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	for at, c := range map[int]error{0: ErrGarbage, 4: Refusals[OtherFormat]} {
		bad := slices.Clone(b)
		bad[at]++
		if _, err := protocol.ReadGreeting(bytes.NewReader(bad)); !errors.Is(err, c) {
			t.Errorf("byte %d: %v, want %v", at, err, c)
		}
	}
	for _, n := range []int{greetingBytes - 1, len(b) - 1} {
		if _, err := protocol.ReadGreeting(bytes.NewReader(b[:n])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
	if !want.IsBefore(1<<31+1) || want.IsBefore(1<<31) || !(&Greeting{Dial: 1<<32 - 1}).IsBefore(0) {
		t.Error("numbers of connections do not wrap")
	}
}

func TestReply(t *testing.T) {
	if life, err := protocol.ReadReply(bytes.NewReader(protocol.EncodeReply(Reply{Life: 5}))); life != 5 || err != nil {
		t.Errorf("%d, %v", life, err)
	}
	for why, want := range Refusals {
		if _, err := protocol.ReadReply(bytes.NewReader(protocol.EncodeReply(Reply{Refusal: why}))); !errors.Is(err, want) {
			t.Errorf("refusal %d: %v, want %v", why, err, want)
		}
	}
	if _, err := protocol.ReadReply(bytes.NewReader(protocol.EncodeReply(Reply{Refusal: 99}))); err == nil || !strings.Contains(err.Error(), "reason 99") {
		t.Errorf("an unknown refusal: %v", err)
	}
	for at, want := range map[int]error{0: ErrGarbage, 4: Refusals[OtherFormat]} {
		b := protocol.EncodeReply(Reply{})
		b[at]++
		if _, err := protocol.ReadReply(bytes.NewReader(b)); !errors.Is(err, want) {
			t.Errorf("byte %d: %v, want %v", at, err, want)
		}
	}
	if _, err := protocol.ReadReply(bytes.NewReader(nil)); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
}

// FuzzGreeting: what strangers send makes errors, and what is accepted is what was sent.
func FuzzGreeting(f *testing.F) {
	f.Add(protocol.EncodeGreeting(Greeting{From: 1, To: 2, Address: "db1:7070"}))
	f.Add(protocol.EncodeReply(Reply{Life: 1}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if g, err := protocol.ReadGreeting(bytes.NewReader(b)); err == nil && !bytes.HasPrefix(b, protocol.EncodeGreeting(g)) {
			t.Errorf("greeting %x was read as %+v", b, g)
		}
		_, _ = protocol.ReadReply(bytes.NewReader(b))
	})
}
