package plan

import (
	"maps"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
)

// prune makes the scans of a plan read only the columns that are used.
func prune(ctx *gms.Context, n Node) error {
	// users are the nodes whose expressions use the rows of the scan. The first of them makes new
	// rows: nodes above it use those and do not count. If no node makes new rows, a scan reads all columns, and a join is
	// refused.
	var users []Node
	for {
		switch x := n.(type) {
		case *Limit:
			n = x.Child
		case *Distinct:
			n = x.Child
		case *Exists:
			n, users = x.Child, nil
		case *Sort:
			n, users = x.Child, append(users, x)
		case *Filter:
			n, users = x.Child, append(users, x)
		case *Project:
			n, users = x.Child, []Node{x}
		case *Group:
			n, users = x.Child, []Node{x}
		case *Window:
			n, users = x.Child, []Node{x}
		case *Derived: // nodes above it use the columns of its SELECT
			n, users = x.Child, nil
		case *Union:
			if err := prune(ctx, x.First); err != nil {
				return err
			}
			n, users = x.Second, nil
		case *When:
			if err := prune(ctx, x.Query); err != nil {
				return err
			}
			n = x.Child
		case *Scan:
			return x.prune(ctx, users)
		case *Join:
			return x.prune(ctx, users)
		default:
			return nil
		}
	}
}

// prune makes a scan read only the columns that its condition and users use, and moves these
// columns in all expressions. users are the nodes whose expressions use the scan's rows. If the first
// of them returns the rows unchanged, or there is none, the scan keeps all columns.
func (s *Scan) prune(ctx *gms.Context, users []Node) error {
	if !makesNewRows(users) {
		return nil // the rows are returned unchanged
	}
	used, err := usedBy(ctx, users)
	if err != nil {
		return err
	}
	if err := s.keep(ctx, used); err != nil {
		return err
	}
	return eachOf(users, placing(ctx, s.Place))
}

// prune is Scan.prune for all tables of a join, but returns an error if all columns would have to be kept.
func (j *Join) prune(ctx *gms.Context, users []Node) error {
	if !makesNewRows(users) {
		return refused("whole rows of a join")
	}
	used, err := usedBy(ctx, users)
	if err != nil {
		return err
	}
	if err := j.keep(ctx, used); err != nil {
		return err
	}
	return eachOf(users, placing(ctx, j.Place))
}

// keep makes a join read only the columns in used and those of its conditions, which it adds to used, and moves the columns
// of the conditions.
func (j *Join) keep(ctx *gms.Context, used map[int]bool) error {
	for _, c := range j.conditions() {
		columns, err := columnsOf(ctx, c)
		if err != nil {
			return err
		}
		maps.Copy(used, columns)
	}
	offset := 0
	for i := range j.Tables {
		t := &j.Tables[i]
		if t.Source != nil {
			t.Offset = offset
			offset += t.Width()
			if err := prune(ctx, t.Source); err != nil {
				return err
			}
			continue
		}
		own := make(map[int]bool)
		for column := range used { // any order
			if j.tableOf(column) == i {
				own[column-t.First] = true
			}
		}
		if err := t.keep(ctx, own); err != nil {
			return err
		}
		t.Offset = offset
		offset += t.Width()
	}
	var err error
	place := placing(ctx, j.Place)
	if j.Where, err = eachOthers(j.Where, place); err != nil {
		return err
	}
	for i := range j.Tables {
		if j.Tables[i].On, err = eachOthers(j.Tables[i].On, place); err != nil {
			return err
		}
	}
	return nil
}

// conditions returns all conditions on the joined rows.
func (j *Join) conditions() []Condition {
	all := slices.Clone(j.Where)
	for i := range j.Tables {
		all = append(all, j.Tables[i].On...)
	}
	return all
}

// makesNewRows reports whether the first of users makes new rows, and does not return the scan's rows unchanged.
func makesNewRows(users []Node) bool {
	if len(users) == 0 {
		return false
	}
	switch users[0].(type) {
	case *Project, *Group, *Window:
		return true
	}
	return false
}

