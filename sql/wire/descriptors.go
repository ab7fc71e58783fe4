package wire

import (
	"errors"
	"net"
	"os"
	"syscall"
)

// A spare is a descriptor that is kept for the moment when there are none left: with
// it a client can be accepted and told so. Without, it would wait for an answer that
// does not come. It belongs to the goroutine that accepts.
type spare struct{ f *os.File }

// keep opens the descriptor, if it is not open and there is one.
func (s *spare) keep() {
	if s.f == nil {
		s.f, _ = os.Open(os.DevNull) // or at the next attempt
	}
}

// release closes it.
func (s *spare) release() {
	if s.f != nil {
		_ = s.f.Close()
		s.f = nil
	}
}

// isExhausted says whether err is that the process, or the system, has no descriptor left.
func isExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// turnAway accepts a client with the spare descriptor, and refuses it. It reports
// whether there was one.
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
