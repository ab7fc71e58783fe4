package routine

import (
	"regexp"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// This file runs procedures with the rights of their definer, as MySQL does, unless a
// procedure says SQL SECURITY INVOKER. With the caller's rights, anyone who may write a
// procedure, or a trigger that calls one, could use the rights of every user who runs it.
// go-mysql-server uses the session's rights.

// createWord matches the beginning of a definition; DEFINER follows it.
var createWord = regexp.MustCompile(`(?is)^(?:\s|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n)*create\b`)

// WithDefiner returns the text of CREATE PROCEDURE with a definer, which is the session's
// account if the text names none. Dumps take the definer from this text. Without accounts the
// text stays as it is.
func (r *Runner) WithDefiner(ctx *gms.Context, text string) (string, error) {
	own := r.accountOf(ctx.Client())
	if own == "" {
		return text, nil
	}
	n, err := r.parse(ctx, text, gms.LoadSqlMode(ctx).String())
	if err != nil {
		return "", err
	}
	switch n.Definer {
	case own:
		return text, nil
	case "":
		at := createWord.FindStringIndex(text)
		if at == nil {
			return "", myerr.NotSupported("'CREATE PROCEDURE' in such a comment")
		}
		return text[:at[1]] + " DEFINER=" + own + text[at[1]:], nil
	}
	if !r.gms.Analyzer.Catalog.MySQLDb.UserHasPrivileges(ctx, gms.NewPrivilegedOperation(gms.PrivilegeCheckSubject{}, gms.PrivilegeType_Super)) {
		return "", myerr.AccessDenied.New("SUPER or SET_USER_ID")
	}
	return text, nil
}

// accountOf returns the account by which a client has logged in, in the form of a DEFINER. It
// is empty if accounts are off, or the client's account has been dropped.
func (r *Runner) accountOf(c gms.Client) string {
	db := r.gms.Analyzer.Catalog.MySQLDb
	if !r.hasAccounts || !db.Enabled() {
		return ""
	}
	rd := db.Reader()
	defer rd.Close()
	u := db.GetUser(rd, c.User, c.Address, false)
	if u == nil {
		return ""
	}
	return sqlparser.AccountName{Name: u.User, Host: u.Host}.String()
}

// parse parses a CREATE PROCEDURE in an SQL mode.
func (r *Runner) parse(ctx *gms.Context, text, mode string) (*sqlparser.ProcedureSpec, error) {
	stmt, _, _, err := r.gms.Parser.ParseWithOptions(ctx, text, ';', false, gms.NewSqlModeFromString(mode).ParserOptions())
	if err != nil {
		return nil, err
	}
	return stmt.(*sqlparser.DDL).ProcedureSpec, nil
}

// become gives the session the rights of a procedure's definer until restore is called. A
// procedure without a definer was created without accounts, and runs with the caller's
// rights.
func (r *Runner) become(s gms.Session, n *sqlparser.ProcedureSpec) (restore func(), err error) {
	for _, c := range n.Characteristics {
		if c.Type == sqlparser.CharacteristicValue_SqlSecurityInvoker {
			return func() {}, nil
		}
	}
	caller := s.Client()
	if n.Definer == "" || n.Definer == r.accountOf(caller) || !r.gms.Analyzer.Catalog.MySQLDb.Enabled() {
		return func() {}, nil
	}
	user, host := splitAccount(n.Definer)
	rd := r.gms.Analyzer.Catalog.MySQLDb.Reader()
	_, ok := rd.GetUser(mysql_db.UserPrimaryKey{User: user, Host: host})
	rd.Close()
	if !ok {
		return nil, myerr.NoSuchDefiner.New(user, host)
	}
	definer := caller
	definer.User, definer.Address = user, host
	actAs(s, definer)
	return func() { actAs(s, caller) }, nil
}

// actAs makes a session act as client c, and drops its cached privileges.
func actAs(s gms.Session, c gms.Client) {
	s.SetClient(c)
	s.SetPrivilegeSet(nil, 0)
}

// splitAccount splits an account's name, as sqlparser writes it, into user and host.
func splitAccount(account string) (user, host string) {
	at := strings.LastIndex(account, "`@`") // a host's name does not contain these characters
	unquoted := func(s string) string { return strings.ReplaceAll(s, "``", "`") }
	return unquoted(account[1:at]), unquoted(account[at+len("`@`") : len(account)-1])
}
