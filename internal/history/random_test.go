package history

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAgainstDefinition compares the checker with the definition of strict
// serializability, tried on every order of small random histories, most of
// which are wrong in some way.
func TestAgainstDefinition(t *testing.T) {
	var right, wrong int
	for seed := range uint64(30000) {
		r := rand.New(rand.NewPCG(seed, 2))
		txs := smallHistory(r, seed%2 == 0)
		want := serializable(txs)
		report := Check(txs, Options{})
		if got := report.Err() == nil; got != want {
			t.Fatalf("seed %d: checker says %v, definition says %v: %v\n%v", seed, got, want, txs, report.Err())
		}
		if want {
			right++
		} else {
			wrong++
		}
	}
	if right < 1000 || wrong < 1000 {
		t.Errorf("%d histories right, %d wrong: too one-sided to mean anything", right, wrong)
	}
}

// smallHistory returns up to five transactions that read values that one of them wrote.
func smallHistory(r *rand.Rand, versions bool) []Transaction {
	n, objects := 2+r.IntN(4), 1+r.IntN(3)
	txs := make([]Transaction, n)
	value := Value(0)
	values := make([][]Value, objects) // by object, the initial one too
	for o := range values {
		values[o] = []Value{Initial}
	}
	for i := range txs {
		start := int64(r.IntN(6))
		txs[i] = Transaction{Start: start, End: start + int64(r.IntN(6)), Outcome: Outcome(min(2, r.IntN(8))), Shown: r.IntN(2) == 0}
		if txs[i].Outcome == Aborted && r.IntN(3) > 0 {
			txs[i].Outcome = Committed
		}
		for o := range objects {
			kind := r.IntN(4)
			if kind < 3 {
				txs[i].Ops = append(txs[i].Ops, Op{Object: Object(o)}) // value drawn below
			}
			if kind == 2 || kind == 3 && versions {
				value++
				op := Op{Write: true, Object: Object(o), Value: value}
				if versions {
					op.Version = uint64(len(values[o]))
				}
				txs[i].Ops = append(txs[i].Ops, op)
				values[o] = append(values[o], value)
			}
		}
	}
	for i := range txs {
		for k, op := range txs[i].Ops {
			if !op.Write {
				txs[i].Ops[k].Value = values[op.Object][r.IntN(len(values[op.Object]))]
			}
		}
	}
	return txs
}

// serializable tries all orders of all choices of which transactions of unknown
// outcome committed.
func serializable(txs []Transaction) bool {
	var must, may []int
	for i, t := range txs {
		switch {
		case t.Outcome == Committed || t.Outcome == Aborted && t.Shown:
			must = append(must, i)
		case t.Outcome == Unknown:
			may = append(may, i)
		}
	}
	for chosen := range 1 << len(may) {
		set := slices.Clone(must)
		for k, i := range may {
			if chosen>>k&1 == 1 {
				set = append(set, i)
			}
		}
		if orderable(txs, set, nil) {
			return true
		}
	}
	return false
}

// orderable reports whether the transactions in rest can follow those in done.
func orderable(txs []Transaction, rest, done []int) bool {
	if len(rest) == 0 {
		return execute(txs, done)
	}
	for k, i := range rest {
		late := slices.ContainsFunc(rest, func(j int) bool {
			return txs[j].Outcome != Unknown && txs[j].End < txs[i].Start
		})
		if late {
			continue // another had ended before i began
		}
		others := slices.Delete(slices.Clone(rest), k, k+1)
		if orderable(txs, others, append(slices.Clone(done), i)) {
			return true
		}
	}
	return false
}

