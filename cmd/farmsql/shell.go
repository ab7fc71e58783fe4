package main

import (
	"bufio"
	"context"
	stdsql "database/sql"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/term"

	"github.com/farmsql/farmsql"
)

type sqlCommand struct {
	Address  string   `placeholder:"HOST:PORT" xor:"where" help:"Server to connect to (127.0.0.1:3306)."`
	Data     string   `placeholder:"FOLDER" xor:"where" help:"Open this folder in this process instead of connecting to a server."`
	Saves    string   `placeholder:"FOLDER" help:"With --data: see farmsql serve."`
	Trust    bool     `help:"With --data: see farmsql serve."`
	User     string   `short:"u" default:"root" help:"User (${default})."`
	Password string   `short:"p" env:"FARMSQL_PASSWORD" placeholder:"TEXT" help:"Password; better given in the environment."`
	Database string   `short:"D" placeholder:"NAME" help:"Database to use."`
	Execute  []string `short:"e" sep:"none" placeholder:"SQL" help:"Run this and exit; may be repeated."`
	Format   string   `default:"auto" enum:"auto,table,tsv" help:"How rows are printed: table, tsv, or auto, which is a table on a terminal (${default})."`
	Force    bool     `short:"f" help:"Go on after an error."`
}

// Help is shown by sql --help.
func (sqlCommand) Help() string {
	return durability + `

Statements end with ; or, to print one column per line, with \G. On a terminal: \q leaves,
\h helps, the arrow keys recall earlier lines. Otherwise statements are read from standard
input until it ends.`
}

// Run connects and executes what it is given.
func (s *sqlCommand) Run(std streams) error {
	db, closeDB, err := s.open()
	if err != nil {
		return err
	}
	return errors.Join(s.session(db, std), closeDB())
}

// open connects to the server, or opens the folder.
func (s *sqlCommand) open() (*stdsql.DB, func() error, error) {
	if s.Data != "" {
		db, err := farmsql.Open(farmsql.Config{Folder: s.Data, Saves: s.Saves, Trust: s.Trust})
		if err != nil {
			return nil, nil, err
		}
		return db.SQL(), db.Close, nil
	}
	if s.Address == "" {
		s.Address = "127.0.0.1:3306"
	}
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd = "tcp", s.Address, s.User, s.Password
	cfg.Logger = &mysql.NopLogger{}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, nil, usageError(err.Error())
	}
	db := stdsql.OpenDB(c)
	return db, db.Close, nil
}

// session runs everything on one connection, so that transactions and variables
// last from statement to statement.
func (s *sqlCommand) session(db *stdsql.DB, std streams) error {
	ctx := context.Background()
	c, err := db.Conn(ctx)
	if err != nil {
		return s.connectError(err)
	}
	defer c.Close()
	if s.Database != "" {
		if _, err := c.ExecContext(ctx, "use `"+strings.ReplaceAll(s.Database, "`", "``")+"`"); err != nil {
			return err
		}
	}
	sh := &shell{conn: c, out: std.out, err: std.err, table: s.Format == "table", force: s.Force}
	if s.Format == "auto" {
		sh.table = isTerminal(std.out)
	}
	if len(s.Execute) > 0 {
		return sh.script(ctx, strings.NewReader(strings.Join(s.Execute, ";\n")))
	}
	if isTerminal(std.in) && isTerminal(std.out) {
		return sh.interactive(ctx, std)
	}
	return sh.script(ctx, std.in)
}

