package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"time"
)

const (
	// hostMemory is the memory of a host.
	hostMemory = "2G"
	// clientPort is the port of a host where its program listens for clients of outside.
	clientPort = 3306
)

// A host is a virtual machine of its own, with an RDMA device, rxeN, at 10.7.0.N. It reaches other hosts through a
// network, and runs one script, whose end is the host's end.
type host struct {
	number  int
	folder  string // for its files
	clients string // address at which this computer reaches the host's clientPort
	vm      *exec.Cmd
	orders  io.WriteCloser // the script reads them from /dev/ttyS1
	ended   chan struct{}
	mu      sync.Mutex
	said    bytes.Buffer // by the script
}

// Write collects what the script says.
func (h *host) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said.Write(b)
}

// output returns what the script has said so far.
func (h *host) output() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.said.String()
}

// console returns what the kernel and init have said so far.
func (h *host) console() string {
	b, err := os.ReadFile(h.file("console"))
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func (h *host) file(name string) string { return filepath.Join(h.folder, name) }

// startHost boots a host whose script finds a program at /payload/program. Files of it are put into folder, which must be there.
func startHost(number int, folder string, k *kernel, through *network, program, script string) (*host, error) {
	at, err := exec.LookPath(qemu)
	if err != nil {
		return nil, fmt.Errorf("%w: install qemu-system-x86", err)
	}
	h := &host{number: number, folder: folder, ended: make(chan struct{})}
	initrd, err := buildImage(folder, k, func(a *archive) error {
		a.add("payload/run", modeProgram, []byte("#!/bin/sh\ncd /payload\nexport HOME=/root\n"+script+"\n"))
		a.add("payload/host", modeProgram, []byte(strconv.Itoa(number)+"\n"))
		return a.addProgram("payload/program", program)
	})
	if err != nil {
		return nil, err
	}
	if h.clients, err = freeAddress(); err != nil {
		return nil, err
	}
	console, err := os.Create(h.file("console"))
	if err != nil {
		return nil, err
	}
	defer console.Close()
	h.vm = exec.Command(at, append(computer(1, hostMemory, k, initrd), h.cards(through)...)...)
	h.vm.ExtraFiles = []*os.File{console}
	h.vm.Stdout, h.vm.Stderr = h, h
	if h.orders, err = h.vm.StdinPipe(); err != nil {
		return nil, err
	}
	if err := h.vm.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = h.vm.Wait() // the console says why
		close(h.ended)
	}()
	return h, nil
}

// cards returns QEMU's arguments for the host's interfaces: eth0 among hosts, eth1 for clients, and a monitor that can take eth0 down.
func (h *host) cards(through *network) []string {
	// Not the newer netdev, stream: with QEMU 7.2 a host on a busy computer sent nothing any more (the kernel's NETDEV WATCHDOG).
	mac := addressOf(h.number)
	return []string{
		"-netdev", "socket,id=hosts,connect=" + through.address(),
		"-device", fmt.Sprintf("virtio-net-pci,netdev=hosts,id=eth0,mac=%v,romfile=", net.HardwareAddr(mac[:])),
		"-netdev", fmt.Sprintf("user,id=clients,restrict=on,hostfwd=tcp:%s-10.0.2.15:%d", h.clients, clientPort),
		"-device", "virtio-net-pci,netdev=clients,id=eth1,mac=52:54:00:08:00:01,romfile=",
		"-monitor", "unix:" + h.file("monitor") + ",server=on,wait=off",
	}
}

// freeAddress returns an address of this computer where nobody listens.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

// order sends a line to the script.
func (h *host) order(line string) error {
	_, err := fmt.Fprintln(h.orders, line)
	return err
}

// kill ends the virtual machine as a power failure ends a host.
func (h *host) kill() {
	_ = h.vm.Process.Kill() // fails if it has ended
	<-h.ended
}

// setLink takes the link of the interface among hosts down, or up again. The host notices that, as it does when a cable is pulled out.
func (h *host) setLink(up bool) error {
	state := "off"
	if up {
		state = "on"
	}
	c, err := net.Dial("unix", h.file("monitor"))
	if err != nil {
		return err
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(bootMax)); err != nil {
		return err
	}
	prompt := []byte("(qemu) ")
	if said, err := readUntil(c, prompt); err != nil {
		return fmt.Errorf("monitor: %w, after %q", err, said)
	}
	if _, err := fmt.Fprintf(c, "set_link eth0 %s\n", state); err != nil {
		return err
	}
	said, err := readUntil(c, prompt)
	if err == nil && bytes.Contains(said, []byte("not found")) {
		err = fmt.Errorf("monitor: %q", said)
	}
	return err
}

// readUntil reads up to a mark.
func readUntil(c net.Conn, mark []byte) (read []byte, err error) {
	b := make([]byte, 1)
	for !bytes.HasSuffix(read, mark) {
		if _, err := c.Read(b); err != nil {
			return read, err
		}
		read = append(read, b[0])
	}
	return read, nil
}
