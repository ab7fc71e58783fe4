package compat

import (
	"slices"
	"strings"

	"github.com/dolthub/vitess/go/vt/sqlparser"
)

// In MySQL the parts of an ALTER TABLE use the columns' new names: CHANGE x y INT, ADD INDEX (y).
// go-mysql-server plans each part for the columns as they were before the statement. Parts after a
// RENAME of the table do not find the table.

// RenameLast reorders the parts of an ALTER TABLE, first as freeFirst does and in the end as
// splitChanges does. If an index of one part uses a column's new name, RenameLast also moves the parts
// that rename columns behind the others, and puts the old names into the indexes, unless another
// part adds or drops a column with one of these names. A part that renames the table always comes last.
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

// freeFirst moves a part of an ALTER TABLE that takes a name from a column before the part that
// gives this name to another column. If columns swap their names, no order is right, and the parts
// stay as they are.
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
			return // the names form a cycle: no other order takes so many moves
		}
		p := ordered[i+1+at]
		ordered = slices.Insert(slices.Delete(ordered, i+1+at, i+2+at), i, p)
	}
	copy(parts, ordered)
}

// splitChanges replaces each CHANGE with a new name by a MODIFY and a RENAME COLUMN.
// go-mysql-server plans the parts after a CHANGE as if the column kept its name. If these parts
// rewrite the table, they restore the old name. CHECKs and generated columns keep the old name,
// too. The renames come last, because a rewrite after a rename loses the new names in generated
// columns. But if a part adds a column with the old name of a renamed one, the renames stay in
// place.
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
				o.AfterColumn = old // the column still has it: the renames come later
			}
		}
		others = append(others, p)
	}
	return append(others, last...)
}

// addsOne reports whether a part adds a column with the old name of a column that is renamed.
func addsOne(parts, renames []*sqlparser.DDL) bool {
	return slices.ContainsFunc(renames, func(r *sqlparser.DDL) bool {
		return slices.ContainsFunc(parts, func(p *sqlparser.DDL) bool {
			isAdd := strings.EqualFold(p.ColumnAction, sqlparser.AddStr) && p.TableSpec != nil
			return isAdd && slices.ContainsFunc(p.TableSpec.Columns, func(c *sqlparser.ColumnDefinition) bool { return c.Name.Equal(r.Column) })
		})
	})
}

func isRename(p *sqlparser.DDL) bool { return strings.EqualFold(p.ColumnAction, sqlparser.RenameStr) }

// splitInPlace replaces each CHANGE with a new name by a CHANGE that keeps the name, which is a MODIFY,
// and a RENAME COLUMN directly after it.
func splitInPlace(parts []*sqlparser.DDL) (split []*sqlparser.DDL) {
	for _, p := range parts {
		name := newName(p)
		if name.IsEmpty() || name.Equal(p.Column) || isRename(p) {
			split = append(split, p)
			continue
		}
		renamed := *p // the copy keeps the privileges that p requires
		renamed.ColumnAction, renamed.ToColumn, renamed.TableSpec, renamed.ColumnOrder = sqlparser.RenameStr, name, nil, nil
		p.TableSpec.Columns[0].Name = p.Column
		split = append(split, p, &renamed)
	}
	return split
}

// freedName returns the name that a part of an ALTER TABLE takes from a column; empty if it takes none.
func freedName(p *sqlparser.DDL) sqlparser.ColIdent {
	name := newName(p)
	if (name.IsEmpty() && strings.EqualFold(p.ColumnAction, sqlparser.DropStr)) || (!name.IsEmpty() && !name.Equal(p.Column)) {
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

// splitRenames divides the parts of an ALTER TABLE into those that rename columns and the others.
// olds maps each new name, in lower case, to the old one.
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

// reuses reports whether a part adds or drops a column that has an old or a new name of a renamed
// one. Then the order of the parts matters.
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

// useOlds replaces new names of columns in indexes by the old ones, and reports whether it replaced any.
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
				p.IndexSpec.ToName = c.Column // an index without a name gets that of its first column
			}
			c.Column, used = old, true
		}
	}
	return used
}
