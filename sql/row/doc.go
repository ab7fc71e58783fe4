// Package row holds the codecs of rows and keys: it encodes values, rows and index entries as
// bytes. It knows go-mysql-server's types and values, the catalog's types, and the objects that
// hold rows; it knows no session, table or engine.
//
//	value  ValueCodec   the bytes of a column's value, as short as it is       value.go, types.go
//	row    Codec, View  all values, found by their slots                       codec.go
//	object Load, Store  a row in an object, large values outside of it         object.go
//	key    KeyCodec     bytes in the order of the values                       key.go, weights.go
//	range  Bounds       the keys that a condition on a column admits           bounds.go
//
// A codec is made for one version of a table, and may be used by several goroutines. Decoded
// values never alias the bytes that they were decoded from; a View's values do. Stored bytes are
// input: decoding bytes that are not a row fails with ErrCorrupt.
package row
