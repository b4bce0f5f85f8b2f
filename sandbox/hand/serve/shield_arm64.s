#include "textflag.h"

// A handler that returns at once, to the address that the kernel put into
// the link register.
TEXT drop<>(SB), NOSPLIT|NOFRAME, $0-0
	RET

// func dropSignal() uintptr
TEXT ·dropSignal(SB), NOSPLIT, $0-8
	MOVD $drop<>(SB), R0
	MOVD R0, ret+0(FP)
	RET
