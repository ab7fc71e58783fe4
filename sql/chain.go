package sql

import (
	"context"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/types"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/sql/compat"
	"github.com/farmsql/farmsql/sql/store"
)

// An andChain is COMMIT AND CHAIN or ROLLBACK AND CHAIN: it ends the transaction and begins
// another of the same kind. go-mysql-server's parser drops the words.
type andChain struct{ rollsBack bool }

var (
	_ sqlparser.Injectable = andChain{}
	_ gms.ExecSourceRel    = andChain{}
)

// asChain returns the andChain for a COMMIT or ROLLBACK with AND CHAIN, and other statements
// unchanged.
func asChain(query string, stmt sqlparser.Statement, o sqlparser.ParserOptions) sqlparser.Statement {
	_, commits := stmt.(*sqlparser.Commit)
	_, rollsBack := stmt.(*sqlparser.Rollback)
	ends := commits || rollsBack
	if !ends || !compat.ContainsFold(query, "chain") || !saysChain(compat.NewTokens(query, o)) {
		return stmt
	}
	return sqlparser.InjectedStatement{Statement: andChain{rollsBack}, Auth: sqlparser.AuthInformation{AuthType: sqlparser.AuthType_IGNORE}}
}

// saysChain reports whether a statement has AND CHAIN, and not AND NO CHAIN.
func saysChain(s *compat.Tokens) bool {
	for last := s.Next(); !s.IsOver(); last = s.Token {
		if s.Next() == sqlparser.CHAIN {
			return last == sqlparser.AND
		}
	}
	return false
}

// RowIter implements gms.ExecSourceRel.
func (c andChain) RowIter(ctx *gms.Context, _ gms.Row) (gms.RowIter, error) {
	s, next := FromContext(ctx), gms.ReadWrite
	if open := store.Current(ctx); open != nil {
		if open.ReadOnly {
			next = gms.ReadOnly
		}
		if err := s.End(ctx, open, c.rollsBack); err != nil {
			return nil, err
		}
	}
	ctx.SetTransaction(s.BeginNext(next))
	s.SetIgnoreAutoCommit(true)
	return gms.RowsToRowIter(gms.NewRow(types.NewOkResult(0))), nil
}

// WithResolvedChildren implements sqlparser.Injectable.
func (c andChain) WithResolvedChildren(context.Context, []any) (any, error) { return c, nil }

// Resolved implements gms.Node.
func (andChain) Resolved() bool { return true }

// String implements gms.Node.
func (andChain) String() string { return "Chain" }

// Schema implements gms.Node.
func (andChain) Schema(*gms.Context) gms.Schema { return types.OkResultSchema }

// Children implements gms.Node.
func (andChain) Children() []gms.Node { return nil }

// WithChildren implements gms.Node.
func (c andChain) WithChildren(_ *gms.Context, children ...gms.Node) (gms.Node, error) {
	if len(children) != 0 {
		return nil, gms.ErrInvalidChildrenNumber.New(c, len(children), 0)
	}
	return c, nil
}

// IsReadOnly implements gms.Node.
func (andChain) IsReadOnly() bool { return true }
