package gpukv

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPoolGoesRoundBeforeItReuses(t *testing.T) {
	p := newPool(4, 6, false, newLedger())
	take := func(n int) []uint32 {
		t.Helper()
		if !p.promise(n) {
			t.Fatalf("no %d pages", n)
		}
		return p.take(nil, n)
	}
	check := func(what string, got, want []uint32, wraps uint64) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" || p.wraps != wraps {
			t.Errorf("%s: wraps %d, want %d; pages (-want +got):\n%s", what, p.wraps, wraps, diff)
		}
	}
	a, b, c := take(1), take(2), take(1)
	check("first", b, []uint32{1, 2}, 0)
	p.give(c)
	p.give(a)
	p.give(b)
	check("the rest comes before what was given back", take(1), []uint32{4}, 0)
	check("then the lowest, whatever the order", take(3), []uint32{0, 1, 2}, 1)
	check("then those left over", take(1), []uint32{3}, 1)
	if p.used() != 5 || p.promise(2) {
		t.Errorf("%d pages used, and two more promised", p.used())
	}
}

func TestPoolPromise(t *testing.T) {
	p := newPool(4, 4, false, newLedger())
	if !p.promise(3) || p.promise(2) || !p.promise(1) {
		t.Error("promised pages are promised once")
	}
	p.forgo(1)
	pages := p.take(nil, 3)
	if !p.promise(1) || p.promise(1) {
		t.Error("pages that were forgone can be promised again")
	}
	p.give(pages)
	if p.promise(4) || !p.promise(3) {
		t.Error("pages that were given back can be promised again")
	}
}

func TestPoolKeepsWhatWasWritten(t *testing.T) {
	for _, zero := range []bool{false, true} {
		l := newLedger()
		p := newPool(4, 2, zero, l)
		who := l.open(1, 1, 6)
		p.promise(2)
		pages := p.take(nil, 2)
		p.write(pages, 0, []Token{5, 6, 7, 8, 9, 10}, who)
		l.drop(who, 1)
		p.give(pages)
		p.promise(2)
		p.take(nil, 2)
		want := []Token{5, 6, 7, 8, 9, 10, 0, 0}
		if zero {
			want = make([]Token, 8)
		}
		if diff := cmp.Diff(want, p.tokens); diff != "" {
			t.Errorf("zero %v: tokens (-want +got):\n%s", zero, diff)
		}
		if forgotten := len(l.unused) == 1; forgotten != zero {
			t.Errorf("zero %v: writer forgotten: %v", zero, forgotten)
		}
		if want := map[bool]uint64{false: 0, true: 16}[zero]; p.zeroedSlots != want {
			t.Errorf("zero %v: %d slots cleared, want %d", zero, p.zeroedSlots, want)
		}
	}
}

func TestChecksum(t *testing.T) {
	l := newLedger()
	p := newPool(4, 8, false, l)
	who := l.open(1, 1, 6)
	table := []uint32{5, 2}
	p.write(table, 0, []Token{1, 2, 3, 4, 5, 6}, who)
	q := newPool(4, 8, false, l)
	other := []uint32{0, 7}
	for i, page := range other {
		q.copyPage(page, p, table[i])
	}
	sum := p.checksum(table, 6)
	if got := q.checksum(other, 6); got != sum {
		t.Errorf("a copy in other pages: got %x, want %x", got, sum)
	}
	// Behind the length, anything may stand; before it, every token, its position
	// and their number count.
	p.tokens[2*4+3] = 99
	if got := p.checksum(table, 6); got != sum {
		t.Errorf("a slot behind the length: got %x, want %x", got, sum)
	}
	if p.checksum(table, 5) == sum || p.checksum([]uint32{2, 5}, 6) == sum {
		t.Error("another length, or another order of pages, has the same checksum")
	}
	for i := range 6 {
		slot := int(table[i/4])*4 + i%4
		p.tokens[slot] ^= 1
		if p.checksum(table, 6) == sum {
			t.Errorf("token %d doesn't count", i)
		}
		p.tokens[slot] ^= 1
		p.positions[slot] ^= 1
		if p.checksum(table, 6) == sum {
			t.Errorf("position %d doesn't count", i)
		}
		p.positions[slot] ^= 1
	}
}

// TestContextBlocks: blocks are the context, in any page table.
func TestContextBlocks(t *testing.T) {
	runs(t, 300, func(t *testing.T, seed uint64) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		p := newPool(1+rnd.IntN(7), 20, false, newLedger())
		for i := range p.tokens {
			p.tokens[i] = Token(i + 1)
		}
		table := make([]uint32, 1+rnd.IntN(12))
		for i := range table {
			table[i] = uint32(rnd.IntN(20))
			if i > 0 && rnd.IntN(2) == 0 && table[i-1] < 19 {
				table[i] = table[i-1] + 1
			}
		}
		var c Context
		c.bind(p, table, 1+rnd.IntN(len(table)*p.size), 1)
		from := rnd.IntN(c.Len())
		var got []Token
		blocks := 0
		for i := from; i < c.Len(); blocks++ {
			b := c.Block(i)
			got = append(got, b...)
			i += len(b)
		}
		var want []Token
		least := 1
		for i := from; i < c.Len(); i++ {
			want = append(want, c.At(i))
			if n := len(want); n > 1 && want[n-1] != want[n-2]+1 {
				least++
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || blocks != least {
			t.Errorf("%d blocks, want %d; tokens (-want +got):\n%s", blocks, least, diff)
		}
		tail := c.Tail()
		if len(tail) != min(8, c.Len()) || tail[len(tail)-1] != c.At(c.Len()-1) || tail[0] != c.At(c.Len()-len(tail)) {
			t.Errorf("tail %v", tail)
		}
	})
}
