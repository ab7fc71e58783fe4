// Package nvram holds a machine's non-volatile memory: ranges of memory that
// workers and NIC share, and the folder whose files keep them.
package nvram
