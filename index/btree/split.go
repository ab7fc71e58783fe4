package btree

// piece is one of the nodes into which partition divides entries.
type piece struct {
	fences
	entries []entry
}

// partition divides entries between the fences into nodes of at most budget
// bytes. Only a piece with fewer than minSplit entries may need more.
//
// ascending says that the new entries were added at the end. Then every piece
// but the last is filled, because no later entry will go there. Otherwise the
// bytes are divided evenly.
func partition(f fences, entries []entry, leaf bool, budget int, ascending bool) []piece {
	var out []piece
	for len(entries) >= minSplit && !fit(f, entries, budget) {
		var at int
		if ascending {
			at = fill(f, entries, leaf, budget)
		} else {
			at = middle(entries)
		}
		left := fences{f.low, separator(entries, at, leaf)}
		if ascending {
			out = append(out, piece{left, entries[:at]})
		} else {
			out = append(out, partition(left, entries[:at], leaf, budget, false)...)
		}
		f.low, entries = left.high, entries[at:]
	}
	return append(out, piece{f, entries})
}

// middle returns the index that divides the bytes about evenly, with at least two entries on each
// side: an inner node of one child would have no sibling to merge that child with.
func middle(entries []entry) int {
	total := 0
	for i := range entries {
		total += entryBytes + len(entries[i].key)
	}
	sum := 0
	for i := range entries {
		size := entryBytes + len(entries[i].key)
		if sum+size/2 >= total/2 {
			return max(2, min(i, len(entries)-2))
		}
		sum += size
	}
	return len(entries) - 2
}

// fill returns how many entries fill a node, and leaves at least one entry for the next leaf, or two
// for the next inner node. It looks at only a few more entries than it returns, since a transaction
// may have added very many.
func fill(f fences, entries []entry, leaf bool, budget int) int {
	least, most := 1, len(entries)-1
	if !leaf {
		least, most = 2, most-1
	}
	fits := func(at int) bool {
		return fit(fences{f.low, separator(entries, at, leaf)}, entries[:at], budget)
	}
	// Begin with an estimate: it neglects the high fence of the new node, and assumes the prefix
	// that all entries share, although fewer entries may share a longer one.
	at, p := 0, f.prefix()
	for size := nodeHeaderBytes + len(f.low); at < most; at++ {
		if size += entryBytes + len(entries[at].key) - p; size > budget {
			break
		}
	}
	for at > least && !fits(at) {
		at--
	}
	at = max(at, least)
	for step := 1; step > 0; { // more may fit, with a longer prefix: try steps that double, then halve
		if at+step <= most && fits(at+step) {
			at += step
			step *= 2
		} else {
			step /= 2
		}
	}
	return at
}

// separator returns the fence between entries at-1 and at: in a leaf the shortest key that divides
// them, in an inner node the right child's low fence.
func separator(entries []entry, at int, leaf bool) []byte {
	right := entries[at].key
	if !leaf {
		return right
	}
	n := commonPrefix(entries[at-1].key, right) + 1
	return right[:n:n]
}
