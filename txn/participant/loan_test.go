package participant

import (
	"encoding/binary"
	"errors"
	"reflect"
	"testing"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/prefetch"
	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn/message"
	"github.com/farmsql/farmsql/txn/route"
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

// Loans of slots in regions with another primary end, and no others.
func TestForgottenLoans(t *testing.T) {
	var l Loans
	to := Loan{Borrower{Machine: 1}, 5}
	at := func(id region.ID, i uint32) region.Ptr {
		return region.Ptr{Addr: region.MakeAddr(id, 64*i)}
	}
	for i := range uint32(100) {
		if !l.Add(at(1, i), to) || !l.Add(at(2, i), to) {
			t.Fatal("not lent")
		}
	}
	l.Forget(func(p region.Ptr) bool { return p.Addr.Region() == 1 })
	for i := range uint32(100) {
		if l.Take(at(1, i)) || !l.Take(at(2, i)) {
			t.Fatalf("slot %d is lent in region 1, or not lent in region 2", i)
		}
	}
}

// Only the loan of the configuration that a borrower names comes back.
func TestReturnedLoans(t *testing.T) {
	p := region.Ptr{Addr: region.MakeAddr(1, 64)}
	for config, want := range map[uint32]bool{0: true, 4: false, 5: true, 6: false} { // any order
		var l Loans
		l.Add(p, Loan{Borrower{Machine: 1}, 5})
		if got := l.Return(p, config); got != want || l.Take(p) == want {
			t.Errorf("of configuration 5, returned of %d: %v, want %v", config, got, want)
		}
		if l.Return(p, 5) {
			t.Error("returned twice")
		}
	}
}

// An object whose region has moved away counts as locked; in a region that nobody knows there is none.
func TestValidateOfARegionThatHasMoved(t *testing.T) {
	var r Replicas
	r.Routes = new(route.Table)
	r.Routes.Init(5)
	p := cluster.Placement{Region: 3, Primary: 7}
	r.Routes.Add(p, nil)
	ask := func(id region.ID) (message.Message, error) {
		body := binary.LittleEndian.AppendUint64(nil, uint64(region.MakeAddr(id, 64)))
		return r.Validate(message.Message{C: 1, Body: binary.LittleEndian.AppendUint64(body, 1)})
	}
	if reply, err := ask(3); err != nil || message.Verdict(reply.Body[0]) != message.Locked {
		t.Errorf("%v, %v", reply.Body, err)
	}
	if _, err := ask(4); !errors.Is(err, message.ErrBad) {
		t.Error(err)
	}
}
