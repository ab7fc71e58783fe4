package message

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
)

// An AnnexRequest is a coordinator's request to a participant: make an annex of Bytes bytes, or
// release the annex with the given Number.
type AnnexRequest struct {
	Sender        rdma.MachineID
	Worker        uint16
	Connection    uint32
	Bytes, Number uint64
}

const annexRequestBytes = 24

// Encode encodes the request.
func (r AnnexRequest) Encode() []byte {
	b := binary.LittleEndian.AppendUint16(nil, uint16(r.Sender))
	b = binary.LittleEndian.AppendUint16(b, r.Worker)
	b = binary.LittleEndian.AppendUint32(b, r.Connection)
	b = binary.LittleEndian.AppendUint64(b, r.Bytes)
	return binary.LittleEndian.AppendUint64(b, r.Number)
}

// DecodeAnnexRequest decodes the result of AnnexRequest.Encode.
func DecodeAnnexRequest(b []byte) (r AnnexRequest, err error) {
	if len(b) != annexRequestBytes {
		return r, fmt.Errorf("%w: request for an annex of %d bytes", ErrBad, len(b))
	}
	le := binary.LittleEndian
	r = AnnexRequest{rdma.MachineID(le.Uint16(b)), le.Uint16(b[2:]), le.Uint32(b[4:]), le.Uint64(b[8:]), le.Uint64(b[16:])}
	return r, nil
}
