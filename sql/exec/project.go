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
		v, err := e.Eval(ctx, row)
		if err != nil {
			return nil, err
		}
		out[i] = plainZero(v)
	}
	return out, nil
}

// plainZero returns 0 for -0, as go-mysql-server's projections do: MySQL prints no sign.
func plainZero(v any) any {
	switch n := v.(type) {
	case float64:
		if n == 0 {
			return float64(0)
		}
	case float32:
		if n == 0 {
			return float32(0)
		}
	}
	return v
}
