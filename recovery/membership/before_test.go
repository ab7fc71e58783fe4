package membership

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/farmsql/farmsql/cluster"
	"github.com/farmsql/farmsql/internal/protocol"
	"github.com/farmsql/farmsql/region"
)

// This program understands JOIN, HELLO and NEW-CONFIG-ACK as programs of version 1 (commit af0a729)
// encode them. Its own messages contain everything that theirs did, and more, which they ignore.
func TestMessagesOfVersion1(t *testing.T) {
	self := cluster.Member{Machine: 3, FailureDomain: 4, Incarnation: 5, Memory: 6, Capacity: 7, Lives: []uint64{5}}
	for name, x := range map[string]struct {
		old  string
		want any
		now  any
	}{
		"JOIN": {
			`{"Cluster":9,"Member":{"Machine":3,"FailureDomain":4,"Incarnation":5,"Memory":6,"Capacity":7,"Lives":[5]},"Holds":[1,2]}`,
			joinRequest{Cluster: 9, Member: self, Holds: []region.ID{1, 2}}, joinRequest{Cluster: 9, Member: described(self), Holds: []region.ID{1, 2}},
		},
		"HELLO": {
			`{"Member":{"Machine":3,"FailureDomain":4,"Incarnation":5,"Memory":6,"Capacity":7,"Lives":[5]},"Applied":8,"Meets":true,"Committed":8}`,
			life{Member: self, Applied: 8, Meets: true, Committed: 8}, life{Member: described(self), Applied: 8, Meets: true, Committed: 8},
		},
		"NEW-CONFIG-ACK": {
			`{"Outstanding":1000000,"Refused":[2]}`,
			ack{Outstanding: time.Millisecond, Refused: []region.ID{2}}, ack{Outstanding: time.Millisecond, Refused: []region.ID{2}, Self: described(self)},
		},
	} {
		got := reflect.New(reflect.TypeOf(x.want))
		if err := json.Unmarshal([]byte(x.old), got.Interface()); err != nil || !reflect.DeepEqual(got.Elem().Interface(), x.want) {
			t.Errorf("%s: %+v, %v", name, got.Elem(), err)
		}
		b, err := json.Marshal(x.now)
		if err != nil {
			t.Fatal(err)
		}
		b = bytes.Replace(b, fmt.Appendf(nil, `,"Address":"a","Zone":"z","Protocol":{"Min":1,"Max":%d}`, own), nil, 1)
		if i := bytes.Index(b, []byte(`,"Self":`)); i > 0 {
			b = append(b[:i], '}')
		}
		if string(b) != x.old {
			t.Errorf("%s: %s, was %s", name, b, x.old)
		}
	}
}

func described(m cluster.Member) cluster.Member {
	m.Address, m.Zone, m.Protocol = "a", "z", protocol.Own
	return m
}
