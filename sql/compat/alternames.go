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
	if !ok {
		return
	}
	freeFirst(a.Statements)
	defer func() {
		a.Statements = splitChanges(a.Statements)
		slices.SortStableFunc(a.Statements, func(p, q *sqlparser.DDL) int { return tableRename(p) - tableRename(q) })
	}()
	olds, others, renames := splitRenames(a.Statements)
	if len(renames) == 0 || len(others) == 0 || reuses(others, olds) || !useOlds(others, olds) {
		return
	}
	a.Statements = append(others, renames...)
}

// freeFirst moves the parts of an ALTER TABLE that take names from columns before those that give these
// names to other columns. If columns swap their names, no order does, and the parts stay as they are.
func freeFirst(parts []*sqlparser.DDL) {
	ordered := slices.Clone(parts)
	moves := 0
	for i := 0; i < len(ordered); {
		name := newName(ordered[i])
		at := slices.IndexFunc(ordered[i+1:], func(p *sqlparser.DDL) bool { return !name.IsEmpty() && freedName(p).Equal(name) })
		if at < 0 {
			i++
			continue
		}
		if moves++; moves > len(ordered)*len(ordered) {
			return
		}
		p := ordered[i+1+at]
		ordered = slices.Insert(slices.Delete(ordered, i+1+at, i+2+at), i, p)
	}
	copy(parts, ordered)
}

// splitChanges makes each CHANGE with a new name a MODIFY and a RENAME COLUMN: go-mysql-server plans the
// parts after a CHANGE as if the column kept its name, takes the name back if they rewrite the table, and leaves the
// old name in CHECKs and generated columns.
// The renames come last, because a rewrite after one loses the new names in generated columns; but a part
// that adds a column with a name of before needs the renames before it.
func splitChanges(parts []*sqlparser.DDL) []*sqlparser.DDL {
	olds, _, renames := splitRenames(parts)
	if addsOne(parts, renames) {
		return splitInPlace(parts)
	}
	var others, last []*sqlparser.DDL
	for _, p := range splitInPlace(parts) {
		if isRename(p) {
			last = append(last, p)
			continue
		}
		if o := p.ColumnOrder; o != nil {
			if old, ok := olds[o.AfterColumn.Lowered()]; ok {
				o.AfterColumn = old
			}
		}
		others = append(others, p)
	}
	return append(others, last...)
}

// addsOne reports whether a part adds a column with a name of before of one that is renamed.
func addsOne(parts, renames []*sqlparser.DDL) bool {
	return slices.ContainsFunc(renames, func(r *sqlparser.DDL) bool {
		return slices.ContainsFunc(parts, func(p *sqlparser.DDL) bool {
			isAdd := strings.EqualFold(p.ColumnAction, sqlparser.AddStr) && p.TableSpec != nil
			return isAdd && slices.ContainsFunc(p.TableSpec.Columns, func(c *sqlparser.ColumnDefinition) bool { return c.Name.Equal(r.Column) })
		})
	})
}

func isRename(p *sqlparser.DDL) bool { return strings.EqualFold(p.ColumnAction, sqlparser.RenameStr) }

func splitInPlace(parts []*sqlparser.DDL) (split []*sqlparser.DDL) {
	for _, p := range parts {
		name := newName(p)
		if name.IsEmpty() || name.Equal(p.Column) || isRename(p) {
			split = append(split, p)
			continue
		}
		renamed := *p // with the privileges that p needs
		renamed.ColumnAction, renamed.ToColumn, renamed.TableSpec, renamed.ColumnOrder = sqlparser.RenameStr, name, nil, nil
		p.TableSpec.Columns[0].Name = p.Column
		split = append(split, p, &renamed)
	}
	return split
}

// freedName returns the name that a part of an ALTER TABLE takes from a column; empty if it takes none.
func freedName(p *sqlparser.DDL) sqlparser.ColIdent {
	name := newName(p)
	if name.IsEmpty() && strings.EqualFold(p.ColumnAction, sqlparser.DropStr) || !name.IsEmpty() && !name.Equal(p.Column) {
		return p.Column
	}
	return sqlparser.ColIdent{}
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

// useOlds replaces new names in indexes by those of before, and reports whether there were any.
func useOlds(parts []*sqlparser.DDL, olds map[string]sqlparser.ColIdent) (used bool) {
	for _, p := range parts {
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
