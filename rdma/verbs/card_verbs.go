//go:build verbs && linux && cgo

package verbs

/*
#cgo pkg-config: libibverbs
#cgo noescape fv_exchange
#cgo nocallback fv_exchange
#cgo noescape fv_take
#cgo nocallback fv_take
#include "card.h"
*/
import "C"

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/farmsql/farmsql/internal/lockrank"
)

// Available returns nil if this program can join when there is a device, and otherwise the
// reason why not.
func Available() error { return nil }

// Join makes this process a machine of the network.
//
// Errors: rdma.ErrMachineTaken if another socket has the address; a device, port or GID that is not there, or is not ready; and the system's.
func Join(cfg Config) (*NIC, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	c, err := openCard(cfg)
	if err != nil {
		return nil, err
	}
	return join(cfg, c)
}

// errnoOf returns the error with number n of errno.
func errnoOf(n uint16) error { return fmt.Errorf("%w (errno %d)", syscall.Errno(n), n) }

// failed returns the error of a verb that has returned the number rc, or nil for 0. A library
// may return the number negated.
func failed(what string, rc C.int) error {
	if rc == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", what, errnoOf(uint16(max(rc, -rc))))
}

// null returns the error of a verb that has returned no object.
func null(what string, err error) error {
	if err == nil {
		err = syscall.EIO
	}
	return fmt.Errorf("%s: %w", what, err)
}

// A verbsCard implements card.
type verbsCard struct {
	context *C.struct_ibv_context
	pd      *C.struct_ibv_pd
	lim     limits
	gid     int
	async   *poller

	mu    lockrank.Mutex[lockrank.Leaf]
	lanes map[*verbsLane]bool // all open lanes, to find the lane of an event
}

var _ card = (*verbsCard)(nil)

func openCard(cfg Config) (*verbsCard, error) {
	context, name, err := openDevice(cfg.Device)
	if err != nil {
		return nil, err
	}
	c := &verbsCard{context: context, lanes: map[*verbsLane]bool{}}
	c.lim.device, c.lim.port, c.lim.forgets = name, max(cfg.Port, 1), isSoftRoCE(name)
	if err = c.look(cfg); err == nil {
		if c.pd, err = C.ibv_alloc_pd(context); c.pd == nil {
			err = null("protection domain", err)
		} else if c.async, err = newPoller(context.async_fd); err != nil {
			C.ibv_dealloc_pd(c.pd)
		} else {
			return c, nil
		}
	}
	C.ibv_close_device(context)
	return nil, fmt.Errorf("verbs: device %s, port %d: %w", name, c.lim.port, err)
}

// isSoftRoCE reports whether a device is emulated by the kernel: such a one names the interface that it uses.
func isSoftRoCE(device string) bool {
	_, err := os.Stat("/sys/class/infiniband/" + device + "/parent")
	return err == nil
}

// openDevice opens the device with the given name, or the first one if there is no name.
func openDevice(name string) (*C.struct_ibv_context, string, error) {
	var n C.int
	list, err := C.ibv_get_device_list(&n)
	if errors.Is(err, syscall.ENOSYS) && list == nil {
		return nil, "", errors.New("verbs: the kernel has no RDMA devices: is the card's driver loaded (ib_uverbs)?")
	}
	if list == nil {
		return nil, "", null("verbs: list of devices", err)
	}
	defer C.ibv_free_device_list(list)
	var names []string
	for _, d := range unsafe.Slice(list, int(n)) {
		found := C.GoString(C.ibv_get_device_name(d))
		names = append(names, found)
		if name != "" && found != name {
			continue
		}
		context, err := C.ibv_open_device(d)
		if context == nil {
			return nil, "", null("verbs: opening device "+found, err)
		}
		return context, found, nil
	}
	if name == "" {
		return nil, "", errors.New("verbs: there is no RDMA device: ibv_devices lists none; is the card's driver loaded, and ibverbs-providers installed?")
	}
	return nil, "", fmt.Errorf("verbs: there is no RDMA device %s, only %v", name, names)
}

