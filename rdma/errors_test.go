package rdma

import (
	"errors"
	"testing"
)

func TestError(t *testing.T) {
	for want, e := range map[string]*Error{
		"rdma: connection broken: ring machine 3":                                                     {Op: OpRing, To: 3, Err: ErrBroken},
		"rdma: closed: datagram of 9 bytes to machine 4":                                              {Op: OpDatagram, To: 4, Bytes: 9, Err: ErrClosed},
		"rdma: no such registration: read 64 bytes at machine 2, key 0xa, offset 128":                 {Op: OpRead, To: 2, Key: 10, Offset: 128, Bytes: 64, Err: ErrKey},
		"rdma: outside the registration or misaligned: write 8 bytes at machine 1, key 0x0, offset 4": {Op: OpWrite, To: 1, Offset: 4, Bytes: 8, Err: ErrRange},
		"rdma: no such registration: write and ring 8 bytes at machine 1, key 0x7, offset 0":          {Op: OpWriteRing, To: 1, Key: 7, Bytes: 8, Err: ErrKey},
		"rdma: outside the registration or misaligned: op(9) 0 bytes at machine 0, key 0x0, offset 0": {Op: 9, Err: ErrRange},
	} {
		if got := e.Error(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		if !errors.Is(e, e.Err) {
			t.Errorf("%v does not match its cause", e)
		}
	}
}
