package main

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
)

// TestSetLink talks to monitors that agree, that do not know the interface, and that end.
func TestSetLink(t *testing.T) {
	for name, c := range map[string]struct {
		greeting, answer string
		want             string
	}{
		"agrees":    {"QEMU monitor\r\n(qemu) ", "set_link eth0 off\r\n(qemu) ", ""},
		"knows not": {"(qemu) ", "Error: Device 'eth0' not found\r\n(qemu) ", "not found"},
		"ends":      {"QEMU mon", "", "EOF"},
		"is cut":    {"(qemu) ", "", "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			h := &host{folder: t.TempDir()}
			l, err := net.Listen("unix", h.file("monitor"))
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			go func() {
				m, err := l.Accept()
				if err != nil {
					return
				}
				defer m.Close()
				_, _ = m.Write([]byte(c.greeting))
				if !strings.HasSuffix(c.greeting, "(qemu) ") {
					return
				}
				_, _ = readUntil(m, []byte("\n"))
				_, _ = m.Write([]byte(c.answer))
			}()
			err = h.setLink(false)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if err := (&host{folder: t.TempDir()}).setLink(true); err == nil {
		t.Error("a host without a monitor has a link")
	}
}

// TestHostRefused: a host is not started without its program, or a folder for its files.
func TestHostRefused(t *testing.T) {
	needsMachines(t)
	n, err := newNetwork()
	if err != nil {
		t.Fatal(err)
	}
	defer n.close()
	k, err := findKernel("")
	if err != nil {
		t.Fatal(err)
	}
	none := filepath.Join(t.TempDir(), "none")
	if _, err := startHost(1, t.TempDir(), k, n, none, "true"); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("without a program: %v", err)
	}
	if _, err := startHost(1, none, k, n, "/bin/true", "true"); err == nil || !strings.Contains(err.Error(), none) {
		t.Errorf("without a folder: %v", err)
	}
}
