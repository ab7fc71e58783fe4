package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/farmsql/farmsql/internal/invariant"
)

// Options describe how a workload is run.
type Options struct {
	// Threads is the number of clients that run transactions at each machine, or at the server
	// of a DSN; 1 by default.
	Threads int
	// WarmUp is not measured, Duration is.
	WarmUp, Duration time.Duration
	// Transactions, if not 0, is how often each thread calls Client.Do, all of it
	// measured, in place of WarmUp and Duration.
	Transactions int
	// Rate, if not 0, is the number of transactions that arrive per second, at all threads of
	// all machines together: the open loop.
	Rate float64
	// Seed determines which transactions the clients draw.
	Seed uint64
	// Progress shows how far the run is; nil shows nothing.
	Progress *Progress `json:"-"`
	// Profile, if not empty, is the file for a profile of the processor time in the measured
	// time. Further profiles have the file's name and a suffix:
	//
	//   - ".allocs", allocations since the start of the process;
	//   - ".allocs.base", those before the measured time (go tool pprof -base);
	//   - ".mutex", contended locks, and ".block", blocking, both of all runs of the process with a profile.
	//
	// If Profile is not empty, machines that are processes take their own profiles
	// (MachineConfig).
	Profile string `json:"-"`
	// AnyBuild allows builds whose figures mean nothing. Tests set it.
	AnyBuild bool
}

// ErrBuild means that figures of this build would mean nothing.
var ErrBuild = errors.New("bench: a build with the race detector or with invariants is not measured")

// Refuse returns ErrBuild in builds that are not measured.
func Refuse() error {
	if invariant.Enabled {
		return ErrBuild
	}
	return nil
}

// validate sets the default of Threads, and returns an error for options that cannot be run.
func (o *Options) validate() error {
	if !o.AnyBuild {
		if err := Refuse(); err != nil {
			return err
		}
	}
	if o.Threads == 0 {
		o.Threads = 1
	}
	switch {
	case o.Threads < 0:
		return fmt.Errorf("bench: %d threads", o.Threads)
	case o.Transactions == 0 && o.Duration <= 0:
		return fmt.Errorf("bench: a run of %v", o.Duration)
	case o.Transactions < 0 || (o.Transactions > 0 && (o.Duration != 0 || o.WarmUp != 0)):
		return errors.New("bench: Transactions must be positive, and take the place of WarmUp and Duration")
	case o.WarmUp < 0 || o.Rate < 0:
		return fmt.Errorf("bench: a warm-up of %v, a rate of %v", o.WarmUp, o.Rate)
	}
	return nil
}

// Run runs a loaded workload once, and checks the data. If they are inconsistent, or a client
// failed, there is no result.
func Run(ctx context.Context, t *Target, w Workload, o Options) (*Result, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	if err := t.settle(ctx); err != nil {
		return nil, err
	}
	return newRun(t, w, o).do(ctx)
}

func newRun(t *Target, w Workload, o Options) *run {
	r := &run{target: t, workload: w, options: o}
	r.now, r.sleep = func() time.Duration { return time.Since(r.start) }, sleepInKernel
	return r
}

// do runs the clients, and checks the data and the replicas afterwards.
func (r *run) do(ctx context.Context) (*Result, error) {
	if err := r.openClients(ctx); err != nil {
		return nil, errors.Join(err, r.closeClients())
	}
	r.start = time.Now()
	if err := errors.Join(r.measure(ctx), r.closeClients()); err != nil {
		return nil, err
	}
	if err := r.workload.Check(ctx); err != nil {
		return nil, fmt.Errorf("bench: no result, for the check after the run failed: %w", err)
	}
	compared, err := r.target.compareReplicas(ctx)
	if err != nil {
		return nil, err
	}
	res, err := r.result()
	if err == nil {
		res.ReplicasCompared = compared
	}
	return res, err
}

// A run is a workload that is being run in this process.
type run struct {
	target   *Target
	workload Workload
	options  Options
	loops    []*loop

	// start is when the threads begin; now returns the time since then; sleep sleeps for about a
	// duration.
	start time.Time
	now   func() time.Duration
	sleep func(time.Duration)
	stop  atomic.Bool
	// finished is the time at which finish was called, or 0.
	finished atomic.Int64
	// before and after are the counters around the measured time.
	before, after sample
	// resident is the memory at the end of the measured time.
	resident int64
}

// A loop is one running thread.
type loop struct {
	run    *run
	thread Thread
	client Client
	record *record
	// measuring is set once the warm-up is over; ended is when the last transaction ended.
	measuring bool
	ended     time.Duration
	err       error
	arrivals  *arrivals // arrivals in the open loop; nil in the closed loop
	done      atomic.Int64
}

// openClients numbers the clients of all machines, and opens those of this process's machines. All
// processes draw all seeds, and so agree on them.
func (r *run) openClients(ctx context.Context) error {
	kinds, machines := len(r.workload.Kinds()), max(1, r.target.Machines())
	seeds := rand.New(rand.NewPCG(r.options.Seed, 1))
	first := r.target.clients
	r.target.clients += machines * r.options.Threads
	for i := range machines * r.options.Threads {
		l := &loop{run: r, record: newRecord(kinds)}
		l.thread = Thread{
			Index: i, Machine: i % machines, Number: uint32(first + i + 1), Seed: seeds.Uint64(), aborts: make(map[string]uint64),
		}
		if r.target.Machines() > 0 && !r.target.Has(l.thread.Machine) {
			continue
		}
		c, err := r.workload.NewClient(ctx, &l.thread)
		if err != nil {
			return fmt.Errorf("bench: client %d: %w", i, err)
		}
		l.client = c
		if r.options.Rate > 0 {
			l.record.Arrivals = newArrivalRecord()
			l.arrivals = newArrivals(l.thread.Seed, r.options.Rate/float64(machines*r.options.Threads))
		}
		r.loops = append(r.loops, l)
	}
	runtime.GC() // collects the garbage that loading has left
	return nil
}

