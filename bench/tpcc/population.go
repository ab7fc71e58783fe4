package tpcc

import (
	"time"
)

// The rows of the initial database (clause 4.3.3), as both APIs load them.

type address struct{ street1, street2, city, state, zip string }

type itemRow struct {
	id, image int
	name      string
	price     money
	data      string
}

// A placeRow is a row of WAREHOUSE or DISTRICT; district is 0 for a warehouse.
type placeRow struct {
	warehouse, district int
	name                string
	address
	tax  rate
	ytd  money // year-to-date payments
	next int   // number of a district's next order
}

type stockRow struct {
	warehouse, item, quantity int
	districts                 [districts]string
	data                      string
}

type customerRow struct {
	warehouse, district, id int
	first, middle, last     string
	address
	phone, credit, data  string
	since                time.Time
	limit, balance, paid money
	discount             rate
}

type historyRow struct {
	warehouse, district, customer, atWarehouse, atDistrict int
	at                                                     time.Time
	amount                                                 money
	data                                                   string
}

// An orderRow is an order with its lines. carrier is 0 if the order is not delivered.
type orderRow struct {
	warehouse, district, id, customer, carrier int
	at                                         time.Time
	lines                                      []lineRow
}

type lineRow struct {
	item, supply, quantity int
	delivered              time.Time // zero if the line is not delivered
	amount                 money
	info                   string
}

// A loader loads rows. It belongs to one goroutine, and may buffer rows until
// flush.
type loader interface {
	item(*itemRow) error
	warehouse(*placeRow) error
	district(*placeRow) error
	stock(*stockRow) error
	customer(*customerRow, *historyRow) error
	order(*orderRow) error
	flush() error
	close() error
}

const (
	initialLimit    money = 50_000_00
	initialPayment  money = 10_00
	linePriceMax          = 9_999_99
	itemPriceMin          = 1_00
	itemPriceMax          = 100_00
	taxMax                = 2000
	discountMax           = 5000
	initialQuantity       = 5
)

// rows returns the number of rows that progress counts for one warehouse: stock, customers and orders.
func (c *Config) rows() int { return c.Items + 2*c.Customers*districts }

// itemPart loads all items.
func itemPart(r *random, l loader) error {
	for id := 1; id <= r.cfg.Items; id++ {
		err := l.item(&itemRow{
			id: id, image: r.between(1, 10_000), name: r.text(14, 24), price: money(r.between(itemPriceMin, itemPriceMax)), data: r.data(),
		})
		if err != nil {
			return err
		}
	}
	return l.flush()
}

// stockPart loads a warehouse and its stock. It returns the number of rows that progress counts: those of
// the stock.
func stockPart(r *random, l loader, warehouse int) (rows int, err error) {
	row := r.place(warehouse)
	row.ytd = money(districts*r.cfg.Customers) * initialPayment
	if err := l.warehouse(&row); err != nil {
		return 0, err
	}
	for item := 1; item <= r.cfg.Items; item++ {
		s := stockRow{warehouse: warehouse, item: item, quantity: r.between(10, 100), data: r.data()}
		for d := range s.districts {
			s.districts[d] = r.text(24, 24)
		}
		if err := l.stock(&s); err != nil {
			return 0, err
		}
	}
	return r.cfg.Items, l.flush()
}

// districtPart loads a district, its customers and their orders. It returns the number of rows that
// progress counts: those of customers and orders.
func districtPart(r *random, l loader, warehouse, district int) (rows int, err error) {
	row := r.place(warehouse)
	row.district, row.ytd, row.next = district, money(r.cfg.Customers)*initialPayment, r.cfg.Customers+1
	if err := l.district(&row); err != nil {
		return 0, err
	}
	now := time.Now()
	for id := 1; id <= r.cfg.Customers; id++ {
		c := r.customerRow(warehouse, district, id, now)
		h := historyRow{warehouse, district, id, warehouse, district, now, initialPayment, r.text(12, 24)}
		if err := l.customer(&c, &h); err != nil {
			return 0, err
		}
	}
	for i, customer := range r.Perm(r.cfg.Customers) {
		o := r.orderRow(warehouse, district, i+1, customer+1, now)
		if err := l.order(&o); err != nil {
			return 0, err
		}
	}
	return 2 * r.cfg.Customers, l.flush()
}

func (r *random) address() address {
	return address{r.text(10, 20), r.text(10, 20), r.text(10, 20), r.letters(letters[:capital], 2), r.zip()}
}

func (r *random) place(warehouse int) placeRow {
	return placeRow{warehouse: warehouse, name: r.text(6, 10), address: r.address(), tax: rate(r.between(0, taxMax))}
}

func (r *random) customerRow(warehouse, district, id int, now time.Time) customerRow {
	c := customerRow{
		warehouse: warehouse, district: district, id: id, first: r.text(8, 16), middle: "OE", address: r.address(),
		phone: r.number(16), credit: goodCredit, data: r.text(300, 500), since: now, limit: initialLimit,
		balance: -initialPayment, paid: initialPayment, discount: rate(r.between(0, discountMax)),
	}
	if id <= r.cfg.names() {
		c.last = lastName(id - 1) // every last name occurs
	} else {
		c.last = r.lastName()
	}
	if r.percent(10) {
		c.credit = badCredit
	}
	return c
}

func (r *random) orderRow(warehouse, district, id, customer int, now time.Time) orderRow {
	o := orderRow{warehouse: warehouse, district: district, id: id, customer: customer, at: now}
	isDelivered := id <= r.cfg.delivered()
	if isDelivered {
		o.carrier = r.between(1, carriers)
	}
	for range r.between(linesMin, linesMax) {
		line := lineRow{item: r.between(1, r.cfg.Items), supply: warehouse, quantity: initialQuantity, info: r.text(24, 24)}
		if isDelivered {
			line.delivered = now
		} else {
			line.amount = money(r.between(1, linePriceMax))
		}
		o.lines = append(o.lines, line)
	}
	return o
}
