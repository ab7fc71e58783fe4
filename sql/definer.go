package sql

import (
	"regexp"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/mysql_db"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/myerr"
)

// This file has procedures run with the rights of their definer, as in MySQL, where a body
// does not say SQL SECURITY INVOKER: with those of who calls, whoever may write a
// procedure, or a trigger that calls one, could do all that others may who come by.
// go-mysql-server runs all with the rights of the session.

// createWord is what a definition begins with; a DEFINER follows it.
var createWord = regexp.MustCompile(`(?is)^(?:\s|/\*.*?\*/|--[^\n]*\n|#[^\n]*\n)*create\b`)

// withDefiner returns the text of CREATE PROCEDURE with a definer in it, which is the
// session's account if the text names none. Dumps have it from there. The text stays as it is
// without accounts.
func (e *Engine) withDefiner(ctx *gms.Context, text string) (string, error) {
	own := e.accountOf(ctx.Client())
	if own == "" {
		return text, nil
	}
	n, err := e.procedureOf(ctx, text, gms.LoadSqlMode(ctx).String())
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
	if !e.may(ctx, gms.NewPrivilegedOperation(gms.PrivilegeCheckSubject{}, gms.PrivilegeType_Super)) {
		return "", denied("SUPER or SET_USER_ID")
	}
	return text, nil
}

// accountOf returns the account by which a client has logged in, as a DEFINER names it. It is
// empty if accounts are off, or the client's is gone.
func (e *Engine) accountOf(c gms.Client) string {
	db := e.gms.Analyzer.Catalog.MySQLDb
	if e.opt.Accounts == nil || !db.Enabled() {
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

// procedureOf parses a CREATE PROCEDURE.
func (e *Engine) procedureOf(ctx *gms.Context, text, mode string) (*sqlparser.ProcedureSpec, error) {
	stmt, _, _, err := e.gms.Parser.ParseWithOptions(ctx, text, ';', false, gms.NewSqlModeFromString(mode).ParserOptions())
	if err != nil {
		return nil, err
	}
	return stmt.(*sqlparser.DDL).ProcedureSpec, nil
}

// become gives the session the rights of the definer of a procedure until restore is called.
// A procedure without a definer was made without accounts, and has the rights of who calls.
func (e *Engine) become(s *Session, n *sqlparser.ProcedureSpec) (restore func(), err error) {
	for _, c := range n.Characteristics {
		if c.Type == sqlparser.CharacteristicValue_SqlSecurityInvoker {
			return func() {}, nil
		}
	}
	caller := s.Client()
	if n.Definer == "" || n.Definer == e.accountOf(caller) || !e.gms.Analyzer.Catalog.MySQLDb.Enabled() {
		return func() {}, nil
	}
	user, host := splitAccount(n.Definer)
	rd := e.gms.Analyzer.Catalog.MySQLDb.Reader()
	_, ok := rd.GetUser(mysql_db.UserPrimaryKey{User: user, Host: host})
	rd.Close()
	if !ok {
		return nil, myerr.NoSuchDefiner.New(user, host)
	}
	definer := caller
	definer.User, definer.Address = user, host
	s.actAs(definer)
	return func() { s.actAs(caller) }, nil
}

// actAs gives the session another client, whose rights are looked up anew.
func (s *Session) actAs(c gms.Client) {
	s.SetClient(c)
	s.SetPrivilegeSet(nil, 0)
}

// splitAccount takes an account's name apart that sqlparser has put together.
func splitAccount(account string) (user, host string) {
	at := strings.LastIndex(account, "`@`") // a host has no such characters
	unquoted := func(s string) string { return strings.ReplaceAll(s, "``", "`") }
	return unquoted(account[1:at]), unquoted(account[at+len("`@`") : len(account)-1])
}
