#include "textflag.h"

// func Lines(p unsafe.Pointer, n int)
TEXT ·Lines(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ p+0(FP), AX
	MOVQ n+8(FP), CX
next:
	PREFETCHT0 (AX)
	ADDQ $64, AX
	DECQ CX
	JGT  next
	RET

// func each(at *uintptr, n int)
TEXT ·each(SB), NOSPLIT|NOFRAME, $0-16
	MOVQ at+0(FP), AX
	MOVQ n+8(FP), CX
	LEAQ (AX)(CX*8), AX
	NEGQ CX
	JZ   done
next:
	MOVQ (AX)(CX*8), DX
	PREFETCHT0 (DX)
	INCQ CX
	JNZ  next
done:
	RET
