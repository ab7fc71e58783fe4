package tatp

import (
	"math/rand/v2"
)

// Cardinalities of the description.
const (
	accessMax    = 4 // rows of access information of a subscriber, 1 at least
	facilityMax  = 4 // rows of special facilities of a subscriber, 1 at least
	forwardMax   = 3 // rows of call forwarding of a facility, 0 at least
	startStep    = 8 // hours between two times at which a forwarding can start
	endMax       = 24
	activeChance = 85 // percentage of facilities that are active
	numberDigits = 15
)

// A person is all that the tables hold about one subscriber.
type person struct {
	subscriber
	access     []access
	facilities []facility
}

type subscriber struct {
	id    uint32
	bits  uint16
	hex   [10]uint8 // numbers from 0 to 15
	bytes [10]uint8
	msc   uint32
	vlr   uint32
}

type access struct {
	kind         uint8
	data1, data2 uint8
	data3        [3]byte
	data4        [5]byte
}

type facility struct {
	kind       uint8
	active     bool
	errorCntrl uint8
	dataA      uint8
	dataB      [5]byte
	forwards   []forward
}

type forward struct {
	start, end uint8
	number     [numberDigits]byte
}

// numberOf returns a subscriber's number: the identifier in decimal digits.
func numberOf(id uint32) (n [numberDigits]byte) {
	for i := numberDigits - 1; i >= 0; i-- {
		n[i] = '0' + byte(id%10)
		id /= 10
	}
	return n
}

// A generator draws the data that the tables are loaded with. The data of a subscriber depend
// only on the seed and the subscriber.
type generator struct {
	seed uint64
	pcg  rand.PCG
	rnd  *rand.Rand
	p    person
}

func newGenerator(seed uint64) *generator {
	g := &generator{seed: seed}
	g.rnd = rand.New(&g.pcg)
	return g
}

// person draws a subscriber's data, which are valid until the next call.
func (g *generator) person(id uint32) *person {
	g.pcg.Seed(g.seed, uint64(id))
	p := &g.p
	p.subscriber = subscriber{id: id, bits: uint16(g.rnd.UintN(1 << 10)), msc: positive(g.rnd), vlr: positive(g.rnd)}
	for i := range p.hex {
		p.hex[i], p.bytes[i] = uint8(g.rnd.UintN(16)), uint8(g.rnd.UintN(256))
	}
	p.access = p.access[:0]
	for _, kind := range g.some(accessMax, 1+g.rnd.IntN(accessMax)) {
		a := access{kind: kind, data1: uint8(g.rnd.UintN(256)), data2: uint8(g.rnd.UintN(256))}
		letters(g.rnd, a.data3[:])
		letters(g.rnd, a.data4[:])
		p.access = append(p.access, a)
	}
	n := 0
	kinds := g.some(facilityMax, 1+g.rnd.IntN(facilityMax))
	for cap(p.facilities) < facilityMax { // the elements are used again, with their memory for forwards
		p.facilities = append(p.facilities[:cap(p.facilities)], facility{})
	}
	p.facilities = p.facilities[:len(kinds)]
	for _, kind := range kinds {
		g.facility(&p.facilities[n], kind)
		n++
	}
	return p
}

func (g *generator) facility(f *facility, kind uint8) {
	*f = facility{
		kind: kind, active: g.rnd.IntN(100) < activeChance, errorCntrl: uint8(g.rnd.UintN(256)), dataA: uint8(g.rnd.UintN(256)),
		forwards: f.forwards[:0],
	}
	letters(g.rnd, f.dataB[:])
	for _, n := range g.some(forwardMax, g.rnd.IntN(forwardMax+1)) {
		w := forward{start: (n - 1) * startStep}
		w.end = w.start + 1 + uint8(g.rnd.UintN(8))
		digits(g.rnd, &w.number)
		f.forwards = append(f.forwards, w)
	}
}

// some returns k different numbers from 1 to n, ascending.
func (g *generator) some(n, k int) []uint8 {
	all := make([]uint8, 0, 4) // stays on the stack
	for i := 1; i <= n; i++ {
		// left numbers remain, from i to n, and k - len(all) of them must be taken. So take i with the
		// probability (k - len(all)) / left.
		if left := n - i + 1; g.rnd.IntN(left) < k-len(all) {
			all = append(all, uint8(i))
		}
	}
	return all
}

// find returns the facility of a kind, or nil.
func (p *person) find(kind uint8) *facility {
	for i := range p.facilities {
		if p.facilities[i].kind == kind {
			return &p.facilities[i]
		}
	}
	return nil
}

// positive draws a number from 1 to 2^32-1.
func positive(rnd *rand.Rand) uint32 { return 1 + uint32(rnd.Uint64N(1<<32-1)) }

func letters(rnd *rand.Rand, b []byte) {
	for i := range b {
		b[i] = 'A' + byte(rnd.UintN(26))
	}
}

func digits(rnd *rand.Rand, n *[numberDigits]byte) {
	for i := range n {
		n[i] = '0' + byte(rnd.UintN(10))
	}
}

// totals are sums over all loaded data.
type totals struct {
	access, accessData                uint64 // rows of access information; their data1, data2 and kind
	facilities, active, facilityError uint64 // facilities; the active ones; errorCntrl of all
	forwards                          uint64
}

func (t *totals) add(p *person) {
	t.access += uint64(len(p.access))
	for _, a := range p.access {
		t.accessData += uint64(a.data1) + uint64(a.data2) + uint64(a.kind)
	}
	t.facilities += uint64(len(p.facilities))
	for i := range p.facilities {
		f := &p.facilities[i]
		if f.active {
			t.active++
		}
		t.facilityError += uint64(f.errorCntrl)
		t.forwards += uint64(len(f.forwards))
	}
}
