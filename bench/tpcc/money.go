package tpcc

import (
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
)

// A money is an amount in cents, DECIMAL(12,2) in SQL.
type money int64

// A rate is a tax or a discount in ten-thousandths, DECIMAL(4,4) in SQL.
type rate int

const (
	moneyDigits = 2
	rateDigits  = 4
	rateOne     = 10_000
)

var (
	_ driver.Valuer = money(0)
	_ sql.Scanner   = (*money)(nil)
	_ driver.Valuer = rate(0)
	_ sql.Scanner   = (*rate)(nil)
)

// less returns what is left of m after a discount, cut to whole cents.
func (m money) less(discount rate) money { return m * money(rateOne-discount) / rateOne }

// plus returns m with taxes, cut to whole cents.
func (m money) plus(taxes rate) money { return m * money(rateOne+taxes) / rateOne }

func (m money) String() string { return fixed(int64(m), moneyDigits) }

func (r rate) String() string { return fixed(int64(r), rateDigits) }

// Value implements driver.Valuer.
func (m money) Value() (driver.Value, error) { return m.String(), nil }

// Value implements driver.Valuer.
func (r rate) Value() (driver.Value, error) { return r.String(), nil }

// Scan implements sql.Scanner.
func (m *money) Scan(src any) error {
	n, err := scanFixed(src, moneyDigits)
	*m = money(n)
	return err
}

// Scan implements sql.Scanner.
func (r *rate) Scan(src any) error {
	n, err := scanFixed(src, rateDigits)
	*r = rate(n)
	return err
}

// fixed prints n units of 10^-digits.
func fixed(n int64, digits int) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	s := fmt.Sprintf("%0*d", digits+1, n)
	return sign + s[:len(s)-digits] + "." + s[len(s)-digits:]
}

// scanFixed is the inverse of fixed.
func scanFixed(src any, digits int) (int64, error) {
	var s string
	switch v := src.(type) {
	case []byte:
		s = string(v)
	case string:
		s = v
	default:
		return 0, fmt.Errorf("tpcc: a decimal number of type %T", src)
	}
	whole, part, _ := strings.Cut(s, ".")
	if len(part) > digits {
		return 0, fmt.Errorf("tpcc: %q has more than %d decimals", s, digits)
	}
	n, err := strconv.ParseInt(whole+part+strings.Repeat("0", digits-len(part)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("tpcc: decimal number: %w", err)
	}
	return n, nil
}
