package protocol

import (
	"errors"
	"testing"
)

func TestCommon(t *testing.T) {
	for _, c := range []struct {
		a, b Range
		want Version
		text string
	}{
		{Range{1, 1}, Range{1, 1}, 1, ""},
		{Range{1, 1}, Range{1, 2}, 1, ""},
		{Range{1, 3}, Range{2, 2}, 2, ""},
		{Range{2, 5}, Range{3, 4}, 4, ""},
		{Range{3, 4}, Range{1, 3}, 3, ""},
		{Range{1, 2}, Range{3, 4}, 0, "protocol: no version of the protocol that both speak: a speaks versions 1 to 2, b speaks versions 3 to 4: " +
			"start a with a newer farmsql, which speaks version 3, or b with an older one"},
		{Range{5, 5}, Range{1, 1}, 0, "protocol: no version of the protocol that both speak: b speaks version 1, a speaks version 5: " +
			"start b with a newer farmsql, which speaks version 5, or a with an older one"},
	} {
		v, err := Common(Speaker{"a", c.a}, Speaker{"b", c.b})
		text := ""
		if err != nil {
			text = err.Error()
		}
		if v != c.want || text != c.text || (err != nil) != errors.Is(err, ErrRange) {
			t.Errorf("%v and %v: %d, %v", c.a, c.b, v, err)
		}
	}
}

// A program that states no range speaks version 1.
func TestStated(t *testing.T) {
	for _, c := range []struct {
		said, want Range
		isValid    bool
	}{
		{Range{}, Range{1, 1}, true},
		{Range{1, 2}, Range{1, 2}, true},
		{Range{0, 2}, Range{0, 2}, false},
		{Range{2, 1}, Range{2, 1}, false},
	} {
		if r := c.said.Stated(); r != c.want || r.IsValid() != c.isValid {
			t.Errorf("%v: %v, valid: %v", c.said, r, r.IsValid())
		}
	}
	if !Own.IsValid() || !Own.Has(First) {
		t.Errorf("this program speaks %v", Own)
	}
}
