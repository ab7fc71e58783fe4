package txn

// Functions that this package ships itself.
const (
	handlerAlloc = internalHandlers + iota
	handlerRelease
	handlerEpoch
	handlerReserve
	handlerPing
	handlerDiscard
	handlerAnnex
	handlerDropAnnex
)

func (m *machine) handleInternally() {
	m.Handle(handlerAlloc, m.handleAlloc)
	m.Handle(handlerRelease, m.handleRelease)
	m.Handle(handlerEpoch, m.handleEpoch)
	m.Handle(handlerReserve, m.handleReserve)
	m.Handle(handlerPing, handlePing)
	m.Handle(handlerDiscard, m.handleDiscard)
	m.Handle(handlerAnnex, m.handleAnnex)
	m.Handle(handlerDropAnnex, m.handleDropAnnex)
}
