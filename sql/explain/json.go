package explain

import (
	"encoding/json"

	gms "github.com/dolthub/go-mysql-server/sql"
)

// EXPLAIN FORMAT=JSON shows the rows of EXPLAIN under MySQL's names: the statement's block with
// its tables in the order in which they are read. The blocks of subqueries, derived tables and
// unions stand beside that block; MySQL nests them in it. There are no costs.

type jsonPlan struct {
	Block  *jsonBlock  `json:"query_block"`
	Others []jsonOther `json:"other_query_blocks,omitempty"`
}

// A jsonOther is a further block, with its kind.
type jsonOther struct {
	Kind  string     `json:"select_type"`
	Block *jsonBlock `json:"query_block"`
}

type jsonBlock struct {
	ID     int         `json:"select_id,omitempty"`
	Table  *jsonTable  `json:"table,omitempty"`       // the table of a query of one table
	Loop   []jsonInner `json:"nested_loop,omitempty"` // the tables of a query of several
	tables []*jsonTable
}

type jsonInner struct {
	Table *jsonTable `json:"table"`
}

type jsonTable struct {
	Name     string   `json:"table_name,omitempty"`
	Access   string   `json:"access_type,omitempty"`
	Possible []string `json:"possible_keys,omitempty"`
	Key      string   `json:"key,omitempty"`
	KeyBytes int      `json:"key_length,omitempty"`
	Ref      []string `json:"ref,omitempty"`
	Rows     *uint64  `json:"rows_examined_per_scan,omitempty"`
	Extra    []string `json:"extra,omitempty"`
}

// JSON returns the row of EXPLAIN FORMAT=JSON for a plan.
func JSON(ctx *gms.Context, keys Keys, root gms.Node) (gms.RowIter, error) {
	text, err := json.MarshalIndent(jsonOf(explain(ctx, keys, root)), "", "  ")
	if err != nil {
		return nil, err
	}
	return gms.RowsToRowIter(gms.NewRow(string(text))), nil
}

// jsonOf returns the JSON document for the rows of EXPLAIN.
func jsonOf(rows []*explained) jsonPlan {
	p := jsonPlan{Block: new(jsonBlock)}
	block, last := p.Block, (*explained)(nil)
	for _, r := range rows {
		if last != nil && (r.id != last.id || r.kind != last.kind) {
			block = new(jsonBlock)
			p.Others = append(p.Others, jsonOther{r.kind, block})
		}
		block.ID, last = r.id, r
		block.tables = append(block.tables, r.json())
	}
	p.Block.arrange()
	for _, o := range p.Others {
		o.Block.arrange()
	}
	return p
}

// arrange moves the tables to the field that MySQL uses: one for a single table, another for
// several.
func (b *jsonBlock) arrange() {
	if len(b.tables) == 1 {
		b.Table = b.tables[0]
		return
	}
	for _, t := range b.tables {
		b.Loop = append(b.Loop, jsonInner{t})
	}
}

func (r *explained) json() *jsonTable {
	t := &jsonTable{Name: r.table, Access: r.access, Key: r.key, KeyBytes: r.keyBytes, Ref: r.ref, Extra: r.extra}
	if r.keys != "" {
		t.Possible = []string{r.keys}
	}
	if r.rowsKnown {
		t.Rows = &r.rows
	}
	return t
}