func (r *run) closeClients() error {
	var errs []error
	for _, l := range r.loops {
		errs = append(errs, l.client.Close())
	}
	return errors.Join(errs...)
}

// finish ends the run before its time is over.
func (r *run) finish() {
	r.finished.CompareAndSwap(0, int64(r.now()))
	r.stop.Store(true)
}

// measure runs all threads to their end, from start on.
func (r *run) measure(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { r.stop.Store(true) })()
	if wait := time.Until(r.start); wait > 0 {
		sleep(ctx, wait)
	}
	r.before = r.target.sample()
	var threads sync.WaitGroup
	for _, l := range r.loops {
		threads.Go(func() {
			if l.err = l.work(ctx); l.err != nil {
				cancel()
			}
		})
	}
	watching, stopWatching := context.WithCancel(ctx)
	var watcher sync.WaitGroup
	var watchErr error
	watcher.Go(func() {
		watchErr = r.watch(watching)
		if watchErr != nil {
			r.finish() // there will be no result
		}
	})
	threads.Wait()
	r.after, r.resident = r.target.sample(), residentBytes()
	stopWatching()
	watcher.Wait()
	return errors.Join(r.failure(ctx), watchErr)
}

// failure returns the error of the first client that failed by itself; otherwise the reason why ctx,
// which stops the clients, has ended, if it has.
func (r *run) failure(ctx context.Context) error {
	for _, l := range r.loops {
		if l.err != nil && !errors.Is(l.err, context.Canceled) {
			return fmt.Errorf("bench: thread %d: %w", l.thread.Index, l.err)
		}
	}
	return ctx.Err()
}

// watch takes the counters when the warm-up ends, takes the profiles of the measured time, and shows
// the progress of the run until ctx ends. Without a warm-up, measure has taken the counters.
func (r *run) watch(ctx context.Context) error {
	o := &r.options
	total, unit := int(o.WarmUp+o.Duration), unitTime
	if o.Transactions > 0 {
		total, unit = o.Transactions*o.Threads, unitCount
	}
	stage := o.Progress.stage("running", total, unit)
	defer stage.Done()
	if o.WarmUp > 0 {
		if !sleep(ctx, o.WarmUp-time.Since(r.start)) {
			return nil
		}
	}
	endProfile, err := beginProfile(o.Profile)
	if err != nil {
		return err
	}
	if o.WarmUp > 0 {
		r.before = r.target.sample()
	}
	for sleep(ctx, stageInterval) {
		stage.set(min(r.progress(), total))
	}
	return endProfile()
}

// progress returns how far the run is, in the unit of its length.
func (r *run) progress() int {
	if r.options.Transactions == 0 {
		return int(time.Since(r.start))
	}
	n := 0
	for _, l := range r.loops {
		n += int(l.done.Load())
	}
	return n
}

// sleep waits, and returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// work runs transactions until the run is over.
func (l *loop) work(ctx context.Context) error {
	o := &l.run.options
	end := o.WarmUp + o.Duration
	now := l.run.now()
	for n := 0; ; n++ {
		begin := now // in the open loop a transaction begins when it arrives, though the thread may be late
		if l.arrivals != nil {
			begin = l.arrivals.next()
		}
		isOver := n == o.Transactions
		if o.Transactions == 0 { // the run has a length in time
			isOver = max(now, begin) >= end // now, because in the open loop the thread may be late
		}
		if isOver || l.run.stop.Load() || (l.arrivals != nil && !l.arrive(begin, now)) {
			l.leave(begin)
			return ctx.Err()
		}
		if !l.measuring && begin >= o.WarmUp {
			l.measuring = true
			clear(l.thread.aborts) // those of the warm-up
		}
		l.thread.Began, l.thread.Together = begin, 1
		kind, err := l.client.Do(ctx)
		missed := errors.Is(err, ErrMiss)
		if err != nil && !missed {
			return err
		}
		now = l.run.now()
		if o.Transactions > 0 {
			l.done.Add(1)
		}
		switch {
		case now >= o.WarmUp && (o.Transactions > 0 || now < end):
			l.record.add(kind, now-l.thread.Began, now-o.WarmUp, missed, l.thread.Together)
		case l.arrivals != nil && now >= end: // it had not ended when the run did
			l.record.Arrivals.addWaiting(begin, end)
		}
		l.ended = now
	}
}

// arrive waits until arrival, when the next transaction of the open loop arrives. It returns false if
// the run ends before.
func (l *loop) arrive(arrival, now time.Duration) bool {
	if now >= arrival {
		return true // the transaction has waited for the thread
	}
	if !l.run.awaitArrival(arrival) {
		return false
	}
	if arrival >= l.run.options.WarmUp {
		l.record.Arrivals.addLate(l.run.now() - arrival)
	}
	return true
}

// leave records the transactions of the open loop that have arrived and not begun. next is when the
// first of them arrived.
func (l *loop) leave(next time.Duration) {
	o := &l.run.options
	if l.arrivals == nil || o.Transactions > 0 {
		return
	}
	end := o.WarmUp + o.Duration
	if finished := time.Duration(l.run.finished.Load()); finished != 0 {
		end = min(end, finished)
	}
	l.addAllWaiting(next, end)
}
