package sqlsim

import (
	"errors"
	"fmt"
	"slices"

	"github.com/farmsql/farmsql/internal/simtest"
	"github.com/farmsql/farmsql/sql/myerr"
)

// definitions are the statements that Define runs: they change indexes and columns of
// table t, which other sessions change, and create and drop other tables.
var definitions = []string{
	"CREATE INDEX x ON t (v, k)",
	"DROP INDEX x ON t",
	"ALTER TABLE t ADD COLUMN c INT NOT NULL DEFAULT 7",
	"ALTER TABLE t DROP COLUMN c",
	"CREATE TABLE IF NOT EXISTS s0 (id INT PRIMARY KEY AUTO_INCREMENT, v INT, KEY (v))",
	"INSERT INTO s0 (v) VALUES (1), (2), (3)",
	"DELETE FROM s0 WHERE v = 2",
	"RENAME TABLE s0 TO s1",
	"TRUNCATE TABLE s0",
	"DROP TABLE IF EXISTS s0",
	"DROP TABLE IF EXISTS s1",
}

// definedOtherwise are the MySQL errors of statements that come after another session's
// definition: the object exists already, or no longer exists.
var definedOtherwise = []int{1050, 1051, 1054, 1060, 1061, 1091, 1146}

// Define implements simtest.Session.
func (s *session) Define(w simtest.Work) error {
	query := definitions[w.Rand.IntN(len(definitions))]
	var err error
	for range 3 { // the listener retries, too
		if _, err = s.run(query); !myerr.IsConflict(err) {
			break
		}
		w.Think()
	}
	if err != nil && slices.Contains(definedOtherwise, myerr.Of(err).Num) {
		return simtest.ErrGivenUp
	}
	if err = translate(err); err != nil && !errors.Is(err, simtest.ErrGivenUp) {
		return fmt.Errorf("%s: %w", query, err)
	}
	return err
}
