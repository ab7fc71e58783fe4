package nvram

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FormatVersion is the format of folders and saves that this program writes. The program cannot
// read newer ones.
const FormatVersion = 1

const (
	manifestName = "FARMSQL"
	manifestHead = "farmsql nvram folder"
)

// state is a folder's state, which determines whether its memory is whole.
type state string

const (
	// stateOpen: in use, or its process was killed. The memory is whole as long as the computer has
	// not been started again, and only in its original place.
	stateOpen state = "open"
	// stateClean: closed, and everything has reached the device.
	stateClean state = "clean"
	// stateRestoring: a restore was begun and has not been completed.
	stateRestoring state = "restoring"
)

// manifest is the file that makes a directory a folder.
type manifest struct {
	state state
	boot  string // id of the boot in which the state was written
	// place is the place where the folder is in use; see stateOpen. Program versions that do not
	// know places ignore it.
	place place
}

func (m manifest) encode() []byte {
	b := fmt.Appendf(nil, "%s\nformat %d\nstate %s\nboot %s\n", manifestHead, FormatVersion, m.state, m.boot)
	if m.place != "" {
		b = fmt.Appendf(b, "lock %s\n", m.place)
	}
	return b
}

func decodeManifest(b []byte) (manifest, error) {
	head, rest, _ := strings.Cut(string(b), "\n")
	if head != manifestHead {
		return manifest{}, fmt.Errorf("%w: not a farmsql folder", ErrFormat)
	}
	fields := map[string]string{}
	for line := range strings.Lines(rest) {
		key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		fields[key] = value
	}
	format, err := strconv.ParseUint(fields["format"], 10, 32)
	if err != nil || format == 0 {
		return manifest{}, fmt.Errorf("%w: manifest without a format", ErrFormat)
	}
	if format > FormatVersion {
		return manifest{}, fmt.Errorf("%w: format %d was written by a newer farmsql; this one knows %d", ErrFormat, format, FormatVersion)
	}
	m := manifest{state(fields["state"]), fields["boot"], place(fields["lock"])}
	isKnown := m.state == stateOpen || m.state == stateClean || m.state == stateRestoring
	if !isKnown || m.boot == "" {
		return manifest{}, fmt.Errorf("%w: manifest is damaged", ErrFormat)
	}
	return m, nil
}

// readManifest returns the manifest of the folder at path. ok is false if there is none.
func readManifest(path string) (m manifest, ok bool, err error) {
	b, err := os.ReadFile(filepath.Join(path, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return manifest{}, false, nil
	}
	if err != nil {
		return manifest{}, false, fmt.Errorf("nvram: %w", err)
	}
	m, err = decodeManifest(b)
	if err != nil {
		return manifest{}, true, fmt.Errorf("%s: %w", path, err)
	}
	return m, true, nil
}

// writeManifest makes m the manifest of the folder at path, durably.
func writeManifest(path string, m manifest) error {
	return ReplaceFile(filepath.Join(path, manifestName), ".next", m.encode())
}

// syncDir makes the entries of a directory durable.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// bootID returns an identifier that changes with each start of the kernel.
func bootID() (string, error) {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", fmt.Errorf("nvram: id of this boot: %w", err)
	}
	return strings.TrimSpace(string(b)), nil
}
