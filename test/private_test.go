package test

import (
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// With any umask, only the user of a fleet may read its memory, its shared folder and its saves,
// and connect to its sockets.
func TestNobodyElseMayRead(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0))
	f := newFleet(t, 2, 2, "")
	saves := filepath.Join(f.folder, "saves")
	f.start()
	f.awaitWhole()
	check := func(when string) (files int) {
		t.Helper()
		err := filepath.WalkDir(f.folder, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if files++; err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v %s", when, info.Mode(), strings.TrimPrefix(p, f.folder))
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
		return files
	}
	if n := check("running"); n < 10 {
		t.Errorf("%d files", n)
	}
	f.stopBySave(saves)
	check("saved")
}