func (s *sqlCommand) connectError(err error) error {
	var netErr *net.OpError
	if errors.As(err, &netErr) {
		return fmt.Errorf("cannot connect to %s: %v (start one with farmsql serve, or open a folder with --data)", s.Address, netErr.Err)
	}
	return err
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// A shell runs statements on one connection and prints what comes back.
type shell struct {
	conn     *stdsql.Conn
	out, err io.Writer
	table    bool // print tables, not tab separated values
	talk     bool // say how each statement went, as for a person
	force    bool // go on after an error
}

// script runs all statements of r and stops at the first error, unless forced.
func (sh *shell) script(ctx context.Context, r io.Reader) error {
	lines := bufio.NewReader(r)
	split := newSplitter()
	failed := false
	run := func(commands []command) bool {
		for _, c := range commands {
			if err := sh.run(ctx, c); err != nil {
				fmt.Fprintf(sh.err, "ERROR%s at line %d: %s\n", errorCode(err), c.line, errorText(err))
				failed = true
				if !sh.force {
					return false
				}
			}
		}
		return true
	}
	for {
		line, err := lines.ReadString('\n')
		if line != "" && !run(split.add(strings.TrimRight(line, "\r\n"))) {
			return errReported
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("reading statements: %w", err)
		}
	}
	run(split.flush())
	if failed {
		return errReported
	}
	return nil
}

const (
	promptFirst = "farmsql> "
	promptMore  = "      -> "

	shellHelp = `Statements end with ; or \G (one column per line).
\q  leave          \c  clear the statement begun
\h  this help      delimiter //  change what ends a statement
`
)

// interactive reads statements from a terminal until \q or Ctrl-D.
func (sh *shell) interactive(ctx context.Context, std streams) error {
	sh.talk = true
	fd := int(std.in.(*os.File).Fd())
	saved, err := term.MakeRaw(fd)
	if err != nil {
		return fmt.Errorf("terminal: %w", err)
	}
	defer term.Restore(fd, saved)
	t := term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{std.in, std.out}, promptFirst)
	t.History = loadHistory()
	if w, h, err := term.GetSize(fd); err == nil {
		_ = t.SetSize(w, h) // only fails for sizes below zero
	}
	sh.out, sh.err = t, t
	fmt.Fprintf(t, "Connected. \\h for help, \\q to leave.\n")
	split := newSplitter()
	for {
		t.SetPrompt(promptFirst)
		if split.pending() {
			t.SetPrompt(promptMore)
		}
		line, err := t.ReadLine()
		if err == io.EOF {
			fmt.Fprintln(t)
			return nil
		}
		if err != nil && !errors.Is(err, term.ErrPasteIndicator) {
			return fmt.Errorf("terminal: %w", err)
		}
		if sh.backslash(line, split) {
			if strings.TrimSpace(line) == `\q` {
				return nil
			}
			continue
		}
		sh.each(ctx, split.add(line), fd, saved)
	}
}

// each runs commands with the terminal in its usual mode, so that Ctrl-C
// cancels the statement.
func (sh *shell) each(ctx context.Context, commands []command, fd int, saved *term.State) {
	for _, c := range commands {
		raw, err := term.GetState(fd)
		if err != nil {
			raw = nil
		}
		_ = term.Restore(fd, saved)
		running, stop := signal.NotifyContext(ctx, os.Interrupt)
		err = sh.run(running, c)
		stop()
		if raw != nil {
			_ = term.Restore(fd, raw)
		}
		if err != nil {
			fmt.Fprintf(sh.err, "ERROR%s: %s\n", errorCode(err), errorText(err))
		}
	}
}

// backslash handles the commands of the shell itself.
func (sh *shell) backslash(line string, split *splitter) bool {
	switch strings.TrimSpace(line) {
	case `\q`:
	case `\h`, `\?`, "help", "help;":
		fmt.Fprint(sh.out, shellHelp)
	case `\c`:
		split.reset()
	case "quit", "exit", "quit;", "exit;":
		if split.pending() {
			return false
		}
		fmt.Fprintln(sh.out, `\q leaves.`)
	default:
		return false
	}
	return true
}

// errorCode is " 1064 (42000)" for an error that the server sent.
func errorCode(err error) string {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return ""
	}
	return fmt.Sprintf(" %d (%s)", e.Number, e.SQLState[:])
}

func errorText(err error) string {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}
