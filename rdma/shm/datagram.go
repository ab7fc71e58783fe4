package shm

import (
	"encoding/binary"
	"errors"
	"net"

	"github.com/farmsql/farmsql/rdma"
	"golang.org/x/sys/unix"
)

// A datagram on the wire: | magic 4 | reserved 2 | from 2 | body |
const (
	datagramMagic       = 0x6d677364 ^ (formatVersion << 24)
	datagramHeaderBytes = 8
)

type receiver struct {
	f func(from rdma.MachineID, b []byte)
}

// Datagram implements rdma.NIC.
func (nic *NIC) Datagram(to rdma.MachineID, b []byte) error {
	err := nic.mayDatagram(to, b)
	if err != nil || nic.isCut(to) {
		return err
	}
	le := binary.LittleEndian
	datagram := le.AppendUint32(make([]byte, 0, datagramHeaderBytes+len(b)), datagramMagic)
	datagram = append(le.AppendUint32(datagram, uint32(nic.machine)<<16), b...) // reserved and from in one
	raw, err := nic.mail.SyscallConn()
	if err != nil {
		return nic.datagramError(to, b, rdma.ErrClosed)
	}
	address := &unix.SockaddrUnix{Name: nic.folder.socket(to, "datagram")}
	err = raw.Control(func(fd uintptr) {
		// The datagram is lost if nobody is there, or if there is no room. Waiting for room could
		// make two machines wait for each other.
		_ = unix.Sendto(int(fd), datagram, unix.MSG_DONTWAIT, address)
	})
	if err != nil {
		return nic.datagramError(to, b, rdma.ErrClosed)
	}
	return nil
}

// mayDatagram returns the error of a datagram that cannot be sent because the NIC is closed or b is too long.
func (nic *NIC) mayDatagram(to rdma.MachineID, b []byte) error {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case nic.mu.closed:
		return nic.datagramError(to, b, rdma.ErrClosed)
	case len(b) > rdma.DatagramBytesMax:
		return nic.datagramError(to, b, rdma.ErrRange)
	}
	return nil
}

func (nic *NIC) datagramError(to rdma.MachineID, b []byte, err error) error {
	return &rdma.Error{Op: rdma.OpDatagram, To: to, Bytes: len(b), Err: err}
}

// Datagrams implements rdma.NIC. The receiver is called by one goroutine.
func (nic *NIC) Datagrams(f func(from rdma.MachineID, b []byte)) {
	nic.mu.Lock()
	defer nic.mu.Unlock()
	switch {
	case f == nil:
		nic.receiver.Store(nil)
	case !nic.mu.closed:
		nic.receiver.Store(&receiver{f})
	}
}

// receive delivers datagrams that arrive, until the socket is closed.
func (nic *NIC) receive() {
	buf := make([]byte, datagramHeaderBytes+rdma.DatagramBytesMax+1)
	for {
		n, _, err := nic.mail.ReadFromUnix(buf)
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err == nil {
			nic.deliver(buf[:n])
		}
	}
}

// deliver drops bytes that are not a datagram of a machine, because any process can write to
// the socket.
func (nic *NIC) deliver(b []byte) {
	if len(b) < datagramHeaderBytes || len(b) > datagramHeaderBytes+rdma.DatagramBytesMax {
		return
	}
	le := binary.LittleEndian
	from := rdma.MachineID(le.Uint16(b[6:]))
	if le.Uint32(b) != datagramMagic || nic.isCut(from) {
		return
	}
	if r := nic.receiver.Load(); r != nil {
		r.f(from, b[datagramHeaderBytes:])
	}
}
