package tcp

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/rdma/hosts"
)

const (
	// LineKeyBytes is the length of a key of a line: 8 bytes for its number, which is not 0, and 16 for its secret.
	LineKeyBytes = 24
	// LineMagic begins all datagrams of a line, and no other ones.
	LineMagic = "fsleaud1"
)

// A Line is a second UDP socket at the machine's port, for a user that sends and receives
// without Go. It also exchanges the keys of that user's datagrams. The package neither reads
// nor writes the socket.
type Line struct {
	nic    *NIC
	socket int // not known to Go's poller, which would wake up for each datagram that comes or goes
	user   atomic.Pointer[func(to rdma.MachineID, key [LineKeyBytes]byte)]
}

// listenUDP opens a UDP socket. If isShared, this user can open another socket at the same address.
func listenUDP(at *net.TCPAddr, isShared bool) (*net.UDPConn, error) {
	var config net.ListenConfig
	if isShared {
		config.Control = func(_, _ string, raw syscall.RawConn) error {
			return withSocket(raw, func(fd int) error { return unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		}
	}
	socket, err := config.ListenPacket(context.Background(), "udp", at.String())
	if err != nil {
		return nil, err
	}
	return socket.(*net.UDPConn), nil
}

// withSocket calls f with a socket's descriptor.
func withSocket(raw syscall.RawConn, f func(fd int) error) error {
	var failed error
	err := raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}

// openLine opens the line's socket. It must come after that of the mail, because the kernel numbers the
// sockets of a port.
func openLine(nic *NIC, at *net.TCPAddr) (*Line, error) {
	socket, err := listenUDP(at, true)
	if err != nil {
		return nil, err
	}
	defer socket.Close() // the line has another descriptor
	_, _ = socket.SetReadBuffer(mailBuffer), socket.SetWriteBuffer(mailBuffer)
	if err := withSocket(nic.mail.raw, divide); err != nil {
		return nil, err
	}
	line := &Line{nic: nic}
	raw, err := socket.SyscallConn()
	if err != nil {
		return nil, err
	}
	err = withSocket(raw, func(fd int) (err error) {
		line.socket, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, err
	}
	return line, nil
}

// divide makes the kernel give datagrams that begin with LineMagic to the second socket of the
// port. All others go to the first socket, also those that are too short to tell.
func divide(fd int) error {
	head, tail := binary.BigEndian.Uint32([]byte(LineMagic)), binary.BigEndian.Uint32([]byte(LineMagic[4:]))
	program := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 0},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: head, Jf: 3},
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: 4},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: tail, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	}
	return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_REUSEPORT_CBPF, &unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]})
}

// close closes the line, if there is one. If the user has duplicated the descriptor, the user
// must close the duplicates before the machine's port can be used again.
func (l *Line) close() error {
	if l == nil {
		return nil
	}
	return unix.Close(l.socket)
}

// Line returns the machine's line, or nil if Config.Line is false.
func (nic *NIC) Line() *Line { return nic.line }

// Socket returns the line's socket. A caller that uses it after the NIC is closed must duplicate it.
func (l *Line) Socket() (fd int) { return l.socket }

// HandOut sets the function that is called with each key that the machine hands out, before the other
// machine gets it. Until then, and with nil, the machine refuses to hand out keys.
func (l *Line) HandOut(f func(to rdma.MachineID, key [LineKeyBytes]byte)) {
	if f == nil {
		l.user.Store(nil)
		return
	}
	l.user.Store(&f)
}

// handOut makes a key for datagrams from a machine.
func (l *Line) handOut(from rdma.MachineID) ([]byte, hosts.Refusal) {
	f := l.user.Load()
	if f == nil {
		return nil, hosts.NoLine
	}
	var key [LineKeyBytes]byte
	for binary.LittleEndian.Uint64(key[:]) == 0 {
		_, _ = rand.Read(key[:]) // never fails
	}
	(*f)(from, key)
	return key[:], hosts.Accepted
}

// Ask asks another machine for a key for datagrams to it, and returns the key and the machine's
// present address. Only one goroutine at a time may ask a machine. The error is
// errors.ErrUnsupported if the machine has no line.
func (l *Line) Ask(ctx context.Context, m rdma.MachineID) (key [LineKeyBytes]byte, at netip.AddrPort, err error) {
	if l.nic.isCut(m) {
		return key, at, hosts.Refusals[hosts.Leaving]
	}
	c, err := l.nic.dial(ctx, hosts.Greeting{Purpose: keysOfLine, To: m}, key[:])
	if err != nil {
		return key, at, err
	}
	at = c.outbox.RemoteAddr().(*net.TCPAddr).AddrPort()
	_ = c.outbox.Close()
	return key, at, nil
}
