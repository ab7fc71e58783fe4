// Package host reads what Linux says, in /proc and /sys, about the computer and about this process.
package host

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Root is the folder in which /proc and /sys are. Tests give one with files of their own.
type Root string

// System is the Root of this computer.
const System Root = "/"

// Path returns the path, under r, of the file that Linux has at path.
func (r Root) Path(path string) string { return filepath.Join(string(r), path) }

// Text returns what is in a file, without white space around it.
func (r Root) Text(path string) (string, error) {
	b, err := os.ReadFile(r.Path(path))
	return strings.TrimSpace(string(b)), err
}

// Number reads a file that holds one number. It fails if the file holds a word, such as "max".
func (r Root) Number(path string) (int64, error) {
	text, err := r.Text(path)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(text, 10, 64)
}

// Field returns the value in a file's line "name: value"; "" if there is none.
func (r Root) Field(path, name string) string {
	text, _ := r.Text(path) // a file that cannot be read has no lines
	for line := range strings.Lines(text) {
		if key, value, found := strings.Cut(line, ":"); found && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Bytes returns the size in a file's line "name: 123 kB"; 0 if there is none.
func (r Root) Bytes(path, name string) int64 {
	number, isSize := strings.CutSuffix(r.Field(path, name), " kB")
	n, err := strconv.ParseInt(number, 10, 64)
	if !isSize || err != nil {
		return 0
	}
	return n << 10
}
