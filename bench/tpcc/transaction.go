package tpcc

import (
	"bytes"
	"errors"
	"time"
)

// Kinds of transactions, as indexes into kindNames.
const (
	kindNewOrder = iota
	kindPayment
	kindOrderStatus
	kindDelivery
	kindStockLevel
)

var kindNames = []string{"New-Order", "Payment", "Order-Status", "Delivery", "Stock-Level"}

// kind draws from the mix (clause 5.2.3).
func (r *random) kind() int {
	switch n := r.IntN(100); {
	case n < 45:
		return kindNewOrder
	case n < 88:
		return kindPayment
	case n < 92:
		return kindOrderStatus
	case n < 96:
		return kindDelivery
	}
	return kindStockLevel
}

// errUnusedItem makes a New-Order roll back, as the specification requires for one in a hundred. The
// unused item is the order's last (clause 2.4.1.5): the work for the other lines
// has been done by then (clause 2.4.2.3).
var errUnusedItem = errors.New("tpcc: item number is not valid")

const (
	linesMin, linesMax = 5, 15
	quantityMax        = 10
	paymentMin         = 100
	paymentMax         = 500_000
	carriers           = 10
	thresholdMin       = 10
	thresholdMax       = 20
	// recentOrders is the number of orders that Stock-Level reads.
	recentOrders = 20
)

// A newOrder is a New-Order (clause 2.4): the terminal's input, and then its output.
type newOrder struct {
	warehouse, district, customer int
	entered                       time.Time
	lines                         []newLine

	number int
	total  money
}

type newLine struct {
	item, supply, quantity int

	brand byte
}

// draw fills in the input of a random New-Order at the warehouse. It reuses the memory of the lines.
func (in *newOrder) draw(r *random, warehouse int) {
	*in = newOrder{
		warehouse: warehouse, district: r.between(1, districts), customer: r.customer(), entered: time.Now(), lines: in.lines[:0],
	}
	for range r.between(linesMin, linesMax) {
		line := newLine{item: r.item(), supply: warehouse, quantity: r.between(1, quantityMax)}
		if r.percent(1) {
			line.supply = r.elsewhere(warehouse)
		}
		in.lines = append(in.lines, line)
	}
	if r.percent(1) {
		in.lines[len(in.lines)-1].item = r.cfg.Items + 1 // no item has this number
	}
}

// allLocal reports whether all lines come from the order's own warehouse.
func (in *newOrder) allLocal() bool {
	for i := range in.lines {
		if in.lines[i].supply != in.warehouse {
			return false
		}
	}
	return true
}

// brand-generic of an order line (clause 2.4.2.2).
const (
	brandOriginal = 'B'
	brandGeneric  = 'G'
)

// brand returns an order line's brand-generic. It searches both I_DATA and S_DATA, as the clause
// asks, even if ORIGINAL is not in the first.
func brand(itemData, stockData []byte) byte {
	item, stock := bytes.Contains(itemData, []byte(original)), bytes.Contains(stockData, []byte(original))
	if item && stock {
		return brandOriginal
	}
	return brandGeneric
}

// elsewhere draws another warehouse. If there is no other, it returns the same.
func (r *random) elsewhere(warehouse int) int {
	if r.cfg.Warehouses == 1 {
		return warehouse
	}
	w := r.between(1, r.cfg.Warehouses-1)
	if w >= warehouse {
		w++
	}
	return w
}

// A whom describes a customer: by number, or by last name if number is 0. Of several customers with
// the last name it means the middle one.
type whom struct {
	warehouse, district, number int
	last                        string
}

func (r *random) whom(warehouse, district int) whom {
	w := whom{warehouse: warehouse, district: district}
	if r.percent(60) {
		w.last = r.lastName()
	} else {
		w.number = r.customer()
	}
	return w
}

// A payment is a Payment (clause 2.5).
type payment struct {
	warehouse, district int
	customer            whom
	amount              money
	paid                time.Time

	number  int // number of the customer
	balance money
}

func (in *payment) draw(r *random, warehouse int) {
	*in = payment{warehouse: warehouse, district: r.between(1, districts), amount: money(r.between(paymentMin, paymentMax)), paid: time.Now()}
	if r.percent(85) {
		in.customer = r.whom(warehouse, in.district)
	} else {
		in.customer = r.whom(r.elsewhere(warehouse), r.between(1, districts))
	}
}

// An orderStatus is an Order-Status (clause 2.6).
type orderStatus struct {
	customer whom

	number  int // number of the customer
	balance money
	order   int
	lines   int
	amount  money
}

func (in *orderStatus) draw(r *random, warehouse int) {
	*in = orderStatus{customer: r.whom(warehouse, r.between(1, districts))}
}

// A delivery is a Delivery (clause 2.7).
type delivery struct {
	warehouse, carrier int
	at                 time.Time

	// orders are the numbers of the delivered orders, by district - 1; 0 for a district without
	// new orders.
	orders [districts]int
}

func (in *delivery) draw(r *random, warehouse int) {
	*in = delivery{warehouse: warehouse, carrier: r.between(1, carriers), at: time.Now()}
}

// A stockLevel is a Stock-Level (clause 2.8).
type stockLevel struct {
	warehouse, district, threshold int

	low int
}

func (in *stockLevel) draw(r *random, warehouse int) {
	*in = stockLevel{warehouse: warehouse, district: r.between(1, districts), threshold: r.between(thresholdMin, thresholdMax)}
}

// middle returns the index of the customer that a last name means, among n customers sorted by first
// name. Counted from 1, it is n/2 rounded up.
func middle(n int) int { return (n+1)/2 - 1 }

// restocked returns a stock's quantity after an order has taken quantity from it: 91 are added if less
// than 10 would be left (clause 2.4.2.2).
func restocked(stock, quantity int) int {
	if stock >= quantity+10 {
		return stock - quantity
	}
	return stock - quantity + 91
}

// The two values of C_CREDIT, and the greatest length of C_DATA.
const (
	goodCredit = "GC"
	badCredit  = "BC"
	dataMax    = 500
)
