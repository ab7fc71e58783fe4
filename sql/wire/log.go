package wire

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"

	vtlog "github.com/dolthub/vitess/go/vt/log"
	"github.com/sirupsen/logrus"
)

// go-mysql-server logs through logrus, and its protocol library through package
// variables. Both log every failed statement, which concerns the client and not the
// operator. So all of their messages become debug messages of our logger; only a
// panic is an error.

// engineLogger returns a logger for all sessions of an engine.
func engineLogger(to *slog.Logger) *logrus.Logger {
	l := logrus.New()
	redirect(l, to)
	return l
}

func redirect(l *logrus.Logger, to *slog.Logger) {
	l.SetOutput(io.Discard)
	l.SetLevel(logrus.WarnLevel)
	l.AddHook(logHook{to})
}

type logHook struct{ to *slog.Logger }

func (h logHook) Levels() []logrus.Level { return logrus.AllLevels }

func (h logHook) Fire(e *logrus.Entry) error {
	attrs := make([]any, 0, 2*len(e.Data))
	for k, v := range e.Data {
		attrs = append(attrs, k, v)
	}
	h.to.Debug("engine: "+e.Message, attrs...)
	return nil
}

var adoptOnce sync.Once

// adoptLogs takes over the process-wide loggers of the libraries, once, for the
// first server. A logrus that the program has set up for itself stays as it is.
func adoptLogs(to *slog.Logger) {
	adoptOnce.Do(func() {
		std := logrus.StandardLogger()
		if std.Out == os.Stderr && std.Level == logrus.InfoLevel && len(std.Hooks) == 0 {
			redirect(std, to)
		}
		debug := func(v ...any) { forward(to, fmt.Sprint(v...)) }
		debugf := func(format string, v ...any) { forward(to, fmt.Sprintf(format, v...)) }
		vtlog.Info, vtlog.Infof = debug, debugf
		vtlog.Warning, vtlog.Warningf = debug, debugf
		vtlog.Error, vtlog.Errorf = debug, debugf
	})
}

func forward(to *slog.Logger, message string) {
	if strings.Contains(message, "panic") {
		to.Error("protocol: " + message)
		return
	}
	to.Debug("protocol: " + message)
}
