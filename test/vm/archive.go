package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// Modes of an archive's entries: Unix file types with permissions.
const (
	modeFolder  = 0o040755
	modeProgram = 0o100755
	modeLink    = 0o120777
)

// An archive is a cpio archive in the format newc, which the kernel unpacks into its root file system.
type archive struct {
	out   bytes.Buffer
	names map[string]bool // the names of its entries
}

// add appends an entry, after the folders that contain it. It appends nothing that the archive has already.
func (a *archive) add(name string, mode int, content []byte) {
	name = strings.TrimPrefix(path.Clean(name), "/")
	if a.names[name] {
		return
	}
	if dir := path.Dir(name); dir != "." {
		a.add(dir, modeFolder, nil)
	}
	if a.names == nil {
		a.names = map[string]bool{}
	}
	a.names[name] = true
	a.append(name, mode, content)
}

// append appends header, name and content, each padded to a multiple of 4 bytes.
func (a *archive) append(name string, mode int, content []byte) {
	// magic, inode, mode, user, group, links, time, size, device of the file (2), device of a node (2),
	// length of the name, checksum
	fmt.Fprintf(&a.out, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x",
		len(a.names), mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name)+1, 0)
	a.out.WriteString(name + "\x00")
	a.pad()
	a.out.Write(content)
	a.pad()
}

// pad appends zeros up to a multiple of 4 bytes.
func (a *archive) pad() { a.out.Write(make([]byte, -a.out.Len()&3)) }

// addFile appends a file of this computer under another name. Links are followed.
func (a *archive) addFile(name, from string) error {
	content, err := os.ReadFile(from)
	if err == nil {
		a.add(name, modeProgram, content)
	}
	return err
}

// addFolder appends a folder of this computer with all that is in it.
func (a *archive) addFolder(name, from string) error {
	return filepath.WalkDir(from, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rest, err := filepath.Rel(from, file)
		if err != nil {
			return err
		}
		return a.addFile(path.Join(name, filepath.ToSlash(rest)), file)
	})
}

// bytes returns the whole archive.
func (a *archive) bytes() []byte {
	a.append("TRAILER!!!", 0, nil)
	return a.out.Bytes()
}
