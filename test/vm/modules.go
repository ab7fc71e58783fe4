package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"
)

// wantedModules are what soft-RoCE needs, and the network between virtual machines. The checksums are asked for by name, at run time, so no module
// depends on them.
var wantedModules = []string{"crc32_generic", "crc32c_generic", "rdma_rxe", "ib_uverbs", "rdma_ucm", "veth", "dummy", "bridge", "virtio_pci", "virtio_net"}

// moduleName returns the name under which other modules depend on a file's module: with underscores for dashes.
func moduleName(file string) string { return strings.ReplaceAll(file, "-", "_") }

// inOrder returns the files of the named modules and of all their dependencies. Each file comes after its dependencies.
func (k *kernel) inOrder(names ...string) (files []string, err error) {
	seen := map[string]bool{}
	var visit func(name string) error
	visit = func(name string) error {
		if seen[name] {
			return nil
		}
		seen[name] = true
		file, ok := k.modules[name]
		if !ok {
			return fmt.Errorf("the kernel %s has no module %s", k.image, name)
		}
		needs, err := dependencies(file)
		if err != nil {
			return err
		}
		for _, n := range needs {
			if err := visit(n); err != nil {
				return err
			}
		}
		files = append(files, file)
		return nil
	}
	for _, n := range names {
		if err := visit(n); err != nil {
			return nil, err
		}
	}
	return files, nil
}

// dependencies returns the names of the modules that a module file needs loaded before it.
func dependencies(file string) ([]string, error) {
	f, err := elf.Open(file)
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", file, err)
	}
	defer f.Close()
	s := f.Section(".modinfo")
	if s == nil {
		return nil, fmt.Errorf("module %s has no .modinfo", file)
	}
	info, err := s.Data()
	if err != nil {
		return nil, fmt.Errorf("module %s: %w", file, err)
	}
	return needsOf(info), nil
}

// needsOf returns the dependencies in a section .modinfo, which consists of
// texts NAME=VALUE, each ended by a zero byte.
func needsOf(info []byte) (names []string) {
	for text := range bytes.SplitSeq(info, []byte{0}) {
		name, value, _ := strings.Cut(string(text), "=")
		switch name {
		case "depends":
			for n := range strings.SplitSeq(value, ",") {
				if n != "" {
					names = append(names, moduleName(n))
				}
			}
		case "softdep":
			if pre, ok := strings.CutPrefix(value, "pre:"); ok {
				pre, _, _ = strings.Cut(pre, "post:")
				for _, n := range strings.Fields(pre) {
					names = append(names, moduleName(n))
				}
			}
		}
	}
	return names
}
