package exec

import (
	gms "github.com/dolthub/go-mysql-server/sql"
)

// A project returns a row of expressions for each row.
type project struct {
	gms.RowIter
	exprs []gms.Expression
}

// Next implements gms.RowIter.
func (p *project) Next(ctx *gms.Context) (gms.Row, error) {
	row, err := p.RowIter.Next(ctx)
	if err != nil {
		return nil, err
	}
	out := make(gms.Row, len(p.exprs))
	for i, e := range p.exprs {
		if out[i], err = e.Eval(ctx, row); err != nil {
			return nil, err
		}
	}
	return out, nil
}
