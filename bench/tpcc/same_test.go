package tpcc

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/farmsql/farmsql/bench"
)

// Both APIs begin with the same data and run the same transactions. The terminals must show the
// same.
func TestNativeAndSQLAnswerAlike(t *testing.T) {
	ctx := context.Background()
	cfg := Config{Customers: 30, Items: 1000, Seed: 7}
	var clients [2]*client
	for i, api := range []bench.API{bench.Native, bench.SQL} {
		_, w := open(t, bench.TargetConfig{API: api}, cfg)
		c, err := w.NewClient(ctx, &bench.Thread{Seed: 1, Number: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		clients[i] = c.(*client)
	}
	shown := make(map[string]bool) // of what would be hard to get right by chance
	for n := range 300 {
		kind := n % len(kindNames)
		native, sql := clients[0].show(ctx, kind), clients[1].show(ctx, kind)
		if native != sql {
			t.Fatalf("transaction %d, %s:\nnative %s\nsql    %s", n, kindNames[kind], native, sql)
		}
		shown[native] = true
	}
	if brands := brandsOf(shown); brands != "BG" {
		t.Errorf("lines of brands %q, want both", brands)
	}
	if len(shown) < 200 {
		t.Errorf("only %d different answers", len(shown))
	}
}

// brandsOf returns which brands any of the orders shows.
func brandsOf(shown map[string]bool) (s string) {
	for _, b := range []byte{brandOriginal, brandGeneric} {
		for order := range shown {
			if _, brands, ok := strings.Cut(order, "brands "); ok && strings.IndexByte(brands, b) >= 0 {
				s += string(b)
				break
			}
		}
	}
	return s
}

// show runs a transaction of a kind, and returns what its terminal shows.
func (c *client) show(ctx context.Context, kind int) string {
	err := c.enter(ctx, kind, 1)
	if err != nil && !errors.Is(err, errUnusedItem) {
		return err.Error()
	}
	switch kind {
	case kindNewOrder:
		brands := ""
		for _, line := range c.newOrder.lines[:len(c.newOrder.lines)-1] { // the last may be refused
			brands += string(line.brand)
		}
		return fmt.Sprintf("order %d, %v, refused: %t, brands %s", c.newOrder.number, c.newOrder.total, err != nil, brands)
	case kindPayment:
		return fmt.Sprintf("customer %d, %v", c.payment.number, c.payment.balance)
	case kindOrderStatus:
		return fmt.Sprintf("customer %d, %v, order %d, %d lines, %v", c.orderStatus.number, c.orderStatus.balance, c.orderStatus.order, c.orderStatus.lines, c.orderStatus.amount)
	case kindDelivery:
		return fmt.Sprint(c.delivery.orders)
	}
	return fmt.Sprintf("%d of district %d are low", c.stockLevel.low, c.stockLevel.district)
}
