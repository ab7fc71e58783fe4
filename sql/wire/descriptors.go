package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// A spare is a descriptor that is kept for the time when no others are left. With it, the server
// can accept a client in order to refuse it: otherwise the client would wait for an answer that
// never comes. It is used by the goroutine that accepts.
type spare struct{ f *os.File }

// keep opens the descriptor if it is closed, and if the system has one left.
func (s *spare) keep() {
	if s.f == nil {
		s.f, _ = os.Open(os.DevNull) // if it fails, the next call tries again
	}
}

// release closes the descriptor.
func (s *spare) release() {
	if s.f != nil {
		_ = s.f.Close()
		s.f = nil
	}
}

// isExhausted reports whether err means that the process, or the system, has no descriptor
// left.
func isExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// turnAway accepts and refuses a client with the spare descriptor; false if there is none.
func (m *mux) turnAway(l net.Listener, s *spare) bool {
	if s.f == nil {
		return false
	}
	s.release()
	defer s.keep()
	c, err := l.Accept()
	if err != nil {
		return false
	}
	refuse(c, m.cfg)
	_ = c.Close()
	return true
}
