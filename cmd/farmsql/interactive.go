package main

import (
	"bytes"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/term"

	"github.com/farmsql/farmsql/internal/cli"
)

const (
	promptFirst = "farmsql> "
	promptMore  = "      -> "

	shellHelp = `Statements end with ; or \G (one column per line).
exit, \q, Ctrl-D  leave          \c, Ctrl-C     forget the statement begun
\h                this help      Ctrl-C         stop the statement running
delimiter //      change what ends a statement
`
)

// interactive reads statements from a terminal until exit or Ctrl-D. A running
// statement is cancelled over another connection of db.
func (sh *shell) interactive(ctx context.Context, db *stdsql.DB, std cli.Streams) error {
	sh.talk = true
	var id uint64
	if err := sh.conn.QueryRowContext(ctx, "select connection_id()").Scan(&id); err != nil {
		return err
	}
	stop := func() error {
		_, err := db.ExecContext(ctx, fmt.Sprintf("kill query %d", id))
		return err
	}
	fd := int(std.In.(*os.File).Fd())
	cooked, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer term.Restore(fd, cooked)
	e := newEditor(std, fd)
	fmt.Fprint(std.Out, "Connected. \\h for help, exit to leave.\r\n")
	split := newSplitter()
	for {
		line, err := e.read(split.pending())
		switch {
		case errors.Is(err, errInterrupted):
			split.reset()
			continue
		case err == io.EOF:
			fmt.Fprint(std.Out, "\r\n")
			return nil
		case err != nil:
			return fmt.Errorf("terminal: %w", err)
		}
		sh.out, sh.err = e.terminal, e.terminal
		done, leave := sh.ownCommand(line, split)
		if leave {
			return nil
		}
		if done {
			continue
		}
		for _, c := range split.add(line) {
			sh.runCooked(ctx, c, fd, cooked, stop)
		}
	}
}

// runCooked runs a command with the terminal in its usual mode, in which Ctrl-C sends a signal;
// runCooked then cancels the statement. It catches the signal from before the mode changes until the
// mode has changed back, because an uncaught signal would end the process.
func (sh *shell) runCooked(ctx context.Context, c command, fd int, cooked *term.State, stop func() error) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	if raw, err := term.GetState(fd); err == nil {
		_ = term.Restore(fd, cooked)
		defer term.Restore(fd, raw)
	}
	finished := make(chan error, 1)
	go func() { finished <- sh.run(ctx, c) }()
	for {
		select {
		case <-interrupts:
			if err := stop(); err != nil {
				fmt.Fprintf(sh.err, "cannot stop it: %s\n", errorText(err))
			}
		case err := <-finished:
			if err != nil {
				fmt.Fprintf(sh.err, "ERROR%s: %s\n", errorCode(err), errorText(err))
			}
			return
		}
	}
}

// ownCommand handles a line that is a command for the shell itself. done is false if the line is part
// of a statement; leave says that the shell should exit.
func (sh *shell) ownCommand(line string, split *splitter) (done, leave bool) {
	word := strings.TrimSpace(line)
	switch word {
	case `\q`:
		return true, true
	case `\c`:
		split.reset()
		return true, false
	case `\h`, `\?`:
		fmt.Fprint(sh.out, shellHelp)
		return true, false
	}
	if split.pending() {
		return false, false // exit, quit and help are parts of the statement
	}
	switch strings.ToLower(strings.TrimSuffix(word, ";")) {
	case "exit", "quit":
		return true, true
	case "help":
		fmt.Fprint(sh.out, shellHelp)
		return true, false
	}
	return false, false
}

// errInterrupted means that Ctrl-C was typed in place of a line.
var errInterrupted = errors.New("interrupted")

// An editor reads lines from a terminal in raw mode.
type editor struct {
	fd       int
	keys     *keyboard
	out      io.Writer
	history  *history
	terminal *term.Terminal
}

func newEditor(std cli.Streams, fd int) *editor {
	e := &editor{fd: fd, keys: &keyboard{in: std.In}, out: std.Out, history: loadHistory()}
	e.reset()
	return e
}

// reset drops what has been typed of the present line.
func (e *editor) reset() {
	e.terminal = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e.keys, e.out}, promptFirst)
	e.terminal.History = e.history
}

// read returns the next line; io.EOF after Ctrl-D; errInterrupted after Ctrl-C.
func (e *editor) read(more bool) (string, error) {
	if w, h, err := term.GetSize(e.fd); err == nil && w > 0 && h > 0 { // a size of 0 is unknown
		_ = e.terminal.SetSize(w, h) // only fails for sizes below zero
	}
	e.terminal.SetPrompt(promptFirst)
	if more {
		e.terminal.SetPrompt(promptMore)
	}
	line, err := e.terminal.ReadLine()
	switch {
	case err == io.EOF && e.keys.interrupted: // x/term also ends the input at Ctrl-C
		fmt.Fprint(e.out, "^C\r\n")
		e.reset()
		return "", errInterrupted
	case errors.Is(err, term.ErrPasteIndicator): // the line was pasted; it is treated like any other
		return line, nil
	}
	return line, err
}

// A keyboard is a terminal's input that records whether the last Read ended with
// Ctrl-C. Read returns nothing beyond a Ctrl-C, because resetting the editor would
// lose it.
type keyboard struct {
	in          io.Reader
	buffer      [256]byte
	typed       []byte // part of buffer that Read has not returned
	interrupted bool
}

const keyInterrupt = 3 // Ctrl-C, which raw mode delivers as a byte

func (k *keyboard) Read(p []byte) (int, error) {
	if len(k.typed) == 0 {
		n, err := k.in.Read(k.buffer[:])
		if n == 0 {
			return 0, err
		}
		k.typed = k.buffer[:n]
	}
	part := k.typed
	if i := bytes.IndexByte(part, keyInterrupt); i >= 0 {
		part = part[:i+1]
	}
	n := copy(p, part)
	k.typed = k.typed[n:]
	k.interrupted = n > 0 && p[n-1] == keyInterrupt
	return n, nil
}
