package sql

import (
	"bytes"
	"cmp"
	"context"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"
)

var _ gms.Parser = parser{}

// A parser is go-mysql-server's, made to take what MySQL's does besides, and to
// ask for our functions (functions.go) where its own are not MySQL's.
type parser struct{ gms.MysqlParser }

// overrides makes go-mysql-server use our parser.
func overrides() (o gms.EngineOverrides) {
	o.Builder.Parser = parser{}
	return o
}

// ParseSimple implements gms.Parser.
func (p parser) ParseSimple(query string) (sqlparser.Statement, error) {
	return p.whole(context.Background(), query, sqlparser.ParserOptions{})
}

// Parse implements gms.Parser.
func (p parser) Parse(ctx *gms.Context, query string, multi bool) (sqlparser.Statement, string, string, error) {
	return p.ParseWithOptions(ctx, query, ';', multi, gms.LoadSqlMode(ctx).ParserOptions())
}

// ParseWithOptions implements gms.Parser.
func (p parser) ParseWithOptions(ctx context.Context, query string, delimiter rune, multi bool, o sqlparser.ParserOptions) (sqlparser.Statement, string, string, error) {
	text := gms.RemoveSpaceAndDelimiter(resolveComments(query, o), delimiter)
	if !multi {
		stmt, err := p.whole(ctx, text, o)
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
	query = resolveComments(query, o)
	stmt, end, err := parseFirst(ctx, query, o)
	if isTooDeep(err) {
		return nil, end, errTooDeep
	}
	if wrong := knownFormat(query); wrong != nil {
		return nil, end, wrong
	}
	if err != nil {
		if wrong := knownQuantifiers(query, o); wrong != nil {
			return nil, end, wrong
		}
		text, found := mended(query, o)
		if !found {
			return stmt, end, cmp.Or(knownStatements(query), err)
		}
		// An error is reported in terms of what the client has written.
		again, at, wrong := parseFirst(ctx, text, o)
		if again = asDo(query, again, o); wrong != nil || again == nil {
			return stmt, end, cmp.Or(knownStatements(query), err)
		}
		if again, wrong = withKeys(query, again, o); wrong != nil {
			return stmt, end, wrong
		}
		stmt, end = again, at-len(text)+len(query)
		bodyWithin(stmt, len(text)-len(query))
	}
	if err := check(query, stmt); err != nil {
		return nil, end, err
	}
	if err := refused(query, stmt); err != nil {
		return nil, end, err
	}
	if stmt, err = filteredShow(stmt); err != nil {
		return nil, end, err
	}
	if err := nameWindows(query, stmt); err != nil {
		return nil, end, err
	}
	stmt = asChain(query, stmt, o)
	useOurs(query, stmt)
	placeView(ctx, stmt)
	return stmt, end, nil
}

// whole parses a text that has to be one statement.
func (p parser) whole(ctx context.Context, query string, o sqlparser.ParserOptions) (sqlparser.Statement, error) {
	query = resolveComments(query, o)
	stmt, err := parseAll(ctx, query, o)
	if isTooDeep(err) {
		return nil, errTooDeep
	}
	if wrong := knownFormat(query); wrong != nil {
		return nil, wrong
	}
	if err != nil {
		if wrong := knownQuantifiers(query, o); wrong != nil {
			return nil, wrong
		}
		text, found := mended(query, o)
		if !found {
			return stmt, cmp.Or(knownStatements(query), err)
		}
		again, wrong := parseAll(ctx, text, o)
		if again = asDo(query, again, o); wrong != nil || again == nil {
			return stmt, cmp.Or(knownStatements(query), err)
		}
		if again, wrong = withKeys(query, again, o); wrong != nil {
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
	if err := nameWindows(query, stmt); err != nil {
		return nil, err
	}
	stmt = asChain(query, stmt, o)
	useOurs(query, stmt)
	placeView(ctx, stmt)
	spareView(ctx, query, stmt)
	return stmt, nil
}

// mended writes what the parser does not know in words that it knows, and returns false if
// there is nothing of the kind.
func mended(query string, o sqlparser.ParserOptions) (string, bool) {
	text, isExplain := knownToParser(query)
	text, isRespelled := respell(text, o)
	return text, isExplain || isRespelled
}

// bodyWithin has the body of a trigger end where it does in the text that was mended.
func bodyWithin(stmt sqlparser.Statement, longer int) {
	if d, ok := stmt.(*sqlparser.DDL); ok && d.TriggerSpec != nil {
		d.SubStatementPositionEnd -= longer
	}
}

// check refuses what planning would not survive.
func check(query string, stmt sqlparser.Statement) error {
	if err := checkNesting(query, stmt); err != nil {
		return err
	}
	if err := checkBody(stmt); err != nil {
		return err
	}
	return checkDefaults(query, stmt)
}

// The names that our functions go by in a syntax tree. No client can write
// them.
const (
	exactSumName     = "farmsql.sum"
	exactAvgName     = "farmsql.avg"
	exactLiteralName = "farmsql.literal"
)

// useOurs makes a syntax tree ask for our functions in the place of what
// go-mysql-server does otherwise than MySQL: SUM and AVG, whose results it takes
// for DOUBLE except in windows, and decimals that something is compared with,
// which it rounds to the scale of a column; of STDDEV and VARIANCE of doubles; and of
// GROUP_CONCAT of one expression.
func useOurs(query string, stmt sqlparser.Statement) {
	if e, ok := stmt.(*sqlparser.Explain); ok {
		asFormat(e)
		useOurs(query, e.Statement)
		return
	}
	noteDatabase(stmt)
	noteOwn(stmt)
	noteOtherTables(stmt)
	noteInserts(stmt)
	bareSubqueries(query, stmt)
	if d, ok := stmt.(*sqlparser.DDL); ok && d.ProcedureSpec != nil && d.ProcedureSpec.Body != nil {
		d.ProcedureSpec.Body = prepareBody(query, d.ProcedureSpec.Body)
		return
	}
	endLoops(stmt)
	if containsFold(query, "distinct") && containsFold(query, "order") {
		nameOrdinals(stmt)
	}
	aggregates := containsFold(query, "sum") || containsFold(query, "avg") || containsFold(query, "std") || containsFold(query, "var")
	groups := containsFold(query, "group_concat")
	decimals := runsNow(stmt) && containsDecimal(query)
	if stmt == nil || !aggregates && !groups && !decimals {
		return // walking costs more than parsing
	}
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(node sqlparser.SQLNode) (bool, error) {
		switch n := node.(type) {
		case *sqlparser.FuncExpr:
			useOurAggregate(n)
		case *sqlparser.GroupConcatExpr:
			ofOne(n)
		case *sqlparser.ComparisonExpr:
			if decimals {
				n.Left, n.Right = exactDecimal(n.Left), exactDecimal(n.Right)
			}
		}
		return true, nil
	}, stmt)
}

func useOurAggregate(f *sqlparser.FuncExpr) {
	switch f.Name.Lowered() {
	case "std", "stddev", "stddev_pop", "stddev_samp", "variance", "var_pop", "var_samp":
		ofDoubles(f)
		return
	}
	if f.Over != nil {
		return
	}
	switch f.Name.Lowered() {
	case "sum":
		f.Name = sqlparser.NewColIdent(exactSumName)
	case "avg":
		f.Name = sqlparser.NewColIdent(exactAvgName)
	}
}

// ofDoubles has a deviation or variance be one of doubles, for go-mysql-server's are of the
// type of what they are given, integers of integers.
func ofDoubles(f *sqlparser.FuncExpr) {
	for _, e := range f.Exprs {
		if a, ok := e.(*sqlparser.AliasedExpr); ok {
			a.Expr = &sqlparser.BinaryExpr{Operator: sqlparser.PlusStr, Left: a.Expr, Right: sqlparser.NewFloatVal([]byte("0e0"))}
		}
	}
}

// ofOne has a GROUP_CONCAT of several expressions be one of their CONCAT: go-mysql-server's
// takes the first for all.
func ofOne(g *sqlparser.GroupConcatExpr) {
	if len(g.Exprs) > 1 {
		all := &sqlparser.FuncExpr{Name: sqlparser.NewColIdent("concat"), Exprs: g.Exprs}
		g.Exprs = sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: all}}
	}
}

