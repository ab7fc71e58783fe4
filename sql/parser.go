package sql

import (
	"cmp"
	"context"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/account"
	"github.com/farmsql/farmsql/sql/change"
	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/routine"
)

var _ gms.Parser = parser{}

// A parser is go-mysql-server's parser, extended by what only MySQL's parser accepts. Its trees
// call our functions (functions.go) where go-mysql-server's differ from MySQL's.
type parser struct{ gms.MysqlParser }

// overrides makes go-mysql-server use our parser.
func overrides() (o gms.EngineOverrides) {
	o.Builder.Parser = parser{}
	return o
}

// ParseSimple implements gms.Parser.
func (p parser) ParseSimple(query string) (sqlparser.Statement, error) {
	return p.parseWhole(context.Background(), query, sqlparser.ParserOptions{})
}

// Parse implements gms.Parser.
func (p parser) Parse(ctx *gms.Context, query string, multi bool) (sqlparser.Statement, string, string, error) {
	return p.ParseWithOptions(ctx, query, ';', multi, gms.LoadSqlMode(ctx).ParserOptions())
}

// ParseWithOptions implements gms.Parser.
func (p parser) ParseWithOptions(ctx context.Context, query string, delimiter rune, multi bool, o sqlparser.ParserOptions) (sqlparser.Statement, string, string, error) {
	text := gms.RemoveSpaceAndDelimiter(compat.ResolveComments(query, o), delimiter)
	if !multi {
		stmt, err := p.parseWhole(ctx, text, o)
		return stmt, text, "", err
	}
	stmt, end, err := p.ParseOneWithOptions(ctx, text, o)
	if end <= 0 || end >= len(text) {
		return stmt, text, "", err
	}
	return stmt, gms.RemoveSpaceAndDelimiter(text[:end], delimiter), text[end:], err
}

// ParseOneWithOptions implements gms.Parser.
func (p parser) ParseOneWithOptions(ctx context.Context, query string, o sqlparser.ParserOptions) (sqlparser.Statement, int, error) {
	query = compat.ResolveComments(query, o)
	stmt, end, err := compat.ParseFirst(ctx, query, o)
	if deep := compat.TooDeep(err); deep != nil {
		return nil, end, deep
	}
	if wrong := compat.CheckFormat(query); wrong != nil {
		return nil, end, wrong
	}
	if err != nil {
		if wrong := compat.CheckQuantifiers(query, o); wrong != nil {
			return nil, end, wrong
		}
		text, found := mended(query, o)
		if !found {
			return stmt, end, cmp.Or(compat.CheckStatements(query), err)
		}
		// Report errors in the text that the client has written, not in the rewritten one.
		again, at, wrong := compat.ParseFirst(ctx, text, o)
		again = compat.AsDo(query, again, o)
		if wrong != nil || again == nil {
			return stmt, end, cmp.Or(compat.CheckStatements(query), err)
		}
		again, wrong = withKeys(query, again, o)
		if wrong != nil {
			return stmt, end, wrong
		}
		stmt, end = again, at-len(text)+len(query)
		bodyWithin(stmt, len(text)-len(query))
	}
	endWithin(stmt, len(strings.TrimRight(query[:min(end, len(query))], "; \t\r\n")))
	if err := check(query, stmt); err != nil {
		return nil, end, err
	}
	if err := refused(query, stmt); err != nil {
		return nil, end, err
	}
	if stmt, err = filteredShow(stmt); err != nil {
		return nil, end, err
	}
	if err := compat.NameWindows(query, stmt); err != nil {
		return nil, end, err
	}
	stmt = asChain(query, stmt, o)
	useOurs(query, stmt)
	placeView(ctx, stmt)
	return stmt, end, nil
}

