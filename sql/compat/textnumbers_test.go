package compat

import (
	"testing"

	gms "github.com/dolthub/go-mysql-server/sql"
	"github.com/dolthub/go-mysql-server/sql/expression"
	"github.com/dolthub/go-mysql-server/sql/types"
)

// A textNumber has the value that go-mysql-server's conversion has, and warns where that is an error.
func TestTextNumber(t *testing.T) {
	ctx := gms.NewEmptyContext()
	column := expression.NewGetField(0, types.Text, "c", true)
	e := &textNumber{expression.UnaryExpressionStub{Child: column}}
	for _, v := range []any{nil, "", "12", " 12 ", "12x", "x", "-1.5e3", "1e999", "0x1F", ".", "+", "1e", []byte("7")} {
		before := ctx.WarningCount()
		got, err := e.Eval(ctx, gms.NewRow(v))
		want, _, bad := types.Float64.Convert(ctx, v)
		if got != want || err != nil && bad == nil {
			t.Errorf("%v: %v %v, not %v %v", v, got, err, want, bad)
		}
		if _, isText := v.(string); isText && (ctx.WarningCount() > before) != (bad != nil) {
			t.Errorf("%v: %d warnings, and the error %v", v, ctx.WarningCount()-before, bad)
		}
	}
	if _, err := e.Eval(ctx, gms.NewRow()); err == nil {
		t.Error("a row without the column has a value")
	}
	if _, err := e.WithChildren(ctx); err == nil {
		t.Error("a textNumber has no child")
	}
	if same, err := e.WithChildren(ctx, column); err != nil || same.String() != e.String() || same.Type(ctx) != types.Float64 {
		t.Errorf("with the same child: %v %v", same, err)
	}
}
