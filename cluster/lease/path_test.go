//go:build cgo && linux && (amd64 || arm64)

package lease

import (
	"encoding/hex"
	"math"
	"testing"
)

// The codes of the function's authors (vectors.h of their reference code, siphash with 128 bits): the key is
// 00 01 ... 0f and the message 00 01 ..., of so many bytes.
func TestSipHashVectors(t *testing.T) {
	var key [16]byte
	for i := range key {
		key[i] = byte(i)
	}
	for n, want := range map[int]string{
		0:  "a3817f04ba25a8e66df67214c7550293",
		1:  "da87c1d86b99af44347659119b22fc45",
		7:  "a1f1ebbed8dbc153c0b84aa61ff08239",
		8:  "3b62a9ba6258f5610f83e264f31497b4",
		15: "5493e99933b0a8117e08ec0f97cfc3d9",
		16: "6ee2a4ca67b054bbfd3315bf85230577",
		63: "5150d1772f50834a503e069a973fbd7c",
		80: "d2c76ae17a4370f858fba4795a0df822", // longer than the authors', by OpenSSL
	} {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(i)
		}
		if code := siphash(key, b); hex.EncodeToString(code[:]) != want {
			t.Errorf("of %d bytes: %x, want %s", n, code, want)
		}
	}
}

func lineKey(number, secret byte) (k [LineKeyBytes]byte) {
	k[0], k[8] = number, secret
	return k
}

func TestDatagrams(t *testing.T) {
	c := newCPath()
	expect := func(what string, b []byte, want string) {
		t.Helper()
		if got := c.open(b); got != want {
			t.Errorf("%s is %s, not %s", what, got, want)
		}
	}
	c.handOut(lineKey(1, 1), true)
	first := c.seal(1)
	if string(first[:len(LineMagic)]) != LineMagic {
		t.Errorf("a datagram begins with %q", first[:8])
	}
	expect("a datagram", first, "admitted")
	expect("its copy", first, "replayed")
	expect("a truncated datagram", first[:len(first)-1], "garbage")
	expect("an empty datagram", nil, "garbage")
	expect("a long datagram", append(c.seal(2), 0), "garbage")
	for i := range first { // no bit counts for nothing
		b := c.seal(3)
		b[i] ^= 0x10
		if got := c.open(b); got == "admitted" {
			t.Errorf("a datagram with another byte %d is admitted", i)
		}
	}

	late, later := c.seal(4), c.seal(5)
	expect("a datagram that has overtaken another", later, "admitted")
	expect("the one overtaken", late, "admitted")
	expect("the one overtaken, again", late, "replayed")
	old := c.seal(6)
	c.skip(1000)
	expect("a datagram after many were lost", c.seal(7), "admitted")
	expect("one from before them", old, "replayed")
	c.skip(1000 - 63)
	expect("the last that may be overtaken", c.seal(8), "admitted")
	expect("one that is older", func() []byte { c.skip(1000 - 64); return c.seal(9) }(), "replayed")
	c.skip(math.MaxUint64)
	expect("a datagram after which none could come", c.seal(10), "replayed")

	c.skip(1001)
	former := c.seal(11)
	c.handOut(lineKey(2, 2), false)
	expect("a datagram of the former key", former, "admitted")
	c.skip(1002)
	former = c.seal(12)
	c.handOut(lineKey(3, 3), false)
	expect("one of the last key that has come, after two were handed out", former, "admitted")
	c.handOut(lineKey(3, 3), true)
	expect("one of the latest key, which makes its predecessor the former one", c.seal(16), "admitted")
	c.handOut(lineKey(4, 4), true)
	c.skip(1003)
	expect("one of a key before the former", former, "unknown key")
	expect("one of the latest key", c.seal(13), "admitted")
	other := newCPath()
	other.handOut(lineKey(3, 4), true)
	expect("a datagram of another secret", other.seal(14), "forged")
	expect("a datagram without a key", newCPath().seal(15), "unknown key")
}
