// Package nvram holds a machine's non-volatile memory: ranges of memory that its
// workers and its NIC share, and the folder whose files keep them.
//
//	Folder  FARMSQL        whether the memory is good: format, state, boot
//	        LOCK           held by the process that uses it
//	        region-7.mem   a Memory: a sparse file, mapped shared
//	        log-2-0.mem    ...
//	saves   save-00000003  a complete save: an image per memory, and an index
//	        IN-USE         the newest save there was when the folder came into use
//
// # Memory
//
// Memory is shared in words of 8 bytes, which are never torn, and lines of 64, which CopyOut reads
// at one moment, as a NIC does. On amd64 payload moves by plain copies, whose order the processor
// keeps; elsewhere, and in builds with the race detector, by atomic words. The detector sees
// accesses to the Go heap only, so race builds keep memory there. They write it to its file when
// the folder is closed, abandoned or saved. A race build that is killed loses the stores since
// then; other builds do not.
//
// Other processes of the host can attach memory of a Folder and of NewShared: its Location tells
// them where the memory is.
//
// # When a folder's memory is good
//
// On a tmpfs, best mounted with huge=always, the folder is the battery-backed
// memory of the FaRM papers: it outlives the process, and Save brings it to disk
// when the power goes. On a disk's file system it outlives the process as well;
// the kernel writes it back at its leisure, so that a power cut leaves a mixture
// of old and new. Hence the folder says under which boot it is in use:
//
//	left by       same boot   after a reboot, on disk   after a reboot, on tmpfs
//	Close         good        good                      gone: newest save, if
//	a killed      good        ErrLost, unless trusted   nothing came after it,
//	process                                             otherwise ErrLost
//	Save          good        as above                  restored
//
// A folder in use, or left by a killed process, is good only in its place: opening a copy of it
// fails with ErrCopy, unless the copy is trusted. Copies of a closed folder are good.
//
// A folder that is gone looks like a new one. With Options.Saves the two can be told apart: each
// save has a number, and when a folder comes into use, the directory of saves records the newest
// number.
//
// With Options.Pinnable a folder has to be on a tmpfs: network cards that read and write memory by
// themselves need its pages pinned, which an ordinary disk's file system does not allow. The volatile
// memory of NewShared can always be pinned.
//
// # Saves
//
// A save is written next to its final name and renamed last; only then does it count, and the
// newest one counts. Chunks of 1 MB have checksums of their own. Chunks that are zero, or were
// never touched, are left out. No stores to the memory are allowed while it is saved.
//
// SaveAs writes a save elsewhere, under a name that the caller chooses. A Restoration restores it:
// it writes the restored memory next to the existing one, and replaces the existing one only when all of the save has
// been read.
//
// # Limits
//
// hugetlbfs cannot hold a folder, because its files can only be written through a mapping; a tmpfs
// with huge pages is as fast. If the file system has no room for a page, the first store to it
// kills the process, unless the page's storage was reserved before (Reserve).
package nvram
