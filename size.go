package farmsql

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Size is a number of bytes. Its text may have a unit, which is always a power of 1024: 4096, 64KiB,
// 1.5GiB, 2G.
type Size int64

// Units of Size.
const (
	KiB Size = 1 << (10 * (iota + 1))
	MiB
	GiB
)

var units = []struct {
	suffix string
	shift  uint
}{
	{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40},
	{"K", 10}, {"M", 20}, {"G", 30}, {"T", 40}, {"B", 0},
}

// UnmarshalText parses a flag's or an option's value.
func (s *Size) UnmarshalText(text []byte) error {
	number, shift := strings.TrimSpace(string(text)), uint(0)
	for _, u := range units {
		if rest, ok := cutSuffixFold(number, u.suffix); ok {
			number, shift = strings.TrimSpace(rest), u.shift
			break
		}
	}
	if n, err := strconv.ParseUint(number, 10, 63); err == nil {
		if n != 0 && bits.Len64(n)+int(shift) > 63 {
			return fmt.Errorf("%q is too large", text)
		}
		*s = Size(n << shift)
		return nil
	}
	f, err := strconv.ParseFloat(number, 64)
	bytes := f * float64(uint64(1)<<shift)
	isInRange := bytes >= 0 && bytes < 1<<63 // false for NaN
	if err != nil || !isInRange {
		return fmt.Errorf("%q is not a size such as 4096, 64KiB or 2GiB", text)
	}
	*s = Size(bytes)
	return nil
}

// cutSuffixFold is strings.CutSuffix without regard to upper and lower case.
func cutSuffixFold(s, suffix string) (string, bool) {
	cut := len(s) - len(suffix)
	if cut < 0 || !strings.EqualFold(s[cut:], suffix) {
		return s, false
	}
	return s[:cut], true
}

func (s Size) String() string {
	for i := 3; i >= 0; i-- { // from TiB down to KiB
		if u := units[i]; s != 0 && s%(1<<u.shift) == 0 {
			return strconv.FormatInt(int64(s)>>u.shift, 10) + u.suffix
		}
	}
	return strconv.FormatInt(int64(s), 10)
}
