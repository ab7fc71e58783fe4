package plan

import (
	"strings"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	gmsplan "github.com/dolthub/go-mysql-server/sql/plan"

	"github.com/farmsql/farmsql/sql/compat"
)

// Window returns a row for each row of its child: columns of this row, and window functions.
type Window struct {
	Child Node
	// Exprs are columns, and window functions of go-mysql-server.
	Exprs []gms.Expression
}

func (w *Window) describe(b *strings.Builder, depth int) {
	line(b, depth, "window %s", texts(w.Exprs))
	w.Child.describe(b, depth+1)
}

// window returns the plan of window functions over the rows of a node.
func (b *builder) window(n *gmsplan.Window) (Node, scope, error) {
	framed, _, err := compat.Framed(b.ctx, nil, n, nil, nil, nil)
	if err != nil {
		return nil, scope{}, err
	}
	n = framed.(*gmsplan.Window)
	child, s, err := b.node(n.Child)
	if err != nil {
		return nil, scope{}, err
	}
	w := &Window{Child: child}
	if w.Exprs, err = b.expressions(n.SelectExprs, s); err != nil {
		return nil, scope{}, err
	}
	for _, e := range w.Exprs {
		_, isColumn := e.(*expression.GetField)
		if _, isFunction := e.(gms.WindowAdaptableExpression); !isFunction && !isColumn {
			return nil, scope{}, refused("%s beside window functions", e)
		}
	}
	return w, scopeOf(n.SelectExprs, s), nil
}
