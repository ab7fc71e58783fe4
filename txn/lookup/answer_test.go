package lookup

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/farmsql/farmsql/region"
	"github.com/farmsql/farmsql/txn"
	"github.com/farmsql/farmsql/txn/outcome"
)

func source(i int) txn.Source {
	return txn.Source{Ptr: region.MakePtr(region.Addr(64*(1+i)), 1, 7), Version: region.Version(i)}
}

func TestAnswerEncoding(t *testing.T) {
	for _, a := range []Answer{
		{Found: true, Value: []byte("value"), Sources: []txn.Source{source(1)}},
		{Value: []byte{}, Sources: []txn.Source{source(1), source(2)}},
	} {
		b := a.append(nil)
		got, err := decodeAnswer(b)
		if err != nil || !reflect.DeepEqual(got, a) {
			t.Errorf("got %v, %v, want %v", got, err, a)
		}
		for n := range len(b) - len(a.Value) {
			if _, err := decodeAnswer(b[:n]); !errors.Is(err, ErrMessage) {
				t.Errorf("%d of %d bytes: %v", n, len(b), err)
			}
		}
	}
	for name, b := range map[string][]byte{
		"neither found nor absent": append([]byte{2}, Answer{Sources: []txn.Source{source(1)}}.append(nil)[1:]...),
		"no source":                Answer{}.append(nil),
		"a nil source":             Answer{Sources: []txn.Source{{}}}.append(nil),
	} {
		if _, err := decodeAnswer(b); !errors.Is(err, ErrMessage) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An answer says all of its sources, or is refused.
func TestSourcesOfAnAnswer(t *testing.T) {
	if b, err := (Answer{Sources: make([]txn.Source, sourcesMax)}).reply(); err != nil || len(b) != answerHeaderBytes+sourcesMax*sourceBytes {
		t.Errorf("%d bytes, %v", len(b), err)
	}
	if _, err := (Answer{Sources: make([]txn.Source, sourcesMax+1)}).reply(); !errors.Is(err, outcome.ErrTooLarge) {
		t.Errorf("%v, want that it is too large", err)
	}
}

func FuzzDecodeAnswer(f *testing.F) {
	f.Add(Answer{Found: true, Value: []byte("value"), Sources: []txn.Source{source(1), source(2)}}.append(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if a, err := decodeAnswer(b); err == nil && !bytes.Equal(a.append(nil), b) {
			t.Errorf("%x is %v", b, a)
		}
	})
}
