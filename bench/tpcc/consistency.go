package tpcc

import (
	"fmt"
	"strings"

	"github.com/farmsql/farmsql/bench"
)

// An Inconsistency is a violated condition, with the first place of a violation and the number of
// further places.
type Inconsistency struct {
	Condition int // 1 to 12 of clause 3.3.2; 0 if rows are missing
	Text      string
	More      int
}

// A ConsistencyError lists the conditions that do not hold. It is a
// bench.ErrInconsistent.
type ConsistencyError []Inconsistency

func (e ConsistencyError) Error() string {
	var parts []string
	for _, i := range e {
		s := fmt.Sprintf("condition %d: %s", i.Condition, i.Text)
		if i.More > 0 {
			s += fmt.Sprintf(" (and %d more)", i.More)
		}
		parts = append(parts, s)
	}
	return bench.ErrInconsistent.Error() + ": " + strings.Join(parts, "; ")
}

// Unwrap returns bench.ErrInconsistent.
func (e ConsistencyError) Unwrap() error { return bench.ErrInconsistent }

// An auditor checks the consistency conditions on a ledger, which has the rows that they are about.
type auditor struct {
	*ledger
	found ConsistencyError
}

// check returns a ConsistencyError if the ledger violates conditions.
func (l *ledger) check() error {
	a := auditor{ledger: l}
	a.warehousesAndDistricts()
	for w := range l.warehouses {
		for d := range l.warehouses[w].districts {
			a.district(w+1, d+1, &l.warehouses[w].districts[d])
		}
	}
	if len(a.found) == 0 {
		return nil
	}
	return a.found
}

// require records a violation of the condition unless it holds.
func (a *auditor) require(condition int, holds bool, format string, args ...any) {
	if holds {
		return
	}
	for i := range a.found {
		if a.found[i].Condition == condition {
			a.found[i].More++
			return
		}
	}
	a.found = append(a.found, Inconsistency{Condition: condition, Text: fmt.Sprintf(format, args...)})
}

// warehousesAndDistricts checks that all rows of tables with a fixed content exist,
// and conditions 1 and 8.
func (a *auditor) warehousesAndDistricts() {
	a.require(0, a.items == a.cfg.Items, "%d items of %d", a.items, a.cfg.Items)
	for _, c := range a.counts {
		a.require(0, c.n == c.rows(a.cfg), "%d rows of %s, want %d", c.n, c.name, c.rows(a.cfg))
	}
	for i := range a.warehouses {
		w := &a.warehouses[i]
		a.require(0, w.exists, "no warehouse %d", i+1)
		for item, exists := range w.stocks {
			a.require(0, exists, "warehouse %d: no stock of item %d", i+1, item+1)
		}
		sum := money(0)
		for d := range w.districts {
			a.require(0, w.districts[d].exists, "no district %d of warehouse %d", d+1, i+1)
			sum += w.districts[d].ytd
		}
		a.require(1, w.ytd == sum, "warehouse %d: W_YTD is %v, the sum of D_YTD %v", i+1, w.ytd, sum)
		a.require(8, w.ytd == w.paid, "warehouse %d: W_YTD is %v, the sum of H_AMOUNT %v", i+1, w.ytd, w.paid)
	}
}

// district checks the other conditions, which are about one district.
func (a *auditor) district(warehouse, district int, d *districtBook) {
	where := fmt.Sprintf("warehouse %d, district %d", warehouse, district)
	t := a.orders(where, d)
	a.require(2, d.next-1 == t.last && (t.news == 0 || d.next-1 == t.lastNew), "%s: D_NEXT_O_ID is %d, the last order %d, the last new one %d",
		where, d.next, t.last, t.lastNew)
	a.require(3, t.news == 0 || t.lastNew-t.firstNew+1 == t.news, "%s: %d new orders from %d to %d", where, t.news, t.firstNew, t.lastNew)
	a.require(4, t.says == t.lines, "%s: the sum of O_OL_CNT is %d, there are %d lines", where, t.says, t.lines)
	a.require(9, d.ytd == d.paid, "%s: D_YTD is %v, the sum of H_AMOUNT %v", where, d.ytd, d.paid)
	deliveries := 0
	for i := range d.customers {
		deliveries += d.customers[i].deliveries
	}
	// The specification subtracts 2100, for the initial state only; deliveries count here too.
	initial := a.cfg.delivered()
	a.require(11, t.orders-t.news == initial+deliveries, "%s: %d orders, %d of them new, %d delivered at first and %d since",
		where, t.orders, t.news, initial, deliveries)
	a.customers(where, d)
}

// totals are sums over the orders of a district.
type totals struct{ orders, last, news, firstNew, lastNew, says, lines int }

// orders adds up the orders, and checks conditions 5, 6 and 7.
func (a *auditor) orders(where string, d *districtBook) (t totals) {
	for i := range d.orders {
		o, n := &d.orders[i], i+1
		t.lines += o.lines
		if o.exists {
			t.orders++
			t.last = n
			t.says += o.says
		}
		if o.isNew {
			t.news++
			t.lastNew = n
			if t.firstNew == 0 {
				t.firstNew = n
			}
		}
		a.require(5, o.isNew == (o.exists && o.carrier == 0), "%s: order %d (there: %t) has O_CARRIER_ID %d; new: %t", where, n, o.exists, o.carrier, o.isNew)
		a.require(6, o.says == o.lines, "%s: order %d has O_OL_CNT %d and %d lines", where, n, o.says, o.lines)
		shouldBe := o.lines
		if o.carrier == 0 {
			shouldBe = 0
		}
		a.require(7, o.delivered == shouldBe, "%s: order %d has O_CARRIER_ID %d, and OL_DELIVERY_D in %d of %d lines", where, n, o.carrier, o.delivered, o.lines)
	}
	return t
}

// customers checks conditions 10 and 12.
func (a *auditor) customers(where string, d *districtBook) {
	delivered := make([]money, len(d.customers))
	for i := range d.orders {
		if o := &d.orders[i]; o.exists {
			delivered[o.customer-1] += o.amount
		}
	}
	for i := range d.customers {
		c := &d.customers[i]
		a.require(0, c.exists, "%s: no customer %d", where, i+1)
		a.require(10, c.balance == delivered[i]-c.paid, "%s: customer %d has C_BALANCE %v, but %v of orders and %v of payments",
			where, i+1, c.balance, delivered[i], c.paid)
		a.require(12, c.balance+c.ytd == delivered[i], "%s: customer %d has C_BALANCE %v, C_YTD_PAYMENT %v and %v of orders",
			where, i+1, c.balance, c.ytd, delivered[i])
	}
}
