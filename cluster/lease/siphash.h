#ifndef FARMSQL_LEASE_SIPHASH_H
#define FARMSQL_LEASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>

// Stores the SipHash-2-4 of n bytes with 128 bits: a code that only a holder of the key can make
// (Aumasson and Bernstein, INDOCRYPT 2012). It allocates nothing, and reads no tables.
void lease_siphash(const uint8_t key[16], const void *bytes, size_t n, uint8_t code[16]);

#endif
