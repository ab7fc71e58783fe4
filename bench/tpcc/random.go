package tpcc

import (
	"math/rand/v2"
	"strings"
)

// random draws the random values of clauses 2.1.6 and 4.3.2. It belongs to one goroutine.
type random struct {
	*rand.Rand
	cfg *Config
	c   constants
}

// constants are the constants C of NURand for its three uses (clause 2.1.6.1).
type constants struct{ name, customer, item int }

// The constants A of NURand.
const (
	nameA     = 255
	customerA = 1023
	itemA     = 8191
)

// newRandom returns a source of random numbers. Sources with different streams are independent. All
// clients of a run have the same constants.
func newRandom(cfg *Config, c constants, seed, stream uint64) *random {
	return &random{Rand: rand.New(rand.NewPCG(seed, stream)), cfg: cfg, c: c}
}

// The constants C for last names of loading and of running must differ by 65 to 119, but not by 96
// or 112 (clause 2.1.6.1).
const (
	nameDeltaMin = 65
	nameDeltaMax = 119
)

// drawConstants draws the constants for loading and those for running.
func drawConstants(seed uint64) (loading, running constants) {
	r := random{Rand: rand.New(rand.NewPCG(seed, 0))}
	loading = constants{r.between(0, nameA), r.between(0, customerA), r.between(0, itemA)}
	running = loading
	for !apart(loading.name, running.name) {
		running.name = r.between(0, nameA)
	}
	return loading, running
}

// apart reports whether two constants for last names differ as required.
func apart(a, b int) bool {
	delta := max(a-b, b-a)
	return delta >= nameDeltaMin && delta <= nameDeltaMax && delta != 96 && delta != 112
}

// between draws from low to high, both included.
func (r *random) between(low, high int) int { return low + r.IntN(high-low+1) }

// percent returns true in n of 100 cases.
func (r *random) percent(n int) bool { return r.IntN(100) < n }

// nurand is the function NURand(A, low, high). If the range is smaller than the specification's, A
// is halved until it fits.
func (r *random) nurand(a, c, low, high int) int {
	n := high - low + 1
	for a >= n && a > 1 {
		a /= 2
	}
	return ((r.between(0, a)|r.between(low, high))+c)%n + low
}

func (r *random) customer() int { return r.nurand(customerA, r.c.customer, 1, r.cfg.Customers) }

func (r *random) item() int { return r.nurand(itemA, r.c.item, 1, r.cfg.Items) }

// lastName draws the last name of a customer.
func (r *random) lastName() string {
	return lastName(r.nurand(nameA, r.c.name, 0, r.cfg.names()-1))
}

var syllables = [...]string{"BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"}

// lastName returns last name n of a thousand (clause 4.3.2.3).
func lastName(n int) string {
	return syllables[(n/100)%10] + syllables[(n/10)%10] + syllables[n%10]
}

const (
	digits  = "0123456789"
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz" + digits
	capital = 26 // number of capital letters
)

// text draws an a-string of low to high characters.
func (r *random) text(low, high int) string { return r.letters(letters, r.between(low, high)) }

// number draws an n-string of n digits.
func (r *random) number(n int) string { return r.letters(digits, n) }

func (r *random) letters(alphabet string, n int) string {
	var s strings.Builder
	for range n {
		s.WriteByte(alphabet[r.IntN(len(alphabet))])
	}
	return s.String()
}

func (r *random) zip() string { return r.number(4) + "11111" }

// original occurs somewhere in I_DATA and S_DATA of a tenth of the items and stocks.
const original = "ORIGINAL"

// data draws I_DATA or S_DATA (clause 4.3.3.1).
func (r *random) data() string {
	s := r.text(26, 50)
	if !r.percent(10) {
		return s
	}
	at := r.between(0, len(s)-len(original))
	return s[:at] + original + s[at+len(original):]
}
