package compat

import (
	"slices"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// The parts of an ALTER TABLE name columns as they are after it: CHANGE x y INT, ADD INDEX (y).
// go-mysql-server plans each part for the columns of before, and the parts after a RENAME of the table
// do not find it.

// RenameLast moves the parts of an ALTER TABLE that rename columns behind the others, and gives the
// columns in those the names of before, if one of them uses a new name. A part that renames the table
// comes last.
func RenameLast(stmt sqlparser.Statement) {
	a, ok := stmt.(*sqlparser.AlterTable)
	if !ok || len(a.Statements) < 2 {
		return
	}
	defer func() {
		slices.SortStableFunc(a.Statements, func(p, q *sqlparser.DDL) int { return tableRename(p) - tableRename(q) })
	}()
	olds, others, renames := splitRenames(a.Statements)
	if len(renames) == 0 || len(others) == 0 || reuses(others, olds) || !useOlds(others, olds) {
		return
	}
	a.Statements = append(others, renames...)
}

// tableRename returns 1 if a part of an ALTER TABLE renames the table, and 0 if not.
func tableRename(p *sqlparser.DDL) int {
	if p.Action == sqlparser.RenameStr {
		return 1
	}
	return 0
}

// splitRenames returns the parts of an ALTER TABLE that rename columns, the others, and the old names
// of the new ones, in lower case.
func splitRenames(parts []*sqlparser.DDL) (olds map[string]sqlparser.ColIdent, others, renames []*sqlparser.DDL) {
	olds = make(map[string]sqlparser.ColIdent)
	for _, p := range parts {
		name := newName(p)
		if name.IsEmpty() || name.EqualString(p.Column.String()) {
			others = append(others, p)
			continue
		}
		olds[name.Lowered()] = p.Column
		renames = append(renames, p)
	}
	return olds, others, renames
}

// newName returns the name that a part of an ALTER TABLE gives a column; empty if it gives none.
func newName(p *sqlparser.DDL) sqlparser.ColIdent {
	switch {
	case strings.EqualFold(p.ColumnAction, sqlparser.RenameStr):
		return p.ToColumn
	case strings.EqualFold(p.ColumnAction, sqlparser.ChangeStr) && p.TableSpec != nil && len(p.TableSpec.Columns) == 1:
		return p.TableSpec.Columns[0].Name
	}
	return sqlparser.ColIdent{}
}

// reuses reports whether a part adds or drops a column that has a name of before or of after: then the
// order of the parts matters.
func reuses(parts []*sqlparser.DDL, olds map[string]sqlparser.ColIdent) bool {
	taken := make(map[string]bool)
	for name, old := range olds { // any order
		taken[name], taken[old.Lowered()] = true, true
	}
	for _, p := range parts {
		if p.ColumnAction == "" {
			continue
		}
		if taken[p.Column.Lowered()] {
			return true
		}
		if p.TableSpec == nil {
			continue
		}
		for _, c := range p.TableSpec.Columns {
			if taken[c.Name.Lowered()] {
				return true
			}
		}
	}
	return false
}

// useOlds replaces new names in indexes and in AFTER by those of before, and reports whether there
// were any.
func useOlds(parts []*sqlparser.DDL, olds map[string]sqlparser.ColIdent) (used bool) {
	for _, p := range parts {
		if o := p.ColumnOrder; o != nil {
			if old, ok := olds[o.AfterColumn.Lowered()]; ok {
				o.AfterColumn, used = old, true
			}
		}
		if p.IndexSpec == nil {
			continue
		}
		for i, c := range p.IndexSpec.Columns {
			old, ok := olds[c.Column.Lowered()]
			if !ok {
				continue
			}
			if i == 0 && p.IndexSpec.ToName.IsEmpty() && p.IndexSpec.Type != sqlparser.PrimaryStr {
				p.IndexSpec.ToName = c.Column // what an index without a name is called
			}
			c.Column, used = old, true
		}
	}
	return used
}
