package main

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

var everybody = address{255, 255, 255, 255, 255, 255}

// frameOf returns a frame of a type, with its length.
func frameOf(from, to address, kind uint16, text string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(frameMin+len(text)))
	b = append(append(b, to[:]...), from[:]...)
	return append(binary.BigEndian.AppendUint16(b, kind), text...)
}

// TestPass: frames go to all until the switch knows an address, then to that; and none go from or to a host whose frames are dropped.
func TestPass(t *testing.T) {
	n := &network{cables: map[*cable]bool{}, dropped: map[address]bool{}}
	var cables []*cable
	for range 3 {
		c := &cable{waiting: make(chan []byte, 1)}
		cables = append(cables, c)
		n.cables[c] = true
	}
	a, b, c := addressOf(1), addressOf(2), addressOf(3)
	// RoCE v2: version and length of the header of IPv4, UDP, and the port.
	const rdma = "E        \x11            \x12\xb7    "
	for _, step := range []struct {
		from     int
		to       address
		kind     uint16
		text     string
		dropped  int // a host whose frames are dropped
		gets     [3]bool
		isOfRDMA bool
	}{
		{0, b, 1, "where is b?", 0, [3]bool{false, true, true}, false},
		{1, a, 1, "here", 0, [3]bool{true, false, false}, false},
		{0, b, 1, "hello", 0, [3]bool{false, true, false}, false},
		{2, everybody, 1, "all", 0, [3]bool{true, true, false}, false},
		{0, b, 1, "dropped", 2, [3]bool{}, false},
		{1, c, 1, "dropped", 2, [3]bool{}, false},
		{2, everybody, 1, "all but b", 2, [3]bool{true, false, false}, false},
		{0, b, 0x0800, rdma, 0, [3]bool{false, true, false}, true},
		{0, b, 0x86dd, rdma, 0, [3]bool{false, true, false}, false},
		{0, b, 0x0800, rdma[:20], 0, [3]bool{false, true, false}, false},
	} {
		n.drop(2, step.dropped == 2)
		before := n.rdmaFrames()
		frame := frameOf(addressOf(step.from+1), step.to, step.kind, step.text)
		n.pass(cables[step.from], frame)
		for i, c := range cables {
			select {
			case got := <-c.waiting:
				if !step.gets[i] || string(got) != string(frame) {
					t.Errorf("%q: cable %d got %q", step.text, i+1, got)
				}
			default:
				if step.gets[i] {
					t.Errorf("%q: cable %d got nothing", step.text, i+1)
				}
			}
		}
		if isOfRDMA := n.rdmaFrames() > before; isOfRDMA != step.isOfRDMA {
			t.Errorf("%q: counted as RDMA: %v", step.text, isOfRDMA)
		}
	}
	for range 2 {
		n.pass(cables[0], frameOf(a, b, 1, "there is room for one")) // must not wait
	}
}

// cablesAre waits until so many cables are plugged in.
func (n *network) cablesAre(t *testing.T, want int) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		n.mu.Lock()
		got := len(n.cables)
		n.mu.Unlock()
		if got == want {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d cables, want %d", got, want)
		}
	}
}

// TestNetwork: frames come over sockets; a cable that carries nonsense, or whose host has ended, is unplugged; and closing ends all.
func TestNetwork(t *testing.T) {
	n, err := newNetwork()
	if err != nil {
		t.Fatal(err)
	}
	var ends []net.Conn
	for range 4 {
		c, err := net.Dial("tcp", n.address())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		ends = append(ends, c)
	}
	n.cablesAre(t, 4)
	for range 2 {
		want := frameOf(addressOf(1), everybody, 1, "all")
		if _, err := ends[0].Write(want); err != nil {
			t.Fatal(err)
		}
		for _, c := range ends[1:] {
			if got, err := readFrame(c); err != nil || string(got) != string(want) {
				t.Errorf("got %q (%v)", got, err)
			}
		}
	}
	for _, length := range []uint32{frameMin - 1, frameMax + 1} {
		c := ends[len(ends)-1]
		ends = ends[:len(ends)-1]
		if _, err := c.Write(binary.BigEndian.AppendUint32(nil, length)); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
			t.Errorf("a frame of %d bytes: %v", length, err)
		}
	}
	n.cablesAre(t, 2)
	_ = ends[1].Close()
	n.cablesAre(t, 1)
	n.close()
	if _, err := ends[0].Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("after the switch has closed: %v", err)
	}
	if c, err := net.Dial("tcp", n.address()); err == nil {
		_ = c.Close()
		t.Error("the switch takes cables after it has closed")
	}
}
