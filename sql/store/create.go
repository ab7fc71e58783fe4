package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/vitess/go/vt/sqlparser"

	"github.com/farmsql/farmsql/catalog"
)

// go-mysql-server parses CREATE TABLE and drops parts of it. This file takes those that our tables need from the
// statement's syntax tree.

// statementKey is the key of the running statement in a context.
type statementKey struct{}

// WithStatement returns a context for a statement that is part of another one. Without it, the
// context would give the text of that other statement.
func WithStatement(ctx context.Context, stmt sqlparser.Statement) context.Context {
	return context.WithValue(ctx, statementKey{}, stmt)
}

// createStatement returns the running CREATE TABLE; nil if the statement is another one, or its text cannot
// be parsed.
func (st *Store) createStatement(ctx *gms.Context) *sqlparser.DDL {
	stmt, isPart := ctx.Value(statementKey{}).(sqlparser.Statement)
	if !isPart {
		var err error
		if stmt, _, _, err = st.cfg.Parse(ctx, ctx.Query(), false); err != nil {
			return nil
		}
	}
	create, ok := stmt.(*sqlparser.DDL)
	if !ok || create.Action != sqlparser.CreateStr {
		return nil
	}
	return create
}

// UsingHash returns the column lists for which a CREATE TABLE asks for an index USING
// HASH.
func (st *Store) UsingHash(ctx *gms.Context) map[string]bool {
	create := st.createStatement(ctx)
	if create == nil || create.TableSpec == nil {
		return nil
	}
	lists := make(map[string]bool)
	for _, x := range create.TableSpec.Indexes {
		hash := slices.ContainsFunc(x.Options, func(o *sqlparser.IndexOption) bool { return SameName(o.Using, "hash") })
		if !hash {
			continue
		}
		names := make([]string, len(x.Columns))
		for i, c := range x.Columns {
			names[i] = c.Column.String()
		}
		lists[ColumnList(names)] = true
	}
	return lists
}

// ColumnList joins the names of columns, in lower case.
func ColumnList(names []string) string { return strings.ToLower(strings.Join(names, ",")) }

// TableComment is the comment that CREATE TABLE gives a table.
func (st *Store) TableComment(ctx *gms.Context) string {
	create := st.createStatement(ctx)
	if create == nil || create.TableSpec == nil {
		return ""
	}
	for _, o := range create.TableSpec.TableOpts {
		if SameName(o.Name, "comment") {
			return o.Value
		}
	}
	return ""
}

// LikeTable returns the table that CREATE TABLE ... LIKE copies, nil if the statement is
// another one.
func (st *Store) LikeTable(ctx *gms.Context, tr *Transaction) (*catalog.Table, error) {
	create := st.createStatement(ctx)
	if create == nil || create.OptLike == nil || len(create.OptLike.LikeTables) != 1 {
		return nil, nil
	}
	name := create.OptLike.LikeTables[0]
	db := name.DbQualifier.String()
	if db == "" {
		db = ctx.GetCurrentDatabase()
	}
	tbl, err := st.Descriptor(ctx, tr, db, name.Name.String())
	if errors.Is(err, catalog.ErrNotFound) {
		return nil, nil // a table of go-mysql-server's own
	}
	return tbl, err
}

// MakeLike completes a copied table's definition with what go-mysql-server does not copy:
// the comment, the structure of the primary key, and CHECKs, which go-mysql-server does
// not find in a table with virtual columns.
func MakeLike(t, like *catalog.Table) {
	if like == nil {
		return
	}
	t.Comment = like.Comment
	if t.Primary.Declared && len(t.Primary.Parts) == len(like.Primary.Parts) {
		t.Primary.Access, t.Primary.Parts = like.Primary.Access, slices.Clone(like.Primary.Parts)
	}
	if !slices.ContainsFunc(like.Columns, func(c catalog.Column) bool { return c.Virtual }) {
		return
	}
	for i, c := range like.Checks {
		c.Name = fmt.Sprintf("%s_chk_%d", t.Name, i+1)
		t.Checks = append(t.Checks, c)
	}
}