// look finds out what the device and the port can do.
func (c *verbsCard) look(cfg Config) error {
	var d C.struct_ibv_device_attr
	if err := failed("asking the device", C.ibv_query_device(c.context, &d)); err != nil {
		return err
	}
	if n := int(d.phys_port_cnt); c.lim.port > n {
		return fmt.Errorf("the device has %d ports", n)
	}
	var p C.struct_ibv_port_attr
	if err := failed("asking the port", C.fv_port(c.context, C.int(c.lim.port), &p)); err != nil {
		return err
	}
	if p.state != C.IBV_PORT_ACTIVE {
		return fmt.Errorf("the port is not active but %s: is the cable in, and the interface up?", C.GoString(C.ibv_port_state_str(p.state)))
	}
	own := &c.lim.self
	own.lid, own.mtu = uint16(p.lid), uint8(p.active_mtu)
	if cfg.MTU != 0 {
		if own.mtu = mtuCode(cfg.MTU); own.mtu > uint8(p.active_mtu) {
			return fmt.Errorf("the port carries packets of %d bytes, not of %d: the network's MTU has to be larger than that by 58 or more", mtuBytes(uint8(p.active_mtu)), cfg.MTU)
		}
	}
	c.lim.reads = int(min(d.max_qp_rd_atom, d.max_qp_init_rd_atom, 16))
	own.reads = uint8(c.lim.reads)
	c.lim.inline, c.lim.sends = inlineMax, int(d.max_qp_wr)
	return c.chooseGID(cfg.GIDIndex, int(p.gid_tbl_len))
}

// inlineMax is the longest WRITE that travels with its request: a short record, or a word.
const inlineMax = 128

// chooseGID chooses the GID with the given index. With AnyGID it chooses the first of RoCE v2
// that holds an IPv4 address, or else the first of all.
func (c *verbsCard) chooseGID(index, n int) error {
	chosen := -1
	for i := range n {
		if index != AnyGID && i != index {
			continue
		}
		var gid [16]byte
		var kind C.int
		if C.fv_gid(c.context, C.int(c.lim.port), C.int(i), (*C.uint8_t)(&gid[0]), &kind) != 0 || gid == [16]byte{} {
			continue
		}
		isIPv4 := kind == 2 && [12]byte(gid[:12]) == [12]byte{10: 0xff, 11: 0xff} // kind 2 is RoCE v2
		if chosen < 0 || isIPv4 {
			chosen, c.gid, c.lim.self.gid = i, i, gid
		}
		if isIPv4 {
			break
		}
	}
	if chosen < 0 && index != AnyGID {
		return fmt.Errorf("there is no GID of index %d", index)
	}
	if chosen < 0 {
		return errors.New("the port has no GID: does its interface have an address?")
	}
	return nil
}

func (c *verbsCard) limits() limits { return c.lim }

// A verbsRegion implements region.
type verbsRegion struct{ mr *C.struct_ibv_mr }

func (c *verbsCard) register(at unsafe.Pointer, bytes uint64) (region, error) {
	mr, err := C.fv_register(c.pd, at, C.size_t(bytes))
	if mr == nil {
		if errors.Is(err, syscall.ENOMEM) {
			err = fmt.Errorf("%w: is the limit of locked memory (ulimit -l, LimitMEMLOCK=) high enough?", err)
		}
		return nil, null("memory region", err)
	}
	return verbsRegion{mr}, nil
}

func (r verbsRegion) keys() (local, remote uint32) { return uint32(r.mr.lkey), uint32(r.mr.rkey) }
func (r verbsRegion) close() error                 { return failed("end of a memory region", C.ibv_dereg_mr(r.mr)) }