// keep makes a scan read only the columns in used and those of its condition, which it adds to used, and moves the columns of
// the condition.
func (s *Scan) keep(ctx *gms.Context, used map[int]bool) error {
	columns, err := columnsOf(ctx, s.Where)
	if err != nil {
		return err
	}
	maps.Copy(used, columns)
	s.Columns = slices.Sorted(maps.Keys(used))
	if s.Columns == nil {
		s.Columns = []int{} // nil would mean all columns
	}
	return s.eachOther(placing(ctx, s.Place))
}

// placing returns a function that moves the columns of an expression.
func placing(ctx *gms.Context, place func(int) int) func(gms.Expression) (gms.Expression, error) {
	return func(e gms.Expression) (gms.Expression, error) { return withColumns(ctx, e, place) }
}

// noting returns a function that adds the columns of an expression to used.
func noting(ctx *gms.Context, used map[int]bool) func(gms.Expression) (gms.Expression, error) {
	return func(e gms.Expression) (gms.Expression, error) {
		gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
			if f, ok := e.(*expression.GetField); ok {
				used[f.Index()] = true
			}
			return true
		})
		return e, nil
	}
}

// usedBy returns the columns that expressions of nodes use.
func usedBy(ctx *gms.Context, users []Node) (map[int]bool, error) {
	used := make(map[int]bool)
	return used, eachOf(users, noting(ctx, used))
}

// columnsOf returns the columns that a condition uses.
func columnsOf(ctx *gms.Context, c Condition) (map[int]bool, error) {
	used := make(map[int]bool)
	noteColumns(c, used)
	_, err := eachOther(c, noting(ctx, used))
	return used, err
}

// eachOther replaces the expressions in a scan's conditions by the results of f.
func (s *Scan) eachOther(f func(gms.Expression) (gms.Expression, error)) (err error) {
	if s.Where, err = eachOther(s.Where, f); err != nil {
		return err
	}
	for _, a := range s.Access {
		for i := range a.Branches {
			b := &a.Branches[i]
			if b.Condition, err = eachOther(b.Condition, f); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachOf replaces the expressions of nodes by the results of f.
func eachOf(nodes []Node, f func(gms.Expression) (gms.Expression, error)) (err error) {
	for _, n := range nodes {
		switch n := n.(type) {
		case *Project:
			err = each(n.Exprs, f)
		case *Group:
			if err = each(n.By, f); err == nil {
				err = each(n.Exprs, f)
			}
		case *Window:
			err = each(n.Exprs, f)
		case *Filter:
			n.Cond, err = f(n.Cond)
		case *Sort:
			for i := range n.By {
				if n.By[i].Expr, err = f(n.By[i].Expr); err != nil {
					return err
				}
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func each(all []gms.Expression, f func(gms.Expression) (gms.Expression, error)) (err error) {
	for i := range all {
		if all[i], err = f(all[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachOther returns a condition in which the results of f replace the expressions of go-mysql-server.
func eachOther(c Condition, f func(gms.Expression) (gms.Expression, error)) (Condition, error) {
	switch c := c.(type) {
	case And:
		all, err := eachOthers(c, f)
		return And(all), err
	case Or:
		all, err := eachOthers(c, f)
		return Or(all), err
	case Not:
		x, err := eachOther(c.Condition, f)
		return Not{x}, err
	case Other:
		e, err := f(c.Expr)
		return Other{e}, err
	}
	return c, nil
}

func eachOthers(all []Condition, f func(gms.Expression) (gms.Expression, error)) ([]Condition, error) {
	out := make([]Condition, len(all))
	var err error
	for i, c := range all {
		if out[i], err = eachOther(c, f); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// noteColumns adds to used the columns that a condition compares.
func noteColumns(c Condition, used map[int]bool) {
	switch c := c.(type) {
	case And:
		for _, x := range c {
			noteColumns(x, used)
		}
	case Or:
		for _, x := range c {
			noteColumns(x, used)
		}
	case Not:
		noteColumns(c.Condition, used)
	case Compare:
		used[c.Column] = true
	case In:
		used[c.Column] = true
	case IsNull:
		used[c.Column] = true
	case Like:
		used[c.Column] = true
	case Same:
		used[c.Left], used[c.Right] = true, true
	}
}
