package catalog

import (
	"strings"

	"github.com/farmsql/farmsql/region"
)

// Kind is a column's type without its parameters. Its numbers are stored: they never
// change, and new kinds are added at the end.
type Kind uint8

const (
	KindInvalid Kind = iota
	KindInt8
	KindInt16
	KindInt24
	KindInt32
	KindInt64
	KindUint8
	KindUint16
	KindUint24
	KindUint32
	KindUint64
	KindBit
	KindYear
	KindFloat32
	KindFloat64
	KindDecimal
	KindDate
	KindDatetime
	KindTimestamp
	KindTime
	KindChar
	KindVarchar
	KindText
	KindBinary
	KindVarbinary
	KindBlob
	KindEnum
	KindSet
	KindJSON
	KindGeometry
	KindPoint
	KindLineString
	KindPolygon
	KindMultiPoint
	KindMultiLineString
	KindMultiPolygon
	KindGeometryCollection
	KindVector
	kinds
)

// Type is a column's type with its parameters. Parameters that its Kind does not have
// are zero.
type Type struct {
	Kind Kind
	// Length is the number of characters of a string, of bytes of a binary
	// string, of bits of a BIT, of dimensions of a VECTOR; for integers and
	// floats the display width that was declared.
	Length uint32
	// Precision is DECIMAL's, or the fractional digits of a time.
	Precision uint8
	Scale     uint8
	// Collation is the collation's number in go-mysql-server, which is the same as in MySQL.
	Collation uint16
	SRID      uint32
	HasSRID   bool
	// Values are the members of an ENUM or SET.
	Values []string
}

// A Column describes one column of a table.
type Column struct {
	Name    string
	Comment string
	Extra   string
	Type    Type
	// Slot is the place of the column's value in a stored row. It never changes
	// while rows are stored, whatever other columns are added or dropped.
	Slot uint16
	// Default, Generated and OnUpdate are SQL text, empty when there is none.
	Default       string
	Generated     string
	OnUpdate      string
	Nullable      bool
	AutoIncrement bool
	Virtual       bool
	Hidden        bool
	HiddenSystem  bool
}

// Access is the structure behind an index.
type Access uint8

const (
	AccessBTree Access = iota
	AccessHash
	accesses
)

// A Part is one column of an index.
type Part struct {
	// Column is a position in Table.Columns.
	Column uint16
	// Length is the length of the indexed prefix, in characters, or in bytes for a
	// binary string; 0 means the whole value.
	Length uint32
}

// An Index maps keys to the addresses of rows.
type Index struct {
	Name    string
	Comment string
	Access  Access
	Unique  bool
	// Declared is false for the primary index of a table that declares no primary key: its keys are
	// hidden row numbers.
	Declared bool
	// Spatial marks an index that was declared SPATIAL.
	Spatial bool
	Parts   []Part
	// Anchor is the root object of the tree or hash table.
	Anchor region.Ptr
}

// A Check is a CHECK constraint.
type Check struct {
	Name     string
	Expr     string
	Enforced bool
}

// A ForeignKey is a constraint of the table that declares it.
type ForeignKey struct {
	Name          string
	ParentDB      string
	ParentTable   string
	Columns       []string
	ParentColumns []string
	OnUpdate      string
	OnDelete      string
	Resolved      bool
}

// A Reference names a foreign key that refers to the table in whose descriptor the reference
// is stored: the parent.
type Reference struct {
	DB    string
	Table string
	Name  string
}

// Alteration says that a machine is rewriting a table's rows or indexes in a series of
// transactions. Until it ends no one else writes to the table. The leader undoes the alterations
// of machines that are gone (see Lives).
type Alteration struct {
	// Owner identifies the alteration and the life that began it; 0 if there is no alteration.
	Owner uint64
	// Build are the structures under construction, to be dropped if the
	// alteration does not finish.
	Build []Storage
}

// A Storage names one structure whose memory can be freed.
type Storage struct {
	Access Access
	Anchor region.Ptr
	// Rows says that the structure's values are rows, to be freed with it.
	Rows bool
}

