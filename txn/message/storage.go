package message

import (
	"encoding/binary"
	"fmt"

	"github.com/farmsql/farmsql/rdma"
	"github.com/farmsql/farmsql/region"
)

// A Reservation is a primary's request to a backup: reserve storage for blocks.
type Reservation struct {
	Region     region.ID
	Off, Bytes uint64
}

const reservationBytes = 24

// Encode encodes the request.
func (r Reservation) Encode() []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(r.Region))
	b = binary.LittleEndian.AppendUint64(b, r.Off)
	return binary.LittleEndian.AppendUint64(b, r.Bytes)
}

// DecodeReservation decodes the result of Reservation.Encode.
func DecodeReservation(b []byte) (r Reservation, err error) {
	if len(b) != reservationBytes {
		return r, fmt.Errorf("%w: reservation of %d bytes", ErrBad, len(b))
	}
	le := binary.LittleEndian
	id := le.Uint64(b)
	if id != uint64(region.ID(id)) {
		return r, fmt.Errorf("%w: reservation in region %d", ErrBad, id)
	}
	return Reservation{Region: region.ID(id), Off: le.Uint64(b[8:]), Bytes: le.Uint64(b[16:])}, nil
}

// A Discard is a primary's request to a backup: free the storage of free blocks.
type Discard struct {
	Region     region.ID
	Off, Bytes uint64
	In         uint32 // the configuration in which the primary asks
	Primary    rdma.MachineID
}

const discardBytes = 28

// Encode encodes the request.
func (d Discard) Encode() []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(d.Region))
	b = binary.LittleEndian.AppendUint64(b, d.Off)
	b = binary.LittleEndian.AppendUint64(b, d.Bytes)
	b = binary.LittleEndian.AppendUint32(b, d.In)
	return binary.LittleEndian.AppendUint32(b, uint32(d.Primary))
}

// DecodeDiscard decodes the result of Discard.Encode.
func DecodeDiscard(b []byte) (d Discard, err error) {
	if len(b) != discardBytes {
		return d, fmt.Errorf("%w: discard of %d bytes", ErrBad, len(b))
	}
	le := binary.LittleEndian
	return Discard{
		Region: region.ID(le.Uint32(b)), Off: le.Uint64(b[4:]), Bytes: le.Uint64(b[12:]),
		In: le.Uint32(b[20:]), Primary: rdma.MachineID(le.Uint32(b[24:])),
	}, nil
}
