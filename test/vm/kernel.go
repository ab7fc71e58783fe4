package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// A kernel is an unpacked kernel package.
type kernel struct {
	image   string            // vmlinuz
	modules map[string]string // files, by the module's name with underscores
}

var errModules = errors.New("the kernel has no modules as Debian 12's has, *.ko")

// findKernel returns the kernel in a folder. If dir is "", it returns Debian's kernel, and
// downloads it unless the user's cache has it.
func findKernel(dir string) (*kernel, error) {
	if dir == "" {
		var err error
		if dir, err = download(); err != nil {
			return nil, err
		}
	}
	images, err := filepath.Glob(dir + "/boot/vmlinuz-*")
	if err != nil || len(images) != 1 {
		return nil, fmt.Errorf("%s has %d files boot/vmlinuz-*, want 1", dir, len(images))
	}
	k := &kernel{image: images[0], modules: map[string]string{}}
	err = filepath.WalkDir(dir+"/lib/modules", func(path string, _ os.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(filepath.Base(path), ".ko"); ok {
			k.modules[moduleName(name)] = path
		}
		return err
	})
	if err == nil && len(k.modules) == 0 {
		err = errModules
	}
	return k, err
}

// download fetches the kernel that linux-image-amd64 stands for, once.
func download() (dir string, err error) {
	said, err := command("apt-cache", "depends", "linux-image-amd64")
	if err != nil {
		return "", fmt.Errorf("finding Debian's kernel: %w", err)
	}
	found := regexp.MustCompile(`Depends: (linux-image-\S+)`).FindSubmatch(said)
	if found == nil {
		return "", fmt.Errorf("apt-cache names no kernel that linux-image-amd64 depends on: apt-get update?")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "farmsql", "vm", string(found[1]))
	if _, err := os.Stat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return "", err
	}
	partial, err := os.MkdirTemp(filepath.Dir(dir), "partial-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(partial)
	if _, err := commandIn(partial, "apt-get", "-q", "-o", "APT::Sandbox::User=", "download", string(found[1])); err != nil {
		return "", fmt.Errorf("downloading %s: %w", found[1], err)
	}
	packages, err := filepath.Glob(partial + "/*.deb")
	if err != nil || len(packages) != 1 {
		return "", fmt.Errorf("apt-get has downloaded %d packages", len(packages))
	}
	if _, err := command("dpkg", "-x", packages[0], partial+"/root"); err != nil {
		return "", fmt.Errorf("unpacking %s: %w", found[1], err)
	}
	if err := os.Rename(partial+"/root", dir); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	return dir, nil
}

// command runs a program and returns its output. The error contains what the program wrote to standard error.
func command(name string, args ...string) ([]byte, error) { return commandIn("", name, args...) }

func commandIn(dir, name string, args ...string) ([]byte, error) {
	c := exec.Command(name, args...)
	c.Dir = dir
	var complaint bytes.Buffer
	c.Stderr = &complaint
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", name, err, bytes.TrimSpace(complaint.Bytes()))
	}
	return out, nil
}
