package sql

import (
	"context"
	"slices"
	"testing"

	"github.com/farmsql/farmsql/farm"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/sql/myerr"
)

// leaks returns the objects that nothing points to.
func (in *instance) leaks() (leaks []farm.Fault) {
	in.t.Helper()
	ctx := context.Background()
	if err := in.cat.Sweep(ctx); err != nil {
		in.t.Fatal(err)
	}
	used := []region.Ptr{in.cluster.Root()}
	err := in.e.Check(ctx, in.cluster.Root(), func(p region.Ptr) error {
		used = append(used, p)
		return nil
	}, nil)
	if err != nil {
		in.t.Fatal(err)
	}
	if leaks, err = in.cluster.Check(context.Background(), slices.Values(used)); err != nil {
		in.t.Fatal(err)
	}
	return leaks
}

// A table that is not created, because there is one of its name or something is wrong
// with it, leaves nothing behind, whatever its transaction commits.
func TestTableNotCreatedLeavesNothing(t *testing.T) {
	in := newInstance(t)
	c := in.client("d")
	const columns = "(id INT PRIMARY KEY AUTO_INCREMENT, v INT, KEY (v))"
	c.exec("CREATE DATABASE d")
	c.exec("CREATE TABLE t " + columns)
	c.exec("CREATE TABLE IF NOT EXISTS t " + columns)
	if _, _, err := c.run("CREATE TABLE t " + columns); myerr.Of(err).Num != 1050 {
		t.Errorf("created again: %v", err)
	}
	c.exec("BEGIN")
	if _, _, err := c.run("CREATE TABLE u (id INT, k BLOB, PRIMARY KEY (k))"); err == nil {
		t.Error("a BLOB is a key")
	}
	if _, _, err := c.run("CREATE TABLE t " + columns); myerr.Of(err).Num != 1050 {
		t.Errorf("created again: %v", err)
	}
	c.exec("COMMIT")
	if leaks := in.leaks(); len(leaks) > 0 {
		t.Errorf("left behind: %v", leaks)
	}
}
