package main

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
)

const (
	// frameMin and frameMax bound the length of a frame: two addresses and a type, and what QEMU has room for.
	frameMin = 14
	frameMax = 4096 + 64<<10
	// waitingMax is the number of frames that may wait for a host. More are dropped, as a switch does.
	waitingMax = 4096
	// portRDMA is the UDP port of RoCE v2.
	portRDMA = 4791
)

var errFrame = errors.New("not the length of a frame")

// An address is of an interface (MAC).
type address [6]byte

// addressOf returns the address of a host's interface among hosts.
func addressOf(host int) address { return address{0x52, 0x54, 0, 7, 0, byte(host)} }

// A network is a switch between hosts: it learns the address at each cable, and sends frames to unknown addresses to all.
// On a cable, which is a socket, a frame follows its length, of 4 bytes.
type network struct {
	listener net.Listener
	wait     sync.WaitGroup
	mu       sync.Mutex
	closed   bool
	cables   map[*cable]bool
	dropped  map[address]bool // hosts whose frames are dropped, both ways
	rdma     int              // frames of RDMA that were passed on
}

// A cable leads to a host.
type cable struct {
	conn    net.Conn
	host    address     // from the last frame; guarded by network.mu
	waiting chan []byte // frames with their lengths
}

// newNetwork starts a switch.
func newNetwork() (*network, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	n := &network{listener: l, cables: map[*cable]bool{}, dropped: map[address]bool{}}
	n.wait.Go(n.accept)
	return n, nil
}

// address is where hosts plug in their cables.
func (n *network) address() string { return n.listener.Addr().String() }

// close unplugs all cables, and ends the switch.
func (n *network) close() {
	_ = n.listener.Close() // fails only if it was closed
	n.mu.Lock()
	n.closed = true
	for c := range n.cables {
		_ = c.conn.Close()
	}
	n.mu.Unlock()
	n.wait.Wait()
}

// drop makes the switch drop all frames from and to a host, or pass them on again. The host's link stays up.
func (n *network) drop(host int, on bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropped[addressOf(host)] = on
}

// rdmaFrames returns how many frames of RDMA the switch has passed on.
func (n *network) rdmaFrames() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.rdma
}

// accept plugs in cables until the switch is closed.
func (n *network) accept() {
	for {
		conn, err := n.listener.Accept()
		if err != nil {
			return
		}
		n.plug(&cable{conn: conn, waiting: make(chan []byte, waitingMax)})
	}
}

func (n *network) plug(c *cable) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		_ = c.conn.Close()
		return
	}
	n.cables[c] = true
	n.wait.Go(c.send)
	n.wait.Go(func() {
		_ = n.forward(c, bufio.NewReaderSize(c.conn, 2*frameMax)) // its error is the end of a host
		n.unplug(c)
	})
}

func (n *network) unplug(c *cable) {
	n.mu.Lock()
	defer n.mu.Unlock()
	_ = c.conn.Close()
	delete(n.cables, c)
	close(c.waiting)
}

// send writes what waits for a host, until its cable is unplugged.
func (c *cable) send() {
	for frame := range c.waiting {
		if _, err := c.conn.Write(frame); err != nil {
			_ = c.conn.Close() // which ends forward
		}
	}
}

// forward passes on what comes from a cable, until it ends.
func (n *network) forward(from *cable, r io.Reader) error {
	for {
		frame, err := readFrame(r)
		if err != nil {
			return err
		}
		n.pass(from, frame)
	}
}

// readFrame reads a frame, and returns it with its length.
func readFrame(r io.Reader) ([]byte, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	bytes := binary.BigEndian.Uint32(length[:])
	if bytes < frameMin || bytes > frameMax {
		return nil, fmt.Errorf("%w: %d", errFrame, bytes)
	}
	frame := make([]byte, 4+bytes)
	copy(frame, length[:])
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// pass passes a frame on to the cable of its receiver, or to all others.
func (n *network) pass(from *cable, frame []byte) {
	to := address(frame[4:10]) // after the length come the receiver's address and the sender's
	n.mu.Lock()
	defer n.mu.Unlock()
	from.host = address(frame[10:16])
	if n.dropped[from.host] {
		return
	}
	if isRDMA(frame[4:]) {
		n.rdma++
	}
	isKnown := n.knowsLocked(to)
	for c := range n.cables {
		if c != from && !n.dropped[c.host] && (c.host == to || !isKnown) {
			c.offer(frame)
		}
	}
}

// knowsLocked reports whether an address is at a cable.
func (n *network) knowsLocked(a address) bool {
	for c := range n.cables {
		if c.host == a {
			return true
		}
	}
	return false
}

// offer has a frame sent, unless too many wait.
func (c *cable) offer(frame []byte) {
	select {
	case c.waiting <- frame:
	default:
	}
}

// isRDMA reports whether a frame is of RoCE v2: UDP over IPv4 without options.
func isRDMA(frame []byte) bool {
	const ipv4, udp = 0x0800, 17
	return len(frame) >= 42 && binary.BigEndian.Uint16(frame[12:]) == ipv4 && frame[14] == 0x45 && frame[23] == udp && binary.BigEndian.Uint16(frame[36:]) == portRDMA
}
