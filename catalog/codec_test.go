package catalog

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/farmsql/farmsql/region"
)

func somePtr(n uint32) region.Ptr { return region.MakePtr(region.MakeAddr(1, n*64), 3, 7) }

func sampleTable() *Table {
	return &Table{
		ID: 1 << 63, Generation: 5, DB: "d", Name: "T", Comment: "c", Collation: 255, Created: -1,
		Columns: []Column{
			{Name: "id", Type: Type{Kind: KindInt64}, Slot: 0, AutoIncrement: true},
			{Name: "e", Type: Type{Kind: KindEnum, Collation: 255, Values: []string{"x", ""}}, Slot: 2, Nullable: true, Default: "'x'", Comment: "k", Extra: "e"},
			{Name: "v", Type: Type{Kind: KindVarchar, Length: 20, Collation: 46}, Slot: 1, Generated: "(id)", OnUpdate: "now()", Hidden: true},
			{Name: "virtual", Type: Type{Kind: KindPoint, SRID: 4326, HasSRID: true}, Virtual: true, HiddenSystem: true, Generated: "(1)"},
		},
		NextSlot: 3,
		Primary:  Index{Name: "PRIMARY", Unique: true, Declared: true, Parts: []Part{{Column: 0}}, Anchor: somePtr(1)},
		Indexes: []Index{
			{Name: "i", Comment: "x", Access: AccessHash, Unique: true, Declared: true, Parts: []Part{{Column: 1}, {Column: 2, Length: 3}}, Anchor: somePtr(2)},
			{Name: "s", Spatial: true, Declared: true, Parts: []Part{{Column: 3}}, Anchor: somePtr(3)},
		},
		Checks:       []Check{{Name: "ck", Expr: "(id > 0)", Enforced: true}},
		ForeignKeys:  []ForeignKey{{Name: "f", ParentDB: "p", ParentTable: "q", Columns: []string{"id"}, ParentColumns: []string{"x"}, OnUpdate: "CASCADE", OnDelete: "RESTRICT", Resolved: true}},
		ReferencedBy: []Reference{{DB: "d", Table: "u", Name: "g"}},
		Sequence:     somePtr(4), Counter: somePtr(5),
		Alteration: Alteration{Owner: 9, Build: []Storage{{Access: AccessBTree, Anchor: somePtr(6), Rows: true}}},
	}
}

func TestTableRoundTrip(t *testing.T) {
	for _, want := range []*Table{sampleTable(), {Name: "empty"}} {
		got, err := DecodeTable(EncodeTable(want))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v\nwant %+v", got, want)
		}
	}
}

// Editing a clone does not change the original.
func TestCloneIsDeep(t *testing.T) {
	a := sampleTable()
	b := a.Clone()
	b.Columns[0].Name, b.Primary.Parts[0].Column, b.Indexes[0].Parts[1].Length = "other", 1, 9
	b.Checks[0].Name, b.ForeignKeys[0].Name, b.ReferencedBy[0].Name, b.Alteration.Build[0].Rows = "o", "o", "o", false
	if !reflect.DeepEqual(a, sampleTable()) {
		t.Errorf("changed with its clone: %+v", a)
	}
}

func TestDecodeRefuses(t *testing.T) {
	good := EncodeTable(sampleTable())
	for i := range good {
		if tbl, err := DecodeTable(good[:i]); err == nil {
			t.Fatalf("%d of %d bytes decoded to %+v", i, len(good), tbl)
		}
	}
	newer := bytes.Clone(good)
	newer[0] = formatTable + 1
	if _, err := DecodeTable(newer); !errors.Is(err, ErrFormat) {
		t.Errorf("newer format: %v", err)
	}
	for name, spoil := range map[string]func(*Table){
		"slot beyond":    func(t *Table) { t.Columns[0].Slot = 3 },
		"slot twice":     func(t *Table) { t.Columns[0].Slot = 1 },
		"index column":   func(t *Table) { t.Indexes[0].Parts[0].Column = 4 },
		"primary key":    func(t *Table) { t.Primary.Parts[0].Column = 99 },
		"kind":           func(t *Table) { t.Columns[0].Type.Kind = kinds },
		"no kind":        func(t *Table) { t.Columns[0].Type.Kind = 0 },
		"access":         func(t *Table) { t.Indexes[0].Access = accesses },
		"build's access": func(t *Table) { t.Alteration.Build[0].Access = accesses },
	} {
		tbl := sampleTable()
		spoil(tbl)
		if _, err := DecodeTable(EncodeTable(tbl)); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzDecodeTable(f *testing.F) {
	f.Add(EncodeTable(sampleTable()))
	f.Add(EncodeTable(&Table{}))
	f.Fuzz(func(t *testing.T, b []byte) {
		tbl, err := DecodeTable(b)
		if err != nil {
			return
		}
		again, err := DecodeTable(EncodeTable(tbl))
		if err != nil || !reflect.DeepEqual(tbl, again) {
			t.Errorf("%+v became %+v, %v", tbl, again, err)
		}
	})
}

func FuzzDecodeOthers(f *testing.F) {
	f.Add(EncodeDatabase(&Database{Name: "d", Collation: 255}))
	f.Add(EncodeDefinition(&Definition{Name: "v", Text: "t", Statement: "s", SQLMode: "m", Created: 1, Modified: -2, Extra: []byte{1}}))
	f.Add(encodeStorage([]Storage{{Access: AccessHash, Anchor: somePtr(1), Rows: true}}))
	f.Fuzz(func(t *testing.T, b []byte) {
		if db, err := DecodeDatabase(b); err == nil {
			if again, err := DecodeDatabase(EncodeDatabase(db)); err != nil || *again != *db {
				t.Errorf("%+v became %+v, %v", db, again, err)
			}
		}
		if d, err := DecodeDefinition(b); err == nil {
			if again, err := DecodeDefinition(EncodeDefinition(d)); err != nil || !reflect.DeepEqual(d, again) {
				t.Errorf("%+v became %+v, %v", d, again, err)
			}
		}
		if s, err := decodeStorage(b); err == nil {
			if again, err := decodeStorage(encodeStorage(s)); err != nil || !reflect.DeepEqual(s, again) {
				t.Errorf("%+v became %+v, %v", s, again, err)
			}
		}
	})
}
