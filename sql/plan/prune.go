package plan

import (
	"maps"
	"slices"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/transform"
)

// prune makes the scan of a plan read only the columns that are used.
func prune(ctx *gms.Context, n Node) error {
	var users []Node // the nodes whose expressions are on the rows of the scan
	for {
		switch x := n.(type) {
		case *Limit:
			n = x.Child
		case *Distinct:
			n = x.Child
		case *Sort:
			n, users = x.Child, append(users, x)
		case *Filter:
			n, users = x.Child, append(users, x)
		case *Project:
			n, users = x.Child, []Node{x}
		case *Group:
			n, users = x.Child, []Node{x}
		case *Scan:
			return x.prune(ctx, users)
		default:
			return nil
		}
	}
}

// prune makes a scan read only the columns that the given nodes, the first of which does not return
// rows as they are, and its condition use. It moves these columns in all expressions.
func (s *Scan) prune(ctx *gms.Context, users []Node) error {
	used := make(map[int]bool)
	note := func(e gms.Expression) (gms.Expression, error) {
		gms.Inspect(ctx, e, func(_ *gms.Context, e gms.Expression) bool {
			if f, ok := e.(*expression.GetField); ok {
				used[f.Index()] = true
			}
			return true
		})
		return e, nil
	}
	if len(users) == 0 {
		return nil // rows are returned as they are
	}
	if _, isSort := users[0].(*Sort); isSort {
		return nil
	}
	if err := eachOf(users, note); err != nil {
		return err
	}
	if _, err := eachOther(s.Where, func(e gms.Expression) (gms.Expression, error) { return note(e) }); err != nil {
		return err
	}
	noteColumns(s.Where, used)
	s.Columns = slices.Sorted(maps.Keys(used))
	if s.Columns == nil {
		s.Columns = []int{} // nil would be all
	}
	move := func(e gms.Expression) (gms.Expression, error) {
		e, _, err := transform.Expr(ctx, e, func(_ *gms.Context, e gms.Expression) (gms.Expression, transform.TreeIdentity, error) {
			if f, ok := e.(*expression.GetField); ok {
				at, _ := slices.BinarySearch(s.Columns, f.Index())
				return f.WithIndex(at), transform.NewTree, nil
			}
			return e, transform.SameTree, nil
		})
		return e, err
	}
	if err := eachOf(users, move); err != nil {
		return err
	}
	return s.eachOther(move)
}

// eachOther replaces the expressions in a scan's conditions.
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

// eachOf replaces the expressions of nodes.
func eachOf(nodes []Node, f func(gms.Expression) (gms.Expression, error)) (err error) {
	for _, n := range nodes {
		switch n := n.(type) {
		case *Project:
			err = each(n.Exprs, f)
		case *Group:
			if err = each(n.By, f); err == nil {
				err = each(n.Exprs, f)
			}
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

// eachOther returns a condition with other expressions of go-mysql-server.
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

// noteColumns adds the columns that a condition compares to used.
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
	}
}
