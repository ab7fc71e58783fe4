package calltest

import "testing"

func TestTranscript(t *testing.T) {
	x := new(Transcript)
	x.End(1, "dies")
	x.Send(1, 2, "b to 2")
	x.Send(1, 2, "a to 2")
	x.Send(1, 0, "a to 0")
	x.Do(1, "second")
	x.Do(0, "first")
	x.Do(1, "first")
	want := "  0 first\n  1 second\n  1 first\n  1 a to 0\n  1 a to 2\n  1 b to 2\n  1 dies\n"
	if got := x.Take(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := x.Take(); got != "" {
		t.Errorf("%s is left", got)
	}
}