// next implements card.
func (c *verbsCard) next() (event, error) {
	var e C.struct_fv_event
	err := c.async.until(func() C.int { return C.fv_event(c.context, &e) })
	if err != nil {
		return event{}, err
	}
	told := event{kind: kindOf(uint32(e._type)), text: C.GoString(C.ibv_event_type_str(uint32(e._type))), pair: uint32(e.pair)}
	c.mu.Lock()
	defer c.mu.Unlock()
	for l := range c.lanes {
		if uint64(uintptr(unsafe.Pointer(l.cq))) == uint64(e.cq) || uint64(uintptr(unsafe.Pointer(l.srq))) == uint64(e.srq) {
			told.lane = l
		}
	}
	if l, ok := told.lane.(*verbsLane); ok && told.kind == receivesLow {
		C.fv_limit(l.srq, C.int(l.limit)) // the event has disarmed the limit
	}
	return told, nil
}

func kindOf(e uint32) eventKind {
	switch e {
	case C.IBV_EVENT_DEVICE_FATAL:
		return cardFailed
	case C.IBV_EVENT_PORT_ERR:
		return portDown
	case C.IBV_EVENT_PORT_ACTIVE:
		return portUp
	case C.IBV_EVENT_QP_FATAL, C.IBV_EVENT_QP_REQ_ERR, C.IBV_EVENT_QP_ACCESS_ERR, C.IBV_EVENT_PATH_MIG_ERR:
		return pairFailed
	case C.IBV_EVENT_CQ_ERR, C.IBV_EVENT_SRQ_ERR:
		return laneFailed
	case C.IBV_EVENT_SRQ_LIMIT_REACHED:
		return receivesLow
	}
	return otherHappens
}

func (c *verbsCard) close() error {
	c.async.close()
	err := failed("end of the protection domain", C.ibv_dealloc_pd(c.pd))
	return errors.Join(err, failed("closing the device", C.ibv_close_device(c.context)))
}

// A poller waits for a descriptor with Go's poller, so that no thread waits in the kernel. It
// uses a duplicate, because libibverbs closes the original.
type poller struct {
	file *os.File
	raw  syscall.RawConn
}

func newPoller(fd C.int) (*poller, error) {
	if err := failed("descriptor", C.fv_unblock(fd)); err != nil {
		return nil, err
	}
	own, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("duplicating a descriptor: %w", err)
	}
	file := os.NewFile(uintptr(own), "verbs")
	raw, err := file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &poller{file, raw}, nil
}

// until waits until take has taken something.
func (p *poller) until(take func() C.int) error {
	var rc C.int
	err := p.raw.Read(func(uintptr) bool {
		rc = take()
		return rc != C.EAGAIN && rc != C.EINTR
	})
	if err != nil {
		return errInterrupted // the poller is closed
	}
	return failed("event", rc)
}

func (p *poller) close() { _ = p.file.Close() }

// A bellChannel is a completion queue with the channel of its events.
type bellChannel struct {
	channel *C.struct_ibv_comp_channel
	cq      *C.struct_ibv_cq
	heard   *poller
}

func (c *verbsCard) newChannel(entries int) (b bellChannel, err error) {
	if b.channel, err = C.ibv_create_comp_channel(c.context); b.channel == nil {
		return b, null("completion channel", err)
	}
	if b.heard, err = newPoller(b.channel.fd); err != nil {
		C.ibv_destroy_comp_channel(b.channel)
		return b, err
	}
	if b.cq, err = C.ibv_create_cq(c.context, C.int(entries), nil, b.channel, 0); b.cq == nil {
		b.heard.close()
		C.ibv_destroy_comp_channel(b.channel)
		return b, null(fmt.Sprintf("completion queue of %d entries", entries), err)
	}
	return b, nil
}

func (b *bellChannel) arm() error { return failed("arming a completion queue", C.fv_arm(b.cq)) }
func (b *bellChannel) wait() error {
	return b.heard.until(func() C.int { return C.fv_heard(b.channel) })
}
func (b *bellChannel) interrupt() { b.heard.close() }

