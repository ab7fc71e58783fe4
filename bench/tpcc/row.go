package tpcc

import (
	"encoding/binary"
	"time"
)

// Rows on the native API are objects of fixed layout. The value of a field is its offset in the row.
type (
	intField   int // 4 bytes
	moneyField int // 8 bytes
	timeField  int // 8 bytes; zero is not a time
	// A textField begins at offset at and has n bytes. Zeros fill the space behind a shorter text.
	textField struct{ at, n int }
)

func (f intField) get(row []byte) int {
	return int(int32(binary.LittleEndian.Uint32(row[f:])))
}

func (f intField) set(row []byte, v int) { binary.LittleEndian.PutUint32(row[f:], uint32(int32(v))) }

func (f intField) add(row []byte, n int) { f.set(row, f.get(row)+n) }

func (f moneyField) get(row []byte) money { return money(binary.LittleEndian.Uint64(row[f:])) }

func (f moneyField) set(row []byte, v money) { binary.LittleEndian.PutUint64(row[f:], uint64(v)) }

func (f moneyField) add(row []byte, v money) { f.set(row, f.get(row)+v) }

func (f timeField) set(row []byte, t time.Time) {
	if t.IsZero() {
		binary.LittleEndian.PutUint64(row[f:], 0)
		return
	}
	binary.LittleEndian.PutUint64(row[f:], uint64(t.UnixNano()))
}

func (f timeField) isSet(row []byte) bool { return binary.LittleEndian.Uint64(row[f:]) != 0 }

// get returns the field's text in the row, without the zeros behind it.
func (f textField) get(row []byte) []byte {
	b := row[f.at : f.at+f.n]
	for len(b) > 0 && b[len(b)-1] == 0 {
		b = b[:len(b)-1]
	}
	return b
}

func (f textField) set(row []byte, s string) {
	field := row[f.at : f.at+f.n]
	clear(field[copy(field, s):])
}

// Lengths of text.
const (
	nameMax     = 16 // greatest length of a customer's first and last name
	placeMax    = 10 // greatest length of the name of a warehouse or a district
	streetMax   = 20
	addressMax  = 3*streetMax + 2 + 9
	infoMax     = 24 // S_DIST_xx, H_DATA
	itemNameMax = 24
	itemDataMax = 50
	phoneMax    = 16
)

// The part of a warehouse or a district that no transaction changes.
const (
	placeTax     = intField(0)
	placeAddress = 4 + placeMax
	placeBytes   = placeAddress + addressMax
)

var placeName = textField{4, placeMax}

// The year-to-date payments of a warehouse or a district, an object of its own.
const (
	yearToDate = moneyField(0)
	ytdBytes   = 8
)

// The number of a district's next order, an object of its own.
const (
	nextOrder      = intField(0)
	nextOrderBytes = 4
)

// A customer, without C_DATA, which is an object of its own.
const (
	customerID         = intField(0)
	customerDiscount   = intField(4)
	customerPayments   = intField(8)
	customerDeliveries = intField(12)
	customerBalance    = moneyField(16)
	customerPaid       = moneyField(24)
	customerLimit      = moneyField(32)
	customerSince      = timeField(40)
	customerAddress    = 48 + 2*nameMax + 2 + 2 + phoneMax
	customerBytes      = customerAddress + addressMax
)

var (
	customerFirst  = textField{48, nameMax}
	customerMiddle = textField{48 + nameMax, 2}
	customerLast   = textField{50 + nameMax, nameMax}
	customerCredit = textField{50 + 2*nameMax, 2}
	customerPhone  = textField{52 + 2*nameMax, phoneMax}

	customerText = textField{0, dataMax} // C_DATA
)

// A payment in the history. Its key is not one of the specification's columns. OfDistrict and
// OfWarehouse are the customer's; District and Warehouse received the payment.
const (
	historyCustomer    = intField(0)
	historyOfDistrict  = intField(4)
	historyOfWarehouse = intField(8)
	historyDistrict    = intField(12)
	historyWarehouse   = intField(16)
	historyAt          = timeField(20)
	historyAmount      = moneyField(28)
	historyBytes       = 36 + infoMax
)

var historyText = textField{36, infoMax}

// An order. Its carrier is 0 until it is delivered.
const (
	orderCustomer = intField(0)
	orderCarrier  = intField(4)
	orderLines    = intField(8)
	orderIsLocal  = intField(12)
	orderAt       = timeField(16)
	orderBytes    = 24
)

// The lines of an order in one object: their number, then each line (lineOf).
const (
	linesCount = intField(0)
	linesStart = 4

	lineItem      = intField(0)
	lineSupply    = intField(4)
	lineQuantity  = intField(8)
	lineAmount    = moneyField(12)
	lineDelivered = timeField(20)
	lineBytes     = 28 + infoMax
)

var lineInfo = textField{28, infoMax}

func linesBytes(n int) int { return linesStart + n*lineBytes }

func lineOf(lines []byte, i int) []byte { return lines[linesBytes(i):linesBytes(i+1)] }

// An item.
const (
	itemImage = intField(0)
	itemPrice = moneyField(4)
	itemBytes = 12 + itemNameMax + itemDataMax
)

var (
	itemName = textField{12, itemNameMax}
	itemData = textField{12 + itemNameMax, itemDataMax}
)

// A stock: the part that transactions change.
const (
	stockQuantity = intField(0)
	stockOrders   = intField(4)
	stockRemote   = intField(8)
	stockYTD      = intField(12)
	stockBytes    = 16
)

// stockDataBytes is the length of the part of a STOCK row that no transaction changes: S_DIST_xx
// and S_DATA.
const stockDataBytes = districts*infoMax + itemDataMax

var stockText = textField{districts * infoMax, itemDataMax}

func stockInfo(district int) textField { return textField{(district - 1) * infoMax, infoMax} }

// setAddress writes an address.
func setAddress(row []byte, at int, a *address) {
	for _, f := range []struct {
		n int
		s string
	}{{streetMax, a.street1}, {streetMax, a.street2}, {streetMax, a.city}, {2, a.state}, {9, a.zip}} {
		textField{at, f.n}.set(row, f.s)
		at += f.n
	}
}

// Keys of the indexes.
const (
	keyBytes        = 8 // key
	keyOfDistrict   = 4 // bytes of a key that identify the district
	customerOrder   = keyBytes + 4
	nameKeyBytes    = keyOfDistrict + 2*nameMax + 4
	historyKeyBytes = 16
)

// appendKey appends a key that sorts by warehouse, district and number.
func appendKey(b []byte, warehouse, district, number int) []byte {
	return binary.BigEndian.AppendUint64(b, (uint64(warehouse)<<40)|(uint64(district)<<32)|uint64(number))
}

// splitKey is the inverse of appendKey.
func splitKey(b []byte) (warehouse, district, number int) {
	k := binary.BigEndian.Uint64(b)
	return int(k >> 40), int((k >> 32) & 0xff), int(k & 0xffffffff)
}

// appendCustomerOrder appends the key of a customer's order.
func appendCustomerOrder(b []byte, warehouse, district, customer, order int) []byte {
	return binary.BigEndian.AppendUint32(appendKey(b, warehouse, district, customer), uint32(order))
}

// appendName appends the prefix of the keys of all customers with a last name.
func appendName(b []byte, warehouse, district int, last string) []byte {
	b = appendKey(b, warehouse, district, 0)
	b = b[:len(b)-keyBytes+keyOfDistrict]
	return append(append(b, last...), make([]byte, nameMax-len(last))...)
}
