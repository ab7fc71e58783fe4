package main

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/term"
)

// history is the shell's list of past lines, kept in a file between sessions. Errors of reading and
// writing the file are ignored.
type history struct {
	lines []string // oldest first
	path  string   // the file of the history; empty if the history is not kept
}

var _ term.History = (*history)(nil)

const historyLinesMax = 1000

// loadHistory reads the history file. A history that cannot be read is empty.
func loadHistory() *history {
	h := &history{}
	if home, err := os.UserHomeDir(); err == nil {
		h.path = filepath.Join(home, ".farmsql_history")
	}
	f, err := os.Open(h.path)
	if err != nil {
		return h
	}
	defer f.Close()
	for scan := bufio.NewScanner(f); scan.Scan(); {
		h.remember(scan.Text())
	}
	return h
}

func (h *history) remember(line string) {
	h.lines = append(h.lines, line)
	if len(h.lines) > historyLinesMax {
		h.lines = h.lines[1:]
	}
}

// Add implements term.History. Lines that set a password are not kept.
func (h *history) Add(line string) {
	if strings.TrimSpace(line) == "" || strings.Contains(strings.ToLower(line), "identified by") {
		return
	}
	h.remember(line)
	if h.path == "" {
		return
	}
	f, err := os.OpenFile(h.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return
	}
	_, _ = f.WriteString(line + "\n")
	_ = f.Close()
}

// Len implements term.History.
func (h *history) Len() int { return len(h.lines) }

// At implements term.History: 0 is the newest line.
func (h *history) At(i int) string { return h.lines[len(h.lines)-1-i] }