// parseWhole parses a text that must be a single statement.
func (p parser) parseWhole(ctx context.Context, query string, o sqlparser.ParserOptions) (sqlparser.Statement, error) {
	query = compat.ResolveComments(query, o)
	stmt, err := compat.ParseWhole(ctx, query, o)
	if deep := compat.TooDeep(err); deep != nil {
		return nil, deep
	}
	if wrong := compat.CheckFormat(query); wrong != nil {
		return nil, wrong
	}
	if err != nil {
		if wrong := compat.CheckQuantifiers(query, o); wrong != nil {
			return nil, wrong
		}
		text, found := mended(query, o)
		if !found {
			return stmt, cmp.Or(compat.CheckStatements(query), err)
		}
		again, wrong := compat.ParseWhole(ctx, text, o)
		again = compat.AsDo(query, again, o)
		if wrong != nil || again == nil {
			return stmt, cmp.Or(compat.CheckStatements(query), err)
		}
		again, wrong = withKeys(query, again, o)
		if wrong != nil {
			return stmt, wrong
		}
		stmt = again
		bodyWithin(stmt, len(text)-len(query))
	}
	if err := check(query, stmt); err != nil {
		return nil, err
	}
	if err := refused(query, stmt); err != nil {
		return nil, err
	}
	if stmt, err = filteredShow(stmt); err != nil {
		return nil, err
	}
	if err := compat.NameWindows(query, stmt); err != nil {
		return nil, err
	}
	stmt = asChain(query, stmt, o)
	useOurs(query, stmt)
	placeView(ctx, stmt)
	spareView(ctx, query, stmt)
	return stmt, nil
}

// mended rewrites syntax that the parser does not know into syntax that it knows. It returns false
// if there is nothing to rewrite.
func mended(query string, o sqlparser.ParserOptions) (string, bool) {
	text, isExplain := compat.KnownToParser(query)
	text, isRespelled := compat.Respell(text, o)
	return text, isExplain || isRespelled
}

// bodyWithin moves the end of a trigger's body, or a view's, back by the length that the rewritten
// text has gained.
func bodyWithin(stmt sqlparser.Statement, longer int) {
	if d, ok := stmt.(*sqlparser.DDL); ok && (d.TriggerSpec != nil || d.ViewSpec != nil) {
		d.SubStatementPositionEnd -= longer
	}
}

// endWithin moves the end of the body of a procedure, trigger, event or view before the end of the
// statement: if another statement follows, the parser counts the semicolon as part of the body.
func endWithin(stmt sqlparser.Statement, length int) {
	if d, ok := stmt.(*sqlparser.DDL); ok && d.SubStatementPositionEnd > length {
		d.SubStatementPositionEnd = length
	}
}

// check refuses statements that go-mysql-server cannot plan, or would plan wrongly.
func check(query string, stmt sqlparser.Statement) error {
	if err := compat.CheckNesting(query, stmt); err != nil {
		return err
	}
	if err := compat.CheckBody(stmt); err != nil {
		return err
	}
	compat.DropQuick(stmt) // before CheckTargets, which would take QUICK for a target
	if err := compat.CheckTargets(stmt); err != nil {
		return err
	}
	if err := compat.CheckPrimaryKeys(stmt); err != nil {
		return err
	}
	if err := compat.CheckNames(query, stmt); err != nil {
		return err
	}
	if err := compat.CheckConversions(query, stmt); err != nil {
		return err
	}
	if err := compat.CheckJoins(query, stmt); err != nil {
		return err
	}
	if err := compat.CheckPrecisions(query, stmt); err != nil {
		return err
	}
	if err := compat.CheckInvisible(query, stmt); err != nil {
		return err
	}
	if err := compat.CheckUnionOrders(query, stmt); err != nil {
		return err
	}
	return compat.CheckDefaults(query, stmt)
}

// useOurs makes a syntax tree call our functions wherever go-mysql-server's differ from
// MySQL's.
func useOurs(query string, stmt sqlparser.Statement) {
	if e, ok := stmt.(*sqlparser.Explain); ok {
		compat.AsFormat(e)
		useOurs(query, e.Statement)
		return
	}
	account.Note(stmt)
	change.Note(stmt)
	compat.NameWiths(query, stmt)
	compat.RenameLast(stmt)
	keepDatabases(stmt)
	bareSubqueries(query, stmt)
	compat.SetNames(query, stmt)
	compat.WithBinaryCollations(stmt)
	compat.WithTimeDigits(query, stmt)
	if d, ok := stmt.(*sqlparser.DDL); ok && d.ProcedureSpec != nil && d.ProcedureSpec.Body != nil {
		d.ProcedureSpec.Body = routine.Prepare(d.ProcedureSpec.Body, func(s sqlparser.Statement) { useOurs(query, s) })
		return
	}
	compat.CallOurs(query, stmt)
}
