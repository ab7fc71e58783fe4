package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The server makes a certificate once and keeps it in a private file. If the certificate cannot be
// used, the server makes a new one and logs that.
func TestOwnCertificate(t *testing.T) {
	folder := t.TempDir()
	load := func() (cert []byte, said string) {
		t.Helper()
		var b bytes.Buffer
		var own ownCertificate
		if err := own.load(folder, "192.0.2.7:3306", slog.New(slog.NewTextHandler(&b, nil))); err != nil {
			t.Fatal(err)
		}
		c, err := own.config().GetCertificate(nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"localhost", "127.0.0.1", "192.0.2.7"} {
			if err := c.Leaf.VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
		for _, name := range []string{certificateFile, keyFile} {
			if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
		if !strings.Contains(b.String(), "sha256=") {
			t.Errorf("said %q", b.String())
		}
		return c.Certificate[0], b.String()
	}
	first, said := load()
	if strings.Contains(said, "cannot be used") {
		t.Error(said)
	}
	if again, _ := load(); !bytes.Equal(first, again) {
		t.Error("another one the second time")
	}
	for what, spoil := range map[string]func() error{
		"PEM": func() error { return os.WriteFile(filepath.Join(folder, keyFile), []byte("torn"), 0o600) },
		"valid from": func() error {
			return makeCertificate(folder, "127.0.0.1:3306", time.Now().Add(-certificateLife-time.Minute))
		},
		"valid from ": func() error { // and for less than a year from now on
			return makeCertificate(folder, "127.0.0.1:3306", time.Now().Add(-certificateLife+certificateRenewal-time.Minute))
		},
	} {
		before, err := os.ReadFile(filepath.Join(folder, certificateFile))
		if err == nil {
			err = spoil()
		}
		if err != nil {
			t.Fatal(err)
		}
		_, said := load()
		after, err := os.ReadFile(filepath.Join(folder, certificateFile))
		if err != nil || bytes.Equal(before, after) || !strings.Contains(said, "another one is made") || !strings.Contains(said, what) {
			t.Errorf("%s: %v, said %s", what, err, said)
		}
	}
	// No certificate can be made in this folder.
	var own ownCertificate
	if err := own.load(filepath.Join(folder, "none"), "127.0.0.1:3306", slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--no-tls") {
		t.Error(err)
	}
	if _, err := own.config().GetCertificate(nil); err == nil {
		t.Error("a certificate out of nothing")
	}
}
