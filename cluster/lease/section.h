// The code that the lease thread runs is in a section of its own, which the thread pins.
#define IN_SECTION __attribute__((section("farmsql_lease")))
