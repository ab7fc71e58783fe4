package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/farmsql/farmsql/nvram"
)

// A socketServer answers at a socket in a folder: a client that connects, and sends its
// request if one is expected, receives one JSON document.
type socketServer struct {
	listener net.Listener
	path     string
	running  sync.WaitGroup
}

// serveSocket answers at a socket in a folder, which this process has locked. Only the
// process's user can connect.
func serveSocket(folder, name string, answer func(net.Conn)) (*socketServer, error) {
	s := &socketServer{path: filepath.Join(folder, name)}
	if err := os.Remove(s.path); err != nil && !errors.Is(err, fs.ErrNotExist) { // the socket may be left by a killed process
		return nil, err
	}
	config := nvram.ListenPrivately()
	err := withShortName(folder, name, func(short string) (err error) {
		s.listener, err = config.Listen(context.Background(), "unix", short)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("cannot listen at %s: %w", s.path, err)
	}
	s.listener.(*net.UnixListener).SetUnlinkOnClose(false) // the listener knows only the short name, which is invalid by then: socketServer.Close removes the socket
	s.running.Go(func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			s.running.Go(func() {
				defer c.Close()
				answer(c)
			})
		}
	})
	return s, nil
}

// Close stops the server, and waits for running answers.
func (s *socketServer) Close() error {
	err := s.listener.Close()
	s.running.Wait()
	return errors.Join(err, os.Remove(s.path))
}

// withShortName calls f with a short name for a socket in a folder: a socket's path may have at
// most 107 bytes.
func withShortName(folder, name string, f func(short string) error) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer d.Close()
	return f(fmt.Sprintf("/proc/self/fd/%d/%s", d.Fd(), name))
}

// errNoServer means that the process that created the socket is gone.
var errNoServer = errors.New("not running")

// askSocket sends request, unless it is nil, to a socket of the process that has opened a folder.
// It decodes the reply into answer. It fails with fs.ErrNotExist if there is no such socket, and
// with a json error if the reply does not fit answer.
func askSocket(folder, name string, patience time.Duration, request, answer any) error {
	var c net.Conn
	err := withShortName(folder, name, func(short string) (err error) {
		c, err = net.DialTimeout("unix", short, patience)
		return err
	})
	if errors.Is(err, syscall.ECONNREFUSED) {
		return errNoServer
	}
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if request != nil {
		if err := json.NewEncoder(c).Encode(request); err != nil {
			return err
		}
	}
	b, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("runs, but does not answer within %v", patience)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(b, answer)
}
