package farmsql

import (
	"errors"
	"fmt"
	"testing"

	"github.com/farmsql/farmsql/index/btree"
	"github.com/farmsql/farmsql/index/hash"
	"github.com/farmsql/farmsql/txn/outcome"
)

func TestErrorsHaveOnePrefix(t *testing.T) {
	inner := fmt.Errorf("farmsql: %w", errors.Join(fmt.Errorf("txn: commit: %w", outcome.ErrClosed), errors.New("sql: other")))
	err := withPrefix("index \"a\": ", inner)
	if got, want := err.Error(), "farmsql: index \"a\": commit: machine closed\nother"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(err, outcome.ErrClosed) {
		t.Error("the cause is lost")
	}
}

// The prefix of this package is not repeated in its own errors.
func TestNativeErrorsHaveOnePrefix(t *testing.T) {
	db, err := Open(Config{Folder: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx := t.Context()
	if _, err := db.Tree(ctx, "a", btree.Config{}); err != nil {
		t.Fatal(err)
	}
	_, err = db.Hash(ctx, "a", hash.Config{})
	if got, want := fmt.Sprint(err), "farmsql: index \"a\": "+errText(ErrOtherKind); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func errText(err error) string { return err.Error()[len("farmsql: "):] }