// execute runs transactions in order and compares what they read.
func execute(txs []Transaction, order []int) bool {
	state, version, there := make(map[Object]Value), make(map[Object]uint64), make(map[Object]bool)
	for _, i := range order {
		own := make(map[Object]Op)
		for _, op := range txs[i].Ops {
			if op.Write {
				own[op.Object] = op
				continue
			}
			if op.Absent {
				if there[op.Object] {
					return false
				}
				continue
			}
			seen := state[op.Object]
			if w, ok := own[op.Object]; ok {
				seen = w.Value
			}
			if op.Value != seen {
				return false
			}
		}
		for o, w := range own {
			if txs[i].Outcome == Aborted {
				continue
			}
			if w.Version != 0 && w.Version <= version[o] {
				return false
			}
			state[o], version[o], there[o] = w.Value, w.Version, !w.Absent
		}
	}
	return true
}

// serial generates a history from an execution that is serial: transaction i
// takes effect at time 10*i, and lasts around it.
func serial(r *rand.Rand, n, objects int, versions bool) []Transaction {
	state := make([]Value, objects)
	count := make([]uint64, objects)
	txs := make([]Transaction, n)
	for i := range txs {
		at := int64(10 * (i + 1))
		t := Transaction{Start: at - int64(r.IntN(200)), End: at + int64(r.IntN(200)), Outcome: Committed}
		abort := r.IntN(10) == 0
		for range 1 + r.IntN(4) {
			o := r.IntN(objects)
			if slices.ContainsFunc(t.Ops, func(op Op) bool { return op.Object == Object(o) }) {
				continue
			}
			t.Ops = append(t.Ops, Op{Object: Object(o), Value: state[o]})
			if r.IntN(2) == 0 {
				continue
			}
			op := Op{Write: true, Object: Object(o), Value: Value(i + 1)}
			if versions {
				op.Version = count[o] + 1
			}
			t.Ops = append(t.Ops, op)
			if !abort {
				state[o] = op.Value
				count[o]++
			}
		}
		if abort {
			t.Outcome, t.Shown = Aborted, r.IntN(2) == 0
		} else if r.IntN(20) == 0 {
			t.Outcome = Unknown
		}
		txs[i] = t
	}
	r.Shuffle(n, func(i, j int) { txs[i], txs[j] = txs[j], txs[i] })
	return txs
}

func TestSerialExecutionsPass(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 3))
		report := Check(serial(r, 200, 1+r.IntN(30), seed%2 == 0), Options{Opacity: seed%3 == 0})
		if err := report.Err(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if report.Dependencies < 100 {
			t.Fatalf("seed %d: only %d dependencies", seed, report.Dependencies)
		}
	}
}

// mutations each make a history wrong, if they find a place; they return what
// may be reported.
var mutations = map[string]func(r *rand.Rand, txs []Transaction) []Kind{
	"read an older value": func(r *rand.Rand, txs []Transaction) []Kind {
		// The reader began after the writer of its value had ended.
		reader, k, w := pickRead(r, txs, func(reader, writer *Transaction) bool { return writer.End < reader.Start && !writesTo(reader) })
		if w == nil {
			return nil
		}
		reader.Ops[k].Value = replacedBy(w, reader.Ops[k].Object)
		return []Kind{StaleRead, TimeTravel, FracturedRead, LongFork}
	},
	"abort a writer that was read": func(r *rand.Rand, txs []Transaction) []Kind {
		_, _, w := pickRead(r, txs, func(reader, writer *Transaction) bool { return true })
		if w == nil {
			return nil
		}
		w.Outcome = Aborted
		return []Kind{DirtyRead}
	},
	"read what nobody wrote": func(r *rand.Rand, txs []Transaction) []Kind {
		reader, k, _ := pickRead(r, txs, func(reader, writer *Transaction) bool { return true })
		if reader == nil {
			return nil
		}
		reader.Ops[k].Value = 1 << 40
		return []Kind{GarbageRead}
	},
	"lose an update": func(r *rand.Rand, txs []Transaction) []Kind {
		// An update pretends not to have seen the update that it replaced.
		reader, k, w := pickRead(r, txs, func(reader, writer *Transaction) bool { return true })
		if w == nil || k+1 == len(reader.Ops) || !reader.Ops[k+1].Write {
			return nil
		}
		reader.Ops[k].Value = replacedBy(w, reader.Ops[k].Object)
		return []Kind{LostUpdate, StaleRead, TimeTravel, FracturedRead, WriteSkew, LongFork}
	},
	"read later than it was replaced": func(r *rand.Rand, txs []Transaction) []Kind {
		// The reader is moved behind the end of the transaction that replaced its value.
		reader, k, w := pickRead(r, txs, func(reader, writer *Transaction) bool { return true })
		if w == nil {
			return nil
		}
		for i := range txs {
			x := &txs[i]
			if x != reader && x.Outcome == Committed && replacedBy(x, reader.Ops[k].Object) == reader.Ops[k].Value && writesObject(x, reader.Ops[k].Object) {
				reader.Start, reader.End = x.End+1, max(reader.End, x.End+1)
				return []Kind{StaleRead, TimeTravel}
			}
		}
		return nil
	},
}

