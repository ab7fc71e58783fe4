#include "textflag.h"

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT|NOFRAME, $0-16
	MOVD p+0(FP), R0
	MOVD n+8(FP), R1
next:
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	SUBS $1, R1
	BGT  next
	RET

// func each(at *uintptr, n int)
TEXT ·each(SB), NOSPLIT|NOFRAME, $0-16
	MOVD at+0(FP), R0
	MOVD n+8(FP), R1
	B    check
next:
	MOVD.P 8(R0), R2
	PRFM   (R2), PLDL1KEEP
	SUB    $1, R1
check:
	CBNZ R1, next
	RET
