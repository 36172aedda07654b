package store

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/auditproxy/auditproxy/fingerprint"
)

var zero = time.Date(2026, 9, 8, 10, 0, 0, 0, time.UTC)

func at(s int) time.Time { return zero.Add(time.Duration(s) * time.Second) }

func seeded(t testing.TB) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func open(t testing.TB, o Options) *Index {
	t.Helper()
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// print makes the nth of many prints.
func print(n int) fingerprint.Print {
	r := rand.New(rand.NewPCG(uint64(n), 7))
	return fingerprint.Print{Hi: r.Uint64(), Lo: r.Uint64(), Word: uint32(n)}
}

func prints(from, to int) []fingerprint.Print {
	var ps []fingerprint.Print
	for n := from; n < to; n++ {
		ps = append(ps, print(n))
	}
	return ps
}

func arrive(x *Index, second int, tenant string, k Kind, ps ...fingerprint.Print) {
	x.Advance(at(second))
	x.Add(Owner{Tenant: tenant, Exchange: fmt.Sprintf("%s-%d", tenant, second), Kind: k, At: at(second)}, ps)
}

// look returns what the index knows of one print.
func look(x *Index, tenant string, p fingerprint.Print) (Match, bool) {
	m := x.Lookup(nil, tenant, []fingerprint.Print{p})
	if len(m) == 0 {
		return Match{}, false
	}
	return m[0], true
}

func TestOwnership(t *testing.T) {
	type step struct {
		second int
		tenant string
		kind   Kind
	}
	const leak = Kind(9) // a taint, not an arrival
	p := print(1)
	for _, c := range []struct {
		name    string
		common  int
		steps   []step
		asking  string
		owner   string // and second of the introduction
		kind    Kind
		tenants int
		own     bool
		isWhole string // "common", "said" or ""
	}{
		{name: "one tenant brings it", steps: []step{{1, "A", Prompt}}, asking: "B", owner: "A-1", tenants: 1},
		{name: "it is its own", steps: []step{{1, "A", Prompt}}, asking: "A", owner: "A-1", tenants: 1, own: true},
		{name: "a second tenant brings it", steps: []step{{1, "A", Prompt}, {2, "B", Prompt}}, asking: "B", owner: "A-1", tenants: 2, own: true},
		{name: "and a third gets it", steps: []step{{1, "A", Prompt}, {2, "B", Prompt}}, asking: "C", owner: "A-1", tenants: 2},
		{name: "three make it common", steps: []step{{1, "A", Prompt}, {2, "B", Prompt}, {3, "C", Prompt}}, asking: "D", owner: "A-1", tenants: 3, isWhole: "common"},
		{name: "two by the setting", common: 2, steps: []step{{1, "A", Prompt}, {2, "B", Prompt}}, asking: "D", owner: "A-1", tenants: 2, isWhole: "common"},
		{name: "one tenant often", steps: []step{{1, "A", Prompt}, {2, "A", Prompt}, {3, "A", Prompt}}, asking: "D", owner: "A-1", tenants: 1},
		{name: "an answer says it", steps: []step{{1, "A", Prompt}, {2, "B", Response}}, asking: "C", owner: "A-1", tenants: 1, isWhole: "said"},
		{name: "an answer quotes its own prompt", steps: []step{{1, "A", Prompt}, {2, "A", Response}}, asking: "C", owner: "A-1", tenants: 1},
		{name: "an answer quotes the second's prompt", steps: []step{{1, "A", Prompt}, {2, "B", Prompt}, {3, "B", Response}}, asking: "C", owner: "A-1", tenants: 2},
		{name: "an answer introduces it", steps: []step{{1, "B", Response}, {2, "A", Prompt}}, asking: "C", owner: "B-1", kind: Response, tenants: 1},
		{name: "an answer is its tenant's own", steps: []step{{1, "B", Response}}, asking: "B", owner: "B-1", kind: Response, own: true},
		{name: "a history introduces it", steps: []step{{1, "B", History}, {2, "A", Prompt}}, asking: "C", owner: "B-1", kind: History, tenants: 1},
		{name: "a history brings nothing", steps: []step{{1, "A", Prompt}, {2, "B", History}, {3, "C", History}}, asking: "B", owner: "A-1", tenants: 1},
		{name: "a leak comes back as history", steps: []step{{1, "A", Prompt}, {2, "B", leak}, {3, "B", History}}, asking: "B", owner: "A-1", tenants: 1},
		{name: "a leak comes back as a prompt", steps: []step{{1, "A", Prompt}, {2, "B", leak}, {3, "B", Prompt}}, asking: "B", owner: "A-1", tenants: 1},
		{name: "a leak does not make text common", steps: []step{{1, "A", Prompt}, {2, "B", leak}, {3, "B", Prompt}, {4, "C", leak}, {5, "C", Prompt}}, asking: "D", owner: "A-1", tenants: 1},
		{name: "a leak to one is open to others", steps: []step{{1, "A", Prompt}, {2, "B", leak}, {3, "C", Prompt}}, asking: "C", owner: "A-1", tenants: 2, own: true},
		{name: "the first by time owns it, told late", steps: []step{{5, "B", Prompt}, {1, "A", Prompt}}, asking: "C", owner: "A-1", tenants: 2},
		{name: "the earlier exchange of one tenant, told late", steps: []step{{5, "A", Prompt}, {1, "A", Prompt}}, asking: "C", owner: "A-1", tenants: 1},
		{name: "an earlier answer, told late", steps: []step{{5, "A", Prompt}, {1, "B", Response}}, asking: "C", owner: "B-1", kind: Response, tenants: 1},
		{name: "a prompt before the answer, told late", steps: []step{{5, "B", Response}, {1, "A", Prompt}}, asking: "C", owner: "A-1", tenants: 1, isWhole: "said"},
		{name: "its own prompt before its answer, told late", steps: []step{{5, "A", Response}, {1, "A", Prompt}}, asking: "C", owner: "A-1", tenants: 1},
		{name: "the second turns out the first", steps: []step{{5, "A", Prompt}, {6, "B", Prompt}, {1, "B", Prompt}}, asking: "C", owner: "B-1", tenants: 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := open(t, Options{CommonTenants: c.common})
			for _, s := range c.steps {
				if s.kind == leak {
					x.Taint(s.tenant, []fingerprint.Print{p}, at(s.second))
					continue
				}
				arrive(x, s.second, s.tenant, s.kind, p)
			}
			got, ok := look(x, c.asking, p)
			if !ok {
				t.Fatal("not found")
			}
			tenant, second, _ := strings.Cut(c.owner, "-")
			n := int(second[0] - '0')
			want := Match{
				Owner:   Owner{Tenant: tenant, Exchange: c.owner, Kind: c.kind, At: at(n)},
				Word:    1,
				Tenants: c.tenants, Own: c.own,
				Common: c.isWhole == "common", Said: c.isWhole == "said",
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// model is the ownership rules once more, slow and plain: it keeps every
// arrival and reads the answer off the list.
type model struct {
	arrivals map[int][]told
	tainted  map[[2]string]bool
}

type told struct {
	tenant string
	kind   Kind
	second int
}

func (m *model) add(n, second int, tenant string, k Kind) {
	if !m.tainted[[2]string{fmt.Sprint(n), tenant}] {
		m.arrivals[n] = append(m.arrivals[n], told{tenant: tenant, kind: k, second: second})
	}
}

// state is what both must agree on for text that can be evidence.
type state struct {
	Owner   string
	Kind    Kind
	Second  int
	Tenants int
	Own     bool
	Out     bool // common or said
}

func (m *model) look(n int, asking string, limit int) (state, bool) {
	all := m.arrivals[n]
	if len(all) == 0 {
		return state{}, false
	}
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b told) int { return a.second - b.second })
	s := state{Owner: sorted[0].tenant, Kind: sorted[0].kind, Second: sorted[0].second}
	brought := map[string]bool{}
	for _, a := range sorted {
		switch a.kind {
		case Prompt:
			brought[a.tenant] = true
		case Response:
			if !brought[a.tenant] && a.tenant != s.Owner {
				s.Out = true
			}
		}
	}
	s.Tenants = min(len(brought), limit)
	s.Out = s.Out || len(brought) >= limit
	s.Own = brought[asking] || s.Owner == asking
	return s, true
}

// Random arrivals in the order of their times give what the plain model gives,
// also over a restart and a rotation of keys.
func TestAgainstModel(t *testing.T) {
	rnd := seeded(t)
	for round := range 200 {
		limit := 2 + rnd.IntN(2)
		x := open(t, Options{CommonTenants: limit})
		m := &model{arrivals: map[int][]told{}, tainted: map[[2]string]bool{}}
		tenants := []string{"A", "B", "C", "D"}
		key, rotation, restart := 0, rnd.IntN(60), rnd.IntN(60)
		print := func(n int) fingerprint.Print { return sealed(n, key) }
		for second := 1; second < 60; second++ {
			if second == restart {
				x = restoredFrom(t, Options{CommonTenants: limit}, saved(t, x))
				if key > 0 {
					x.Rekey(unseal, at(1000))
				}
			}
			if second == rotation {
				key++
				x.Rekey(unseal, at(1000))
			}
			n, tenant := rnd.IntN(8), tenants[rnd.IntN(4)]
			if rnd.IntN(8) == 0 {
				if s, ok := m.look(n, tenant, limit); ok && !s.Own { // a leak is never of own text
					x.Taint(tenant, []fingerprint.Print{print(n)}, at(second))
					m.tainted[[2]string{fmt.Sprint(n), tenant}] = true
				}
				continue
			}
			k := Kind(rnd.IntN(3))
			arrive(x, second, tenant, k, print(n))
			m.add(n, second, tenant, k)
			for n := range 8 {
				for _, asking := range tenants {
					want, wantOK := m.look(n, asking, limit)
					got, ok := look(x, asking, print(n))
					s := state{got.Owner.Tenant, got.Owner.Kind, 0, got.Tenants, got.Own, got.Common || got.Said}
					if ok {
						s.Second = int(got.Owner.At.Sub(zero) / time.Second)
					}
					if s.Out || s.Kind != Prompt { // nobody's evidence: who holds it does not matter
						want.Own, s.Own, want.Tenants, s.Tenants = false, false, 0, 0
						want.Out, s.Out = want.Out || s.Kind != Prompt, s.Out || s.Kind != Prompt
					}
					if ok != wantOK || s != want {
						t.Fatalf("round %d, second %d, print %d as %s: got %+v, want %+v", round, second, n, asking, s, want)
					}
				}
			}
		}
	}
}

// Prompts may be told in any order: the outcome is that of their times.
func TestOrderOfPrompts(t *testing.T) {
	rnd := seeded(t)
	for round := range 500 {
		type prompt struct {
			second int
			tenant string
		}
		var all []prompt
		for s := range 1 + rnd.IntN(6) {
			all = append(all, prompt{s + 1, string(rune('A' + rnd.IntN(4)))})
		}
		outcome := func() (out []Match) {
			x := open(t, Options{})
			for _, a := range all {
				x.Add(Owner{Tenant: a.tenant, Exchange: fmt.Sprint(a.second), At: at(a.second)}, []fingerprint.Print{print(1)})
			}
			for _, asking := range []string{"A", "B", "C", "D"} {
				m, _ := look(x, asking, print(1))
				m.Own = m.Own && !m.Common
				out = append(out, m)
			}
			return out
		}
		want := outcome()
		rnd.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		if diff := cmp.Diff(want, outcome()); diff != "" {
			t.Fatalf("round %d: the order of calls matters (-in order +shuffled):\n%s", round, diff)
		}
	}
}

// Text is found for the whole horizon after it was last seen, never for more
// than an epoch longer, and its space comes back.
func TestHorizon(t *testing.T) {
	x := open(t, Options{Horizon: 120 * time.Second, Epochs: 12})
	arrive(x, 0, "A", Prompt, prints(0, 5000)...)
	held := x.Stats().Bytes
	arrive(x, 100, "B", Prompt, prints(5000, 5010)...)
	arrive(x, 105, "A", Prompt, prints(0, 10)...) // seen again
	x.Advance(at(120))
	if _, ok := look(x, "C", print(4000)); !ok {
		t.Error("text was gone at its horizon")
	}
	x.Advance(at(131))
	if _, ok := look(x, "C", print(4000)); ok {
		t.Error("text was found an epoch after its horizon")
	}
	if m, ok := look(x, "C", print(5)); !ok || m.Owner.Exchange != "A-0" {
		t.Errorf("text that was seen again is gone, or lost its owner: %+v", m.Owner)
	}
	for range shardCount {
		x.Advance(at(131))
	}
	s := x.Stats()
	if s.Prints != 20 || s.Expired != 4990 || s.EvictedEarly != 0 {
		t.Errorf("%d prints live, %d expired, %d evicted early; want 20, 4990, 0", s.Prints, s.Expired, s.EvictedEarly)
	}
	if s.Bytes > held*3/4 {
		t.Errorf("%d bytes of %d came back", held-s.Bytes, held)
	}
	x.Advance(at(1000))
	for range shardCount {
		x.Advance(at(1000))
	}
	if s := x.Stats(); s.Prints != 0 || s.Owners != 0 {
		t.Errorf("%d prints and %d owners outlive the horizon", s.Prints, s.Owners)
	}
	x.Add(Owner{Tenant: "A", Exchange: "late", At: at(0)}, prints(0, 3))
	if s := x.Stats(); s.Prints != 0 || s.Stale != 3 {
		t.Errorf("an arrival from beyond the horizon: %d prints taken, %d refused; want 0, 3", s.Prints, s.Stale)
	}
}

// The budget holds at every step, the oldest goes first, and what went early
// is counted: every print is live, evicted or expired.
func TestBudget(t *testing.T) {
	rnd := seeded(t)
	const budget = 4 << 20
	x := open(t, Options{Bytes: budget})
	added, n := 0, 0
	for second := 1; second < 400; second++ {
		k := 1 + rnd.IntN(2000)
		arrive(x, second, fmt.Sprintf("tenant-%d", rnd.IntN(50)), Prompt, prints(n, n+k)...)
		n, added = n+k, added+k
		s := x.Stats()
		if s.Bytes > budget {
			t.Fatalf("second %d: %d bytes, over the budget of %d", second, s.Bytes, budget)
		}
		if s.Prints+int(s.EvictedEarly)+int(s.Expired) != added {
			t.Fatalf("second %d: %d live + %d evicted + %d expired, want %d", second, s.Prints, s.EvictedEarly, s.Expired, added)
		}
	}
	s := x.Stats()
	if s.EvictedEarly == 0 {
		t.Error("the budget was never spent: the test proves nothing")
	}
	if least := budget / 100; s.Prints < least {
		t.Errorf("%d prints live in %d bytes, want at least %d", s.Prints, budget, least)
	}
	// What is live is what came last.
	live := 0
	for i := range added {
		_, ok := look(x, "Z", print(i))
		if ok {
			live++
		}
		if !ok && i > added-s.Prints/2 {
			t.Fatalf("print %d of %d is gone, while older ones live", i, added)
		}
	}
	if live != s.Prints {
		t.Errorf("%d prints are found, %d are counted", live, s.Prints)
	}
}

// The bytes that are counted are the bytes that are held.
func TestBytesAreTrue(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	x := open(t, Options{Bytes: 64 << 20})
	for i := range 300 {
		x.Add(Owner{Tenant: fmt.Sprint("t", i%40), Exchange: fmt.Sprintf("exchange-%020d", i), At: at(i)}, prints(i*1000, i*1000+1000))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	real, said := float64(after.HeapAlloc)-float64(before.HeapAlloc), float64(x.Stats().Bytes)
	t.Logf("%.1f bytes a print by its own count, %.1f by the heap", said/3e5, real/3e5)
	if real > 1.1*said || real < 0.8*said {
		t.Errorf("holds %.0f bytes, says %.0f", real, said)
	}
	runtime.KeepAlive(x)
}

// A conversation that is sent again with a new beginning adds only that.
func TestSentAgain(t *testing.T) {
	x := open(t, Options{})
	arrive(x, 1, "A", Prompt, prints(0, 10000)...)
	before := x.Stats()
	for turn := range 20 {
		ps := append(prints(20000+turn, 20001+turn), prints(0, 10000)...)
		arrive(x, 2+turn, "A", Prompt, ps...)
	}
	s := x.Stats()
	if s.Prints != before.Prints+20 {
		t.Errorf("%d prints after 20 turns of one new print, want %d", s.Prints, before.Prints+20)
	}
}

// A single arrival larger than the budget is taken in part, and counted.
func TestArrivalLargerThanBudget(t *testing.T) {
	x := open(t, Options{Bytes: 1 << 20})
	arrive(x, 1, "A", Prompt, prints(0, 100000)...)
	s := x.Stats()
	if s.Bytes > 1<<20 || s.Prints == 0 || s.Prints+int(s.EvictedEarly) != 100000 {
		t.Errorf("%d bytes, %d prints live, %d not taken", s.Bytes, s.Prints, s.EvictedEarly)
	}
	arrive(x, 2, "B", Prompt, prints(200000, 200100)...)
	if s := x.Stats(); s.Prints < 100 {
		t.Errorf("%d prints live: the next arrival found no room", s.Prints)
	}
}

func TestTenantsAreBounded(t *testing.T) {
	x := open(t, Options{MaxTenants: 3})
	for i := range 10 {
		arrive(x, 1+i, fmt.Sprint("t", i), Prompt, print(i))
	}
	if s := x.Stats(); s.Tenants != 3 || s.Prints != 3 || s.EvictedEarly != 7 {
		t.Errorf("%d tenants, %d prints, %d not taken; want 3, 3, 7", s.Tenants, s.Prints, s.EvictedEarly)
	}
}

// Readers and writers at once; the race detector is the judge, and afterwards
// everything that was added is there.
func TestConcurrent(t *testing.T) {
	x := open(t, Options{Horizon: time.Hour})
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 100 {
				ps := prints(i*50, i*50+80) // overlaps with the other writers
				x.Add(Owner{Tenant: fmt.Sprint("t", w), Exchange: fmt.Sprint(w, "-", i), At: at(i)}, ps)
				x.Lookup(nil, "t9", ps)
				x.Taint("t9", ps[:2], at(i))
				x.Advance(at(i))
				x.Stats()
			}
		})
	}
	wg.Wait()
	for i := range 100 * 50 {
		if m, ok := look(x, "t9", print(i)); !ok || !m.Common {
			t.Fatalf("print %d: found %v, common %v; four tenants brought it", i, ok, m.Common)
		}
	}
	if s := x.Stats(); s.Prints != 99*50+80 {
		t.Errorf("%d prints, want %d", s.Prints, 99*50+80)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []Options{
		{Bytes: -1}, {Bytes: 1000}, {Horizon: -1}, {Horizon: 3}, {Epochs: -1}, {Epochs: 5000},
		{CommonTenants: 1}, {CommonTenants: 4}, {MaxTenants: -1},
	} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

func BenchmarkAdd(b *testing.B) {
	ps := prints(0, 1_000_000)
	for b.Loop() {
		x := open(b, Options{})
		for i := 0; i < len(ps); i += 1000 {
			x.Add(Owner{Tenant: "A", Exchange: fmt.Sprint(i), At: at(i / 1000)}, ps[i:i+1000])
		}
		b.ReportMetric(float64(x.Stats().Bytes)/1e6, "bytes/print")
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/1e6, "ns/print")
}

func BenchmarkLookup(b *testing.B) {
	x := open(b, Options{})
	ps := prints(0, 2_000_000)
	x.Add(Owner{Tenant: "A", Exchange: "1", At: at(1)}, ps[:1_000_000])
	for _, c := range []struct {
		name string
		ps   []fingerprint.Print
	}{{"present", ps[:1_000_000]}, {"absent", ps[1_000_000:]}} {
		b.Run(c.name, func(b *testing.B) {
			var dst []Match
			for i := 0; b.Loop(); i = (i + 200) % 1_000_000 {
				dst = x.Lookup(dst[:0], "B", c.ps[i:i+200])
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/200, "ns/print")
		})
	}
}
