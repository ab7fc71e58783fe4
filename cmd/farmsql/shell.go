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
	"strings"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/term"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

type sqlCommand struct {
	Address  string   `placeholder:"HOST:PORT" xor:"where" help:"Server to connect to (127.0.0.1:3306). TLS is used if the server has it."`
	TLSCA    string   `name:"tls-ca" xor:"authority" placeholder:"FILE" help:"With --address: certificates of authorities; the server must use TLS and show a certificate by one of them."`
	Data     string   `placeholder:"FOLDER" xor:"where,authority" help:"Open this folder in this process instead of connecting to a server."`
	Saves    string   `placeholder:"FOLDER" help:"With --data: see farmsql serve."`
	Trust    bool     `help:"With --data: see farmsql serve."`
	User     string   `short:"u" default:"root" placeholder:"NAME" help:"User (${default})."`
	Password string   `short:"p" env:"FARMSQL_PASSWORD" placeholder:"TEXT" help:"Password; better given in the environment."`
	Database string   `short:"D" placeholder:"NAME" help:"Database to use."`
	Execute  []string `short:"e" sep:"none" placeholder:"SQL" help:"Run this and exit; may be repeated."`
	Format   string   `default:"auto" enum:"auto,table,tsv" placeholder:"FORMAT" help:"How rows are printed: table, tsv, or auto: a table on a terminal and tsv elsewhere (${default})."`
	Force    bool     `short:"f" help:"Go on after an error."`
}

// Help is shown by sql --help.
func (sqlCommand) Help() string {
	return durability + `

Statements end with ; or, to print one column per line, with \G. On a terminal: exit or Ctrl-D
leaves, \h helps, Ctrl-C stops the statement, the arrow keys recall earlier lines. Otherwise
statements are read from standard input until it ends.`
}

// Run connects, and executes the statements of its arguments or input.
func (s *sqlCommand) Run(std cli.Streams) error {
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
	cfg.TLSConfig = "preferred"
	if s.TLSCA != "" {
		tls, err := authorities(s.TLSCA)
		if err != nil {
			return nil, nil, err
		}
		cfg.TLS = tls
	}
	c, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, nil, cli.UsageError(err.Error())
	}
	db := stdsql.OpenDB(c)
	return db, db.Close, nil
}

// session runs everything on one connection, so that transactions and variables
// last from statement to statement.
func (s *sqlCommand) session(db *stdsql.DB, std cli.Streams) error {
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
	sh := &shell{conn: c, out: std.Out, err: std.Err, table: s.Format == "table", force: s.Force}
	if s.Format == "auto" {
		sh.table = isTerminal(std.Out)
	}
	if len(s.Execute) > 0 {
		return sh.script(ctx, strings.NewReader(strings.Join(s.Execute, ";\n")))
	}
	if isTerminal(std.In) && isTerminal(std.Out) {
		return sh.interactive(ctx, db, std)
	}
	return sh.script(ctx, std.In)
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

// A shell runs statements on one connection and prints their results.
type shell struct {
	conn     *stdsql.Conn
	out, err io.Writer
	table    bool // print tables instead of tab-separated values
	talk     bool // report each statement's outcome, for a person
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
			return cli.ErrReported
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
		return cli.ErrReported
	}
	return nil
}

// errorCode returns " 1064 (42000)", for example, for an error that the server
// sent.
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
