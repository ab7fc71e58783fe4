package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/farmsql/farmsql"
	"github.com/farmsql/farmsql/internal/cli"
)

// operatorSocket is the name of the socket, next to the status socket, at which a process accepts
// requests to its operator: one JSON request, one JSON reply. Only the user who runs the process
// can connect.
const operatorSocket = "operator.sock"

const (
	// operatorPatience is how long a request is retried while the configuration is
	// changing.
	operatorPatience = 15 * time.Second
	// movePatience is operatorPatience for a request to move a region. It is shorter because the client
	// repeats the request, and reports in between what it waits for.
	movePatience = 5 * time.Second
	// requestPatience is how long a client of the socket may take to send its request.
	requestPatience = 2 * time.Second
	// requestBytesMax bounds a request.
	requestBytesMax = 1 << 20
)

// An operatorRequest is one request.
type operatorRequest struct {
	Forget *forgetRequest `json:"forget,omitempty"`
	Drain  *drainRequest  `json:"drain,omitempty"`
	Move   *moveRequest   `json:"move,omitempty"`
	Resize *resizeRequest `json:"resize,omitempty"`
}

// A drainRequest has the parameters of farmsql.Operator.Drain.
type drainRequest struct {
	Machine int  `json:"machine"`
	Undo    bool `json:"undo"`
}

// A moveRequest has the parameters of farmsql.Operator.Move.
type moveRequest struct {
	Region int `json:"region"`
	From   int `json:"from"`
	To     int `json:"to"`
}

// A resizeRequest has the parameter of farmsql.Operator.Resize.
type resizeRequest struct {
	Replicas int `json:"replicas"`
}

// A forgetRequest has the parameters of farmsql.Operator.Forget.
type forgetRequest struct {
	Machine int   `json:"machine"`
	Lost    []int `json:"lost"`
}

// An operatorReply reports whether the request succeeded.
type operatorReply struct {
	Done  bool   `json:"done"`
	Error string `json:"error,omitempty"` // the reason if it failed
	// Waits is set if the request failed only because its time was too short. Earlier programs leave it out.
	Waits bool `json:"waits,omitempty"`
}

// unknownRequest is the error for a request that the process does not know. Earlier programs use the same text.
const unknownRequest = "the request asks for nothing that this version knows"

// A waitingError says why a request has not been granted yet.
type waitingError string

func (e waitingError) Error() string { return string(e) }

// An operator is the interface of farmsql.Operator.
type operator interface {
	Status() farmsql.Status
	Forget(ctx context.Context, machine int, lost []int) error
	Drain(ctx context.Context, machine int, undo bool) error
	Move(ctx context.Context, region, from, to int) error
	Resize(ctx context.Context, replicas int) error
}

// serveOperator answers at the sockets in a folder, which this process has locked, until
// end is called.
func serveOperator(folder string, o operator) (end func() error, err error) {
	status, err := serveStatus(folder, o.Status)
	if err != nil {
		return nil, err
	}
	requests, err := serveSocket(folder, operatorSocket, func(c net.Conn) { answerOperator(c, o) })
	if err != nil {
		return nil, errors.Join(err, status.Close())
	}
	return func() error { return errors.Join(requests.Close(), status.Close()) }, nil
}

// answerOperator reads a request from c, executes it, and sends the reply.
func answerOperator(c net.Conn, o operator) {
	_ = c.SetReadDeadline(time.Now().Add(requestPatience))
	reply := operatorReply{Done: true}
	if err := obey(c, o); err != nil {
		reply = operatorReply{Error: cli.OneLine(err), Waits: errors.Is(err, context.DeadlineExceeded)}
	}
	_ = c.SetWriteDeadline(time.Now().Add(statusPatience))
	_ = json.NewEncoder(c).Encode(reply) // fails only if the client has gone
}

// obey reads one request of an operator, and executes it.
func obey(c net.Conn, o operator) error {
	var r operatorRequest
	if err := json.NewDecoder(io.LimitReader(c, requestBytesMax)).Decode(&r); err != nil {
		return fmt.Errorf("the request is none: %w", err)
	}
	patience := operatorPatience
	if r.Move != nil {
		patience = movePatience
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	switch {
	case r.Forget != nil:
		return o.Forget(ctx, r.Forget.Machine, r.Forget.Lost)
	case r.Drain != nil:
		return o.Drain(ctx, r.Drain.Machine, r.Drain.Undo)
	case r.Move != nil:
		return o.Move(ctx, r.Move.Region, r.Move.From, r.Move.To)
	case r.Resize != nil:
		return o.Resize(ctx, r.Resize.Replicas)
	}
	return errors.New(unknownRequest)
}

// askOperator sends a request to the process that has locked a folder. It fails with a waitingError
// if the same request may be granted later.
func askOperator(folder string, r operatorRequest) error {
	var reply operatorReply
	if err := askSocket(folder, operatorSocket, operatorPatience+2*statusPatience, r, &reply); err != nil {
		return err
	}
	switch {
	case reply.Done:
		return nil
	case reply.Waits:
		return waitingError(reply.Error)
	case reply.Error == unknownRequest:
		return errors.New("runs an earlier program, which does not know this request: start it with this farmsql")
	}
	return errors.New(reply.Error)
}