// runsNow reports whether the expressions of a statement are evaluated when it
// runs; others may be kept as text.
func runsNow(stmt sqlparser.Statement) bool {
	switch stmt.(type) {
	case *sqlparser.Select, *sqlparser.SetOp, *sqlparser.ParenSelect, *sqlparser.Insert, *sqlparser.Update, *sqlparser.Delete:
		return true
	}
	return false
}

// exactDecimal wraps a literal that is a decimal.
func exactDecimal(e sqlparser.Expr) sqlparser.Expr {
	v, ok := e.(*sqlparser.SQLVal)
	if !ok || v.Type != sqlparser.FloatVal || bytes.ContainsAny(v.Val, "eE") {
		return e
	}
	return &sqlparser.FuncExpr{Name: sqlparser.NewColIdent(exactLiteralName), Exprs: sqlparser.SelectExprs{&sqlparser.AliasedExpr{Expr: v}}}
}

// containsDecimal reports whether a text may have a number with a point in it.
func containsDecimal(s string) bool {
	for i := strings.IndexByte(s, '.'); i >= 0; {
		s = s[i+1:]
		if s != "" && s[0] >= '0' && s[0] <= '9' {
			return true
		}
		i = strings.IndexByte(s, '.')
	}
	return false
}

// containsFold reports whether s contains the lower-case ASCII word, in any case
// of letters.
func containsFold(s, word string) bool {
	for i := 0; i+len(word) <= len(s); i++ {
		if s[i]|0x20 == word[0] && strings.EqualFold(s[i:i+len(word)], word) {
			return true
		}
	}
	return false
}
