package raftstore

import "fmt"

// quiet is the library's logger, and drops its messages: the Store's errors say the same. But the library
// panics through its logger when the log or a message contradicts what it knows, and must not go on.
type quiet struct{}

// A contradiction is the panic of quiet.
type contradiction string

func (quiet) Debug(...any)            {}
func (quiet) Debugf(string, ...any)   {}
func (quiet) Info(...any)             {}
func (quiet) Infof(string, ...any)    {}
func (quiet) Warning(...any)          {}
func (quiet) Warningf(string, ...any) {}
func (quiet) Error(...any)            {}
func (quiet) Errorf(string, ...any)   {}

func (quiet) Fatal(v ...any)                 { panic(contradiction(fmt.Sprint(v...))) }
func (quiet) Fatalf(format string, v ...any) { panic(contradiction(fmt.Sprintf(format, v...))) }
func (quiet) Panic(v ...any)                 { panic(contradiction(fmt.Sprint(v...))) }
func (quiet) Panicf(format string, v ...any) { panic(contradiction(fmt.Sprintf(format, v...))) }

// recoverLibrary, deferred, turns a panic of the library into an error, so that the store
// stops and not the database.
func recoverLibrary(err *error) {
	switch p := recover().(type) {
	case nil:
	case contradiction:
		*err = fmt.Errorf("%w: its log and the other machines' contradict each other: %s; has a machine lost its folder, or got an old copy of it?", ErrDamaged, string(p))
	default:
		panic(p)
	}
}
