package testnet

import (
	"fmt"
	"net"
	"syscall"
	"testing"
	"time"
)

// listen opens a socket for datagrams, which ends with the test.
func listen(t *testing.T) *net.UDPConn {
	t.Helper()
	socket, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	return socket
}

// What a machine answers to the address that a datagram came from finds its sender. A machine that has
// begun a new life tells those so who seal their datagrams with a key of the former one.
func TestAnswersFindTheSender(t *testing.T) {
	machine, senders := listen(t), []*net.UDPConn{listen(t), listen(t)}
	r := newRelay(t, "127.0.0.1:0")
	r.aim(machine.LocalAddr().String())
	go func() {
		b := make([]byte, 16)
		for {
			n, from, err := machine.ReadFromUDPAddrPort(b)
			if err != nil {
				return
			}
			_, _ = machine.WriteToUDPAddrPort(b[:n], from) // what fails is lost
		}
	}()
	for i, sender := range senders {
		own := []byte{byte(i)}
		for begin := time.Now(); ; { // datagrams are lost
			if time.Since(begin) > time.Minute {
				t.Fatalf("sender %d has no answer", i)
			}
			if _, err := sender.WriteTo(own, r.udp.LocalAddr()); err != nil {
				t.Fatal(err)
			}
			if err := sender.SetReadDeadline(time.Now().Add(10 * relayDelay)); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 16)
			n, err := sender.Read(b)
			if err != nil {
				continue
			}
			if string(b[:n]) != string(own) {
				t.Errorf("sender %d has an answer to %v", i, b[:n])
			}
			break
		}
	}
}

// A port that was given out may be another socket's of UDP: then another one is taken, unless the port was asked for.
func TestTriesAnotherPort(t *testing.T) {
	taken := fmt.Errorf("listen: %w", syscall.EADDRINUSE)
	for _, c := range []struct {
		address string
		failing int // how many attempts fail
		with    error
		want    int // attempts
	}{
		{"127.0.0.1:0", 0, nil, 1},
		{"127.0.0.1:0", 2, taken, 3},
		{"127.0.0.1:0", 100, taken, 16},
		{"127.0.0.1:0", 100, syscall.EACCES, 1},
		{"127.0.0.1:4000", 100, taken, 1},
	} {
		attempts := 0
		err := tries(c.address, func() error {
			if attempts++; attempts <= c.failing {
				return c.with
			}
			return nil
		})
		if attempts != c.want || (err != nil) != (attempts <= c.failing) {
			t.Errorf("%s, %d fail with %v: %v after %d attempts, want %d", c.address, c.failing, c.with, err, attempts, c.want)
		}
	}
}