// pickRead picks a read by one committed transaction of a value that another one wrote.
func pickRead(r *rand.Rand, txs []Transaction, ok func(reader, writer *Transaction) bool) (reader *Transaction, k int, w *Transaction) {
	type place struct {
		o Object
		v Value
	}
	writers := make(map[place]*Transaction)
	for i := range txs {
		for _, op := range txs[i].Ops {
			if op.Write && txs[i].Outcome == Committed {
				writers[place{op.Object, op.Value}] = &txs[i]
			}
		}
	}
	for _, i := range r.Perm(len(txs)) {
		for k, op := range txs[i].Ops {
			w := writers[place{op.Object, op.Value}]
			if !op.Write && txs[i].Outcome == Committed && w != nil && w != &txs[i] && ok(&txs[i], w) {
				return &txs[i], k, w
			}
		}
	}
	return nil, 0, nil
}

func writesTo(t *Transaction) bool {
	return slices.ContainsFunc(t.Ops, func(op Op) bool { return op.Write })
}

func writesObject(t *Transaction, o Object) bool {
	return slices.ContainsFunc(t.Ops, func(op Op) bool { return op.Write && op.Object == o })
}

// replacedBy returns what t read of o.
func replacedBy(t *Transaction, o Object) Value {
	for _, op := range t.Ops {
		if !op.Write && op.Object == o {
			return op.Value
		}
	}
	return Initial
}

func TestMutatedExecutionsFail(t *testing.T) {
	for name, mutate := range mutations {
		t.Run(name, func(t *testing.T) {
			done := 0
			for seed := range uint64(150) {
				r := rand.New(rand.NewPCG(seed, 4))
				txs := serial(r, 100, 1+r.IntN(20), seed%2 == 0)
				kinds := mutate(r, txs)
				if kinds == nil {
					continue
				}
				done++
				report := Check(txs, Options{})
				if !slices.ContainsFunc(report.Violations, func(v Violation) bool { return slices.Contains(kinds, v.Kind) }) {
					t.Fatalf("seed %d: want one of %v, got %v", seed, kinds, report.Err())
				}
			}
			if done < 50 {
				t.Errorf("only %d histories were mutated", done)
			}
		})
	}
}

// Garbage of all sorts must not make the checker fail.
func TestNonsenseIsReported(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 5))
		txs := make([]Transaction, r.IntN(20))
		for i := range txs {
			txs[i] = Transaction{Start: int64(r.IntN(9)), End: int64(r.IntN(9)), Outcome: Outcome(r.IntN(4)), Shown: r.IntN(2) == 0}
			for range r.IntN(8) {
				txs[i].Ops = append(txs[i].Ops, Op{r.IntN(2) == 0, Object(r.IntN(3)), Value(r.IntN(9)), uint64(r.IntN(3)), r.IntN(4) == 0})
			}
		}
		_ = fmt.Sprint(Check(txs, Options{Opacity: seed%2 == 0}).Err())
	}
}

func BenchmarkCheck(b *testing.B) {
	for _, n := range []int{1000, 10_000, 100_000} {
		txs := serial(rand.New(rand.NewPCG(1, 1)), n, n/10, true)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if err := Check(txs, Options{}).Err(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
