package worker

// Functions that this package ships itself.
const (
	HandlerAlloc = internalHandlers + iota
	handlerRelease
	handlerEpoch
	handlerReserve
	handlerPing
	handlerDiscard
	HandlerAnnex
	handlerDropAnnex
)

func (m *Machine) handleInternally() {
	m.Handle(HandlerAlloc, m.handleAlloc)
	m.Handle(handlerRelease, m.handleRelease)
	m.Handle(handlerEpoch, m.handleEpoch)
	m.Handle(handlerReserve, m.handleReserve)
	m.Handle(handlerPing, handlePing)
	m.Handle(handlerDiscard, m.handleDiscard)
	m.Handle(HandlerAnnex, m.handleAnnex)
	m.Handle(handlerDropAnnex, m.handleDropAnnex)
}