func (b *bellChannel) close() error {
	b.heard.close()
	err := failed("end of a completion queue", C.ibv_destroy_cq(b.cq))
	return errors.Join(err, failed("end of a completion channel", C.ibv_destroy_comp_channel(b.channel)))
}

// A verbsLane implements lane.
type verbsLane struct {
	bellChannel
	card  *verbsCard
	srq   *C.struct_ibv_srq
	limit int // with so many entries left in the shared receive queue, an event says that it is low
	// doorbells is where C stores the number of doorbells. Only exchange uses it.
	doorbells C.int

	mu      lockrank.Mutex[lockrank.Leaf]
	entries int // how many completions there may be
	room    int // how many the completion queue has room for
}

func (c *verbsCard) lane(receives int) (lane, error) {
	b, err := c.newChannel(receives)
	if err != nil {
		return nil, err
	}
	l := &verbsLane{bellChannel: b, card: c, limit: max(1, receives/8), entries: receives, room: int(b.cq.cqe)}
	if l.srq, err = C.fv_srq(c.pd, C.int(receives)); l.srq == nil {
		return nil, errors.Join(null(fmt.Sprintf("shared receive queue of %d entries", receives), err), b.close())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lanes[l] = true
	return l, nil
}

func (l *verbsLane) exchange(requests []request, receives int, done []completion) (n, doorbells int, err error) {
	rung := &l.doorbells // a field of the lane: Go would allocate a variable whose address C gets
	took := C.fv_exchange(l.cq, l.srq, (*C.struct_fv_request)(unsafe.Pointer(unsafe.SliceData(requests))), C.int(len(requests)), C.int(receives), C.int(l.limit),
		(*C.struct_fv_completion)(unsafe.Pointer(unsafe.SliceData(done))), C.int(len(done)), rung)
	if took < 0 {
		return 0, int(*rung), failed("polling a completion queue", took)
	}
	return int(took), int(*rung), nil
}

// grow makes room for n more completions. Each request may have one, if its queue pair fails.
func (l *verbsLane) grow(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.entries+n > l.room {
		wanted := 2 * (l.entries + n) // twice as many as now, so that growing is rare
		if err := failed(fmt.Sprintf("growing a completion queue to %d entries", wanted), C.ibv_resize_cq(l.cq, C.int(wanted))); err != nil {
			return err
		}
		l.room = int(l.cq.cqe)
	}
	l.entries += n
	return nil
}

// shrink gives up n completions. The completion queue keeps its size.
func (l *verbsLane) shrink(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries -= n
}

func (l *verbsLane) close() error {
	l.card.mu.Lock()
	delete(l.card.lanes, l)
	l.card.mu.Unlock()
	err := failed("end of a shared receive queue", C.ibv_destroy_srq(l.srq))
	return errors.Join(err, l.bellChannel.close())
}

// A verbsPair implements pair.
type verbsPair struct {
	lane  *verbsLane
	qp    *C.struct_ibv_qp
	sends int
	own   address
}

func (l *verbsLane) pair(sends int) (pair, error) {
	if err := l.grow(sends); err != nil {
		return nil, err
	}
	inline := inlineMax
	if sends == 0 {
		inline = 0
	}
	qp, err := C.fv_pair(l.card.pd, l.cq, l.srq, C.int(max(sends, 1)), C.int(inline))
	if qp == nil {
		l.shrink(sends)
		return nil, null("queue pair", err)
	}
	own := l.card.lim.self
	own.pair, own.first = uint32(qp.qp_num), rand.Uint32N(1<<24)
	return &verbsPair{lane: l, qp: qp, sends: sends, own: own}, nil
}

func (p *verbsPair) address() address { return p.own }
func (p *verbsPair) handle() uint64   { return uint64(uintptr(unsafe.Pointer(p.qp))) }

func (p *verbsPair) connect(to address, trafficClass int) error {
	path := p.lane.card.path(to, trafficClass)
	path.own_first, path.sends = C.uint32_t(p.own.first), C.uint8_t(min(p.sends, 1))
	return failed(fmt.Sprintf("connecting to queue pair %#x", to.pair), C.fv_connect(p.qp, &path))
}

// path returns the way to an address.
func (c *verbsCard) path(to address, trafficClass int) C.struct_fv_path {
	path := C.struct_fv_path{
		pair: C.uint32_t(to.pair), first: C.uint32_t(to.first), lid: C.uint16_t(to.lid), port: C.uint8_t(c.lim.port), gid_index: C.uint8_t(c.gid),
		traffic_class: C.uint8_t(trafficClass), mtu: C.uint8_t(min(to.mtu, c.lim.self.mtu)), reads: C.uint8_t(min(to.reads, c.lim.self.reads)),
	}
	for i, b := range to.gid {
		path.gid[i] = C.uint8_t(b)
	}
	return path
}

func (p *verbsPair) fail() error { return failed("failing a queue pair", C.fv_fail(p.qp)) }

func (p *verbsPair) close() error {
	err := failed("end of a queue pair", C.ibv_destroy_qp(p.qp))
	p.lane.shrink(p.sends)
	return err
}

// A verbsPost implements post.
type verbsPost struct {
	bellChannel
	card *verbsCard
	qp   *C.struct_ibv_qp
	own  address
}

func (c *verbsCard) post(receives, sends int) (post, error) {
	b, err := c.newChannel(receives + sends)
	if err != nil {
		return nil, err
	}
	p := &verbsPost{bellChannel: b, card: c, own: c.lim.self}
	if p.qp, err = C.fv_post_pair(c.pd, b.cq, C.int(receives), C.int(sends)); p.qp == nil {
		return nil, errors.Join(null("queue pair for datagrams", err), b.close())
	}
	// The highest bit must be 0: with it, a send would use another key, which only privileged
	// programs may set.
	p.own.pair, p.own.key = uint32(p.qp.qp_num), rand.Uint32N(1<<31)
	if err := failed("queue pair for datagrams", C.fv_open_post(p.qp, C.int(c.lim.port), C.uint32_t(p.own.key))); err != nil {
		return nil, errors.Join(err, p.close())
	}
	return p, nil
}

func (p *verbsPost) address() address { return p.own }

// A verbsRoute implements route.
type verbsRoute struct{ ah *C.struct_ibv_ah }

func (r verbsRoute) close() error { return failed("end of a route", C.ibv_destroy_ah(r.ah)) }

func (p *verbsPost) route(to address, trafficClass int) (route, error) {
	path := p.card.path(to, trafficClass)
	ah, err := C.fv_route(p.card.pd, &path)
	if ah == nil {
		return nil, null("route", err)
	}
	return verbsRoute{ah}, nil
}

func (p *verbsPost) send(r route, to address, id uint64, at unsafe.Pointer, bytes int, key uint32) error {
	return failed("sending a datagram", C.fv_post_send(p.qp, r.(verbsRoute).ah, C.uint32_t(to.pair), C.uint32_t(to.key), C.uint64_t(id), at, C.int(bytes), C.uint32_t(key)))
}

func (p *verbsPost) receive(id uint64, at unsafe.Pointer, bytes int, key uint32) error {
	return failed("receiving datagrams", C.fv_post_receive(p.qp, C.uint64_t(id), at, C.int(bytes), C.uint32_t(key)))
}

func (p *verbsPost) take(done []completion) (int, error) {
	n := C.fv_take(p.cq, (*C.struct_fv_completion)(unsafe.Pointer(unsafe.SliceData(done))), C.int(len(done)))
	if n < 0 {
		return 0, failed("polling for datagrams", n)
	}
	return int(n), nil
}

func (p *verbsPost) close() error {
	err := failed("end of the queue pair for datagrams", C.ibv_destroy_qp(p.qp))
	return errors.Join(err, p.bellChannel.close())
}
