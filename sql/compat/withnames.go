package compat

import (
	"maps"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// go-mysql-server mistakes a table p.s for the query s of a WITH. So the query gets another name if
// a table of that name is qualified with its database.

// NameWiths renames each query of a WITH if the statement qualifies a table of the same name with a database.
func NameWiths(query string, stmt sqlparser.Statement) {
	if stmt == nil || !ContainsFold(query, "with") {
		return
	}
	w := withNames{qualified: qualifiedTables(stmt)}
	if len(w.qualified) > 0 {
		w.rename(stmt, nil)
	}
}

// qualifiedTables returns the names, in lower case, of tables that a statement reads and qualifies
// with their databases.
func qualifiedTables(stmt sqlparser.Statement) map[string]bool {
	names := make(map[string]bool)
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		if t, ok := n.(*sqlparser.AliasedTableExpr); ok {
			if name, ok := t.Expr.(sqlparser.TableName); ok && !name.DbQualifier.IsEmpty() {
				names[lowered(name.Name)] = true
			}
		}
		return true, nil
	}, stmt)
	return names
}

func lowered(t sqlparser.TableIdent) string { return sqlparser.NewColIdent(t.String()).Lowered() }

// withNames renames queries of WITH.
type withNames struct{ qualified map[string]bool }

// rename gives new names to the tables below a node that are queries of a WITH. names maps old names, in
// lower case, to new ones.
func (w withNames) rename(n sqlparser.SQLNode, names map[string]string) {
	// The visitor never fails, so neither does Walk.
	_ = sqlparser.Walk(func(n sqlparser.SQLNode) (bool, error) {
		switch n := n.(type) {
		case *sqlparser.Select:
			return w.renameScope(n, &n.With, names), nil
		case *sqlparser.SetOp:
			return w.renameScope(n, &n.With, names), nil
		case *sqlparser.Insert:
			return w.renameScope(n, &n.With, names), nil
		case *sqlparser.Update:
			return w.renameScope(n, &n.With, names), nil
		case *sqlparser.Delete:
			return w.renameScope(n, &n.With, names), nil
		case *sqlparser.AliasedTableExpr:
			renameTable(n, names)
		}
		return true, nil
	}, n)
}

// renameScope renames the queries of a statement's WITH within the statement. It returns false if
// it has walked the statement itself.
func (w withNames) renameScope(n sqlparser.SQLNode, with **sqlparser.With, names map[string]string) (walk bool) {
	if *with == nil {
		return true
	}
	inner := maps.Clone(names)
	if inner == nil {
		inner = make(map[string]string)
	}
	if (*with).Recursive {
		for _, c := range (*with).Ctes {
			w.declare(c, inner)
		}
	}
	for _, c := range (*with).Ctes {
		w.rename(c.Expr, inner)
		if !(*with).Recursive {
			w.declare(c, inner)
		}
	}
	kept := *with
	*with = nil // its queries have been renamed
	w.rename(n, inner)
	*with = kept
	return false
}

// declare notes the name of a query of a WITH, which hides outer queries of the same name.
func (w withNames) declare(c *sqlparser.CommonTableExpr, names map[string]string) {
	name := lowered(c.As)
	delete(names, name)
	if w.qualified[name] {
		names[name] = name + " of WITH"
		c.As = sqlparser.NewTableIdent(names[name])
	}
}

// renameTable gives a table that is a query of a WITH its new name, and makes the old name its alias.
func renameTable(t *sqlparser.AliasedTableExpr, names map[string]string) {
	name, ok := t.Expr.(sqlparser.TableName)
	if !ok || !name.DbQualifier.IsEmpty() {
		return
	}
	renamed, ok := names[lowered(name.Name)]
	if !ok {
		return
	}
	if t.As.IsEmpty() {
		t.As = name.Name
	}
	name.Name = sqlparser.NewTableIdent(renamed)
	t.Expr = name
}
