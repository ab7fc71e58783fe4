package sql

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	gms "github.com/dolthub/go-mysql-server/sql"

	"github.com/farmsql/farmsql/internal/cputime"
)

// Planning and running a statement end soon after its context has ended.
func TestEndsWhenNotWanted(t *testing.T) {
	c := openBounded(t, boundedMemory(0, math.MaxInt64))
	c.exec("CREATE PROCEDURE spin() BEGIN DECLARE i INT DEFAULT 0; WHILE 1 = 1 DO SET i = i + 1; END WHILE; END")
	c.exec("CREATE PROCEDURE spin2() BEGIN l: LOOP ITERATE l; END LOOP; END")
	joined := make([]string, 20)
	for i := range joined {
		joined[i] = fmt.Sprintf("t t%d", i)
		if i > 0 {
			joined[i] += fmt.Sprintf(" ON t%d.k = t%d.k", i, i-1)
		}
	}
	for _, query := range []string{
		"SELECT COUNT(*) FROM t a, t b, t c WHERE a.s = 'no' AND b.s <> c.s",
		"SELECT COUNT(*) FROM (SELECT s FROM t LIMIT 5000) a JOIN (SELECT s FROM t LIMIT 5000) b ON a.s < b.s AND a.s > b.s JOIN (SELECT s FROM t LIMIT 5000) c ON b.s < c.s",
		"SELECT COUNT(*) FROM t a WHERE NOT EXISTS (SELECT 1 FROM t b WHERE b.s = CONCAT(a.s, 'x'))",
		"WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r, t WHERE n < 900) SELECT COUNT(*) FROM r WHERE n < 0",
		"SELECT SLEEP(100)", "SELECT SLEEP(1) FROM t",
		"CALL spin()", "CALL spin2()",
		"SELECT COUNT(*) FROM " + strings.Join(joined, " JOIN "),
		"UPDATE t SET k = (SELECT COUNT(*) FROM (SELECT * FROM t) u, (SELECT * FROM t) w WHERE u.s < w.s)",
		"SELECT COUNT(*) FROM t WHERE " + repeated(20_000, "k = 100", " OR "),
		"SELECT COUNT(*) FROM t a JOIN t b ON a.s <> b.s WHERE a.id IN (" + repeated(200_000, "%d", ",") + ")",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		ended := make(chan error, 1)
		begin := cputime.Now(t)
		go func() { ended <- c.runWithin(ctx, query) }()
		select {
		case err := <-ended:
			wantSoon(t, begin, 6*time.Second, query) // about one
			if err == nil {
				t.Logf("%.120s was quick", query)
			}
		case <-time.After(time.Minute):
			t.Fatalf("%.120s does not end", query)
		}
		cancel()
		c.s.Abort()
		c.s.Settle()
	}
}

// runWithin runs a statement in a context, and drops its rows.
func (c *client) runWithin(ctx context.Context, query string) error {
	sqlCtx := c.in.e.NewContext(ctx, c.s, gms.WithQuery(query))
	_, iter, _, err := c.in.e.GMS().Query(sqlCtx, query)
	if err != nil {
		return err
	}
	for err == nil {
		_, err = iter.Next(sqlCtx)
	}
	_ = iter.Close(sqlCtx) // err says how it has ended
	return err
}
