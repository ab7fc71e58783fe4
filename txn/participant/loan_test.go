package participant

import (
	"reflect"
	"testing"

	"github.com/farmsql/farmsql/internal/prefetch"
)

// No part of the loans shares a line, or a pair of lines, with another part or with the fields of
// Replicas that commits load.
func TestLoanLines(t *testing.T) {
	const apart = 2 * prefetch.LineBytes
	if shards, _ := reflect.TypeFor[Loans]().FieldByName("shards"); shards.Offset < apart {
		t.Errorf("the parts begin with %d bytes of padding", shards.Offset)
	}
	part := reflect.TypeFor[loanShard]()
	if last, _ := part.FieldByName("refused"); part.Size() < last.Offset+last.Type.Size()+apart {
		t.Errorf("a part of %d bytes ends with too little padding: refused is at %d", part.Size(), last.Offset)
	}
}
