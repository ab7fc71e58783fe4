package test

import (
	"testing"
)

// TestStoppedTogether: machines that are all stopped at once are still members afterwards. Each has
// numbers of an AUTO_INCREMENT column to give back when others have already ended. That must not
// evict those others.
func TestStoppedTogether(t *testing.T) {
	f := newFleet(t, 5, 2, "")
	f.more = []string{"--lease", "3s"} // on a busy computer not all notice the signal at once
	f.start()
	f.awaitWhole()
	l := &fleetLoad{t: t, fleet: f, seed: seedOf(t)}
	db := l.connect(f.machines[0], "")
	for _, q := range []string{"CREATE DATABASE fleet", "CREATE TABLE fleet.numbers (id INT PRIMARY KEY AUTO_INCREMENT, n INT)"} {
		if _, err := db.Exec(q); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range f.machines {
		db := l.connect(m, "fleet")
		if _, err := db.Exec("INSERT INTO numbers (n) VALUES (1)"); err != nil {
			t.Fatal(err)
		}
		_ = db.Close()
	}
	f.awaitWhole()
	f.terminate()
	if c := f.configuration(); len(c.Machines) != 5 || len(c.Unavailable()) > 0 {
		t.Errorf("members when all were stopped: %v, unavailable: %v\n%s", c.Machines, c.Unavailable(), f.tails())
	}
}
