//go:build cgo && linux && (amd64 || arm64)

#include <string.h>

#include "section.h"
#include "siphash.h"

// The state of the function. Words are little endian, as are the processors that this is built for.
struct state {
	uint64_t a, b, c, d;
};

#define ROTATE(x, bits) ((x) << (bits) | (x) >> (64 - (bits)))

IN_SECTION static void rounds(struct state *s, int n) {
	while (n-- > 0) {
		s->a += s->b, s->b = ROTATE(s->b, 13) ^ s->a, s->a = ROTATE(s->a, 32);
		s->c += s->d, s->d = ROTATE(s->d, 16) ^ s->c;
		s->a += s->d, s->d = ROTATE(s->d, 21) ^ s->a;
		s->c += s->b, s->b = ROTATE(s->b, 17) ^ s->c, s->c = ROTATE(s->c, 32);
	}
}

IN_SECTION static void take(struct state *s, uint64_t word) {
	s->d ^= word;
	rounds(s, 2);
	s->a ^= word;
}

IN_SECTION void lease_siphash(const uint8_t key[16], const void *bytes, size_t n, uint8_t code[16]) {
	uint64_t k[2], half[2], word, last = (uint64_t)n << 56;
	memcpy(k, key, sizeof k);
	struct state s = {k[0] ^ 0x736f6d6570736575, k[1] ^ 0x646f72616e646f6d ^ 0xee, k[0] ^ 0x6c7967656e657261, k[1] ^ 0x7465646279746573};
	const uint8_t *at = bytes;
	for (; n >= 8; n -= 8, at += 8) {
		memcpy(&word, at, 8);
		take(&s, word);
	}
	for (size_t i = 0; i < n; i++)
		last |= (uint64_t)at[i] << 8 * i;
	take(&s, last);
	s.c ^= 0xee;
	rounds(&s, 4);
	half[0] = s.a ^ s.b ^ s.c ^ s.d;
	s.b ^= 0xdd;
	rounds(&s, 4);
	half[1] = s.a ^ s.b ^ s.c ^ s.d;
	memcpy(code, half, sizeof half);
}