// A Table describes a table. Decoded tables are shared and must not be changed: change a
// Clone.
type Table struct {
	// ID is unique as long as the table's data exist. A renamed table keeps its ID.
	ID uint64
	// Generation is different after every change of the descriptor.
	Generation uint64
	DB         string
	Name       string
	Comment    string
	Collation  uint16
	// Created is Unix time in seconds.
	Created int64
	Columns []Column
	// NextSlot is the lowest slot that no column has ever had.
	NextSlot uint16
	// Primary is the index that owns the rows.
	Primary Index
	// Indexes are the secondary ones, in the order of their declaration.
	Indexes      []Index
	Checks       []Check
	ForeignKeys  []ForeignKey
	ReferencedBy []Reference
	// Sequence is the object with the next AUTO_INCREMENT number, RowSequence the one with the next
	// hidden row number, Counter the one with the row count; nil if the table needs no such object.
	Sequence    region.Ptr
	RowSequence region.Ptr
	Counter     region.Ptr
	Alteration  Alteration

	head region.Ptr
	body region.Ptr
}

// Clone returns a deep copy of a table: every field of it can be changed.
func (t *Table) Clone() *Table {
	c := *t
	c.Columns = append([]Column(nil), t.Columns...)
	c.Primary = t.Primary.clone()
	c.Indexes = make([]Index, len(t.Indexes))
	for i := range t.Indexes {
		c.Indexes[i] = t.Indexes[i].clone()
	}
	c.Checks = append([]Check(nil), t.Checks...)
	c.ForeignKeys = append([]ForeignKey(nil), t.ForeignKeys...)
	c.ReferencedBy = append([]Reference(nil), t.ReferencedBy...)
	c.Alteration.Build = append([]Storage(nil), t.Alteration.Build...)
	return &c
}

func (x Index) clone() Index {
	x.Parts = append([]Part(nil), x.Parts...)
	return x
}

// Replace returns a descriptor with the contents of next and the identity of t: its ID,
// generation and objects.
func (t *Table) Replace(next *Table) *Table {
	c := next.Clone()
	c.ID, c.Generation, c.head, c.body = t.ID, t.Generation, t.head, t.body
	return c
}

// Column returns the position of the column with a name, or -1.
func (t *Table) Column(name string) int {
	for i := range t.Columns {
		if strings.EqualFold(t.Columns[i].Name, name) {
			return i
		}
	}
	return -1
}

// Index returns the position of the secondary index with a name, or -1.
func (t *Table) Index(name string) int {
	for i := range t.Indexes {
		if strings.EqualFold(t.Indexes[i].Name, name) {
			return i
		}
	}
	return -1
}

// ForeignKey returns the position of the constraint with a name, or -1.
func (t *Table) ForeignKey(name string) int {
	for i := range t.ForeignKeys {
		if strings.EqualFold(t.ForeignKeys[i].Name, name) {
			return i
		}
	}
	return -1
}

// Storage lists the structures that hold the table's rows and keys: the indexes, and last the
// primary one, which has the rows.
func (t *Table) Storage() []Storage {
	s := make([]Storage, 0, 1+len(t.Indexes))
	for _, x := range t.Indexes {
		s = append(s, Storage{Access: x.Access, Anchor: x.Anchor})
	}
	// Rows go last: no index may point to a row that has been freed.
	return append(s, Storage{Access: t.Primary.Access, Anchor: t.Primary.Anchor, Rows: true})
}

// A Database describes a database.
type Database struct {
	Name      string
	Collation uint16

	ptr region.Ptr
}

// A Definition is a view, trigger, stored procedure or event: SQL text, with the settings that
// go-mysql-server needs to parse it.
type Definition struct {
	Name string
	// Text is the body, Statement the whole CREATE statement.
	Text      string
	Statement string
	SQLMode   string
	// Created and Modified are Unix times in nanoseconds. Events have their times in Extra.
	Created  int64
	Modified int64
	// Extra holds further fields, as the caller has encoded them.
	Extra []byte

	ptr region.Ptr
}
