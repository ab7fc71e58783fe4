package txn

import (
	"errors"
	"testing"

	"github.com/farmsql/farmsql/txn/message"
)

// Requests for annexes and replies that are none are refused.
func TestBadAnnexMessages(t *testing.T) {
	for _, b := range [][]byte{nil, make([]byte, 25)} {
		if _, err := message.DecodeAnnexRequest(b); !errors.Is(err, message.ErrBad) {
			t.Errorf("request %v: %v", b, err)
		}
	}
	for _, body := range [][]byte{nil, make([]byte, 8), {0, 0, 0, 0, 0, 0, 0, 1}} {
		if _, err := annexReply(message.Message{Kind: message.Reply, Body: body}); !errors.Is(err, message.ErrBad) {
			t.Errorf("reply %v: %v", body, err)
		}
	}
}
