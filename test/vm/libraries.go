package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// libraryFolders are the folders in which Debian has libraries.
var libraryFolders = []string{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64"}

// addProgram appends a program or a library, and all libraries that it is linked with. The
// libraries have the same paths as on this computer.
func (a *archive) addProgram(name, from string) error {
	if err := a.addFile(name, from); err != nil {
		return err
	}
	f, err := elf.Open(from)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type != elf.PT_INTERP {
			continue
		}
		loader := make([]byte, p.Filesz)
		if _, err := p.ReadAt(loader, 0); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
		at := string(loader[:len(loader)-1]) // the path ends with a zero byte
		if err := a.addFile(at, at); err != nil {
			return err
		}
	}
	libraries, err := f.ImportedLibraries()
	if errors.Is(err, elf.ErrNoSymbols) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	for _, l := range libraries {
		if err := a.addLibrary(l); err != nil {
			return fmt.Errorf("%s: %w", from, err)
		}
	}
	return nil
}

// addLibrary appends a library, unless the archive has it.
func (a *archive) addLibrary(name string) error {
	for _, dir := range libraryFolders {
		at := filepath.Join(dir, name)
		if _, err := os.Stat(at); err != nil {
			continue
		}
		if a.names[at[1:]] { // names begin without a slash
			return nil
		}
		return a.addProgram(at, at)
	}
	return fmt.Errorf("library %s is in none of %v", name, libraryFolders)
}
