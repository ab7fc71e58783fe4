package tpcc

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/txn"
)

// pay executes a Payment (clause 2.5.2.2).
func (x *native) pay(t *txn.Tx, in *payment) error {
	home := x.part(in.warehouse)
	warehouse, err := read(t, home.warehouses, x.number(in.warehouse, 0, 0))
	if err != nil {
		return err
	}
	ytd, err := write(t, home.warehouseYTD, x.key)
	if err != nil {
		return err
	}
	yearToDate.add(ytd, in.amount)
	district, err := read(t, home.districts, x.number(in.warehouse, in.district, 0))
	if err != nil {
		return err
	}
	if ytd, err = write(t, home.districtYTD, x.key); err != nil {
		return err
	}
	yearToDate.add(ytd, in.amount)
	if err := x.payFor(t, in); err != nil {
		return err
	}
	return x.remember(t, in, placeName.get(warehouse), placeName.get(district))
}

// payFor changes the customer; one with bad credit also gets a note.
func (x *native) payFor(t *txn.Tx, in *payment) error {
	p, err := x.whom(t, &in.customer)
	if err != nil {
		return err
	}
	customer, err := t.Write(p)
	if err != nil {
		return err
	}
	customerBalance.add(customer, -in.amount)
	customerPaid.add(customer, in.amount)
	customerPayments.add(customer, 1)
	in.number, in.balance = customerID.get(customer), customerBalance.get(customer)
	if string(customerCredit.get(customer)) != badCredit {
		return nil
	}
	who := &in.customer
	data, err := write(t, x.part(who.warehouse).customerData, x.number(who.warehouse, who.district, in.number))
	if err != nil {
		return err
	}
	customerText.set(data, in.note(string(customerText.get(data))))
	return nil
}

// note returns the new C_DATA of a customer with bad credit: the payment, followed by the old data.
func (in *payment) note(data string) string {
	s := fmt.Sprintf("%d %d %d %d %d %v|%s", in.number, in.customer.district, in.customer.warehouse, in.district, in.warehouse, in.amount, data)
	return s[:min(len(s), dataMax)]
}

// remember inserts the payment into the history, in the partition of the warehouse that received it.
func (x *native) remember(t *txn.Tx, in *payment, warehouse, district []byte) error {
	x.payments++ // a retried attempt uses a new number
	x.key = appendKey(x.key[:0], in.warehouse, in.district, in.number)
	x.key = binary.BigEndian.AppendUint32(x.key, x.client)
	x.key = binary.BigEndian.AppendUint32(x.key, x.payments)
	var row [historyBytes]byte
	h := historyRow{
		warehouse: in.customer.warehouse, district: in.customer.district, customer: in.number,
		atWarehouse: in.warehouse, atDistrict: in.district, at: in.paid, amount: in.amount,
	}
	h.encode(row[:])
	// H_DATA is the names of the warehouse and the district, with historyGap between.
	text := row[historyText.at:]
	gap := copy(text, warehouse) // where the gap begins
	copy(text[gap+len(historyGap):], district)
	copy(text[len(warehouse):], historyGap)
	return x.part(in.warehouse).histories.Insert(t, x.key, row[:])
}

// historyGap is between the names of the warehouse and the district.
const historyGap = "    "

// encode writes the row into memory of zeros; h.data may be empty.
func (h *historyRow) encode(row []byte) {
	historyCustomer.set(row, h.customer)
	historyOfDistrict.set(row, h.district)
	historyOfWarehouse.set(row, h.warehouse)
	historyDistrict.set(row, h.atDistrict)
	historyWarehouse.set(row, h.atWarehouse)
	historyAt.set(row, h.at)
	historyAmount.set(row, h.amount)
	historyText.set(row, h.data)
}
