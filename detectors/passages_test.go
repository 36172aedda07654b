package detectors

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/auditproxy/auditproxy/fingerprint"
	"github.com/auditproxy/auditproxy/store"
)

// shelf is an index whose answers a test sets by hand.
type shelf map[uint64]store.Match

func (s shelf) Lookup(dst []store.Match, _ string, prints []fingerprint.Print) []store.Match {
	for i, p := range prints {
		if m, ok := s[p.Hi]; ok {
			m.Print = i
			dst = append(dst, m)
		}
	}
	return dst
}

var (
	scheme  = fingerprint.NewScheme(fingerprint.Key{1, 2, 3})
	arrival = time.Date(2026, 9, 8, 10, 0, 0, 0, time.UTC)
	end     = arrival.Add(time.Minute)
)

func printsOf(text string) []fingerprint.Print {
	s := scheme.Shingler()
	return s.Finish(s.Append(nil, text))
}

// put enters a prompt as the first and only tenant's.
func (s shelf) put(tenant, exchange, text string) {
	for _, p := range printsOf(text) {
		s[p.Hi] = store.Match{
			Owner: store.Owner{Tenant: tenant, Exchange: exchange, At: arrival},
			Word:  p.Word, Tenants: 1,
		}
	}
}

// edit changes every entry.
func (s shelf) edit(f func(*store.Match)) {
	for k, m := range s {
		f(&m)
		s[k] = m
	}
}

// scanned is what a scan said: while the text streamed, and at its end, where
// suspects are kept apart.
type scanned struct{ open, last, suspects []Finding }

// scan streams one text in pieces of random length.
func scan(s shelf, rnd *rand.Rand, own func(fingerprint.Print) bool, texts ...string) scanned {
	if own == nil {
		own = func(fingerprint.Print) bool { return false }
	}
	sc := Passages{}.Scan(&Exchange{ID: "ex-9", Tenant: "B", Index: s, Own: own}, 0)
	var out scanned
	for block, text := range texts {
		sh := scheme.Shingler()
		for offset := 0; offset < len(text); {
			n := min(1+rnd.IntN(40), len(text)-offset)
			d := Delta{Channel: "content", Block: block, Offset: offset, Text: text[offset : offset+n]}
			d.Prints = sh.Append(nil, d.Text)
			d.Words = sh.Words()
			out.open = sc.Append(out.open, d)
			offset += n
		}
		last := Delta{Channel: "content", Block: block, Offset: len(text), Prints: sh.Finish(nil)}
		last.Words = sh.Words()
		out.open = sc.Append(out.open, last)
	}
	for _, f := range sc.Finish(nil, end) {
		if f.Leak() {
			out.last = append(out.last, f)
		} else {
			out.suspects = append(out.suspects, f)
		}
	}
	return out
}

// words makes n random words that no other call makes.
func words(rnd *rand.Rand, n int) string {
	w := make([]string, n)
	for i := range w {
		w[i] = fmt.Sprintf("w%x", rnd.Uint64()>>20)
	}
	return strings.Join(w, " ")
}

func seeded(t *testing.T) *rand.Rand {
	t.Helper()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func part(text string, from, n int) string {
	return strings.Join(strings.Fields(text)[from:from+n], " ")
}

// Any run of 20 words of a foreign prompt is a leak or a suspect at the end,
// with the right donor, and a suspect is no alarm while the text streams.
func TestEveryRunOfTwentyWords(t *testing.T) {
	rnd := seeded(t)
	s := shelf{}
	secret := words(rnd, 300)
	s.put("A", "ex-1", secret)
	for range 300 {
		got := scan(s, rnd, nil, words(rnd, 40)+" "+part(secret, rnd.IntN(280), 20)+" "+words(rnd, 40))
		all := append(got.last, got.suspects...)
		if len(all) != 1 || all[0].Donor.Tenant != "A" || all[0].Donor.Exchange != "ex-1" {
			t.Fatalf("%d leaks and %d suspects, want one of them, of A's prompt", len(got.last), len(got.suspects))
		}
		if len(got.suspects) > 0 {
			f := got.suspects[0]
			if f.Reason != ShortRun || f.Confidence != Possible || f.Severity != Info || len(got.open) > 0 {
				t.Fatalf("%s, %s, %s, and %d alarms before; want a possible short run, an info without alarm", f.Reason, f.Confidence, f.Severity, len(got.open))
			}
		}
	}
	if got := scan(s, rnd, nil, words(rnd, 200)); len(got.suspects) > 0 {
		t.Errorf("%d suspects in other text, want none", len(got.suspects))
	}
}

// Any run of 30 words of a foreign prompt is a leak, with the right donor, and
// it is told within those 30 words.
func TestEveryRunOfThirtyWords(t *testing.T) {
	rnd := seeded(t)
	s := shelf{}
	prompts := map[string]string{}
	for i := range 20 {
		ex := fmt.Sprintf("ex-%d", i)
		prompts[ex] = words(rnd, 300)
		s.put("A"+ex, ex, prompts[ex])
	}
	for range 300 {
		ex := fmt.Sprintf("ex-%d", rnd.IntN(20))
		run := part(prompts[ex], rnd.IntN(270), 30)
		before, after := words(rnd, rnd.IntN(50)), words(rnd, 10+rnd.IntN(50))
		got := scan(s, rnd, nil, before+" "+run+" "+after)
		if len(got.last) != 1 {
			t.Fatalf("%d findings for one run of 30 words, want 1", len(got.last))
		}
		f := got.last[0]
		if f.Donor != (Donor{Tenant: "A" + ex, Exchange: ex, Part: "prompt"}) || f.State != Final || f.Kind != PromptLeak || f.Confidence != Probable {
			t.Errorf("got %+v, want a probable leak from %s", f, ex)
		}
		if n := f.Evidence.RunWords; n < 12 || n > 30 {
			t.Errorf("run of %d words, want 12 to 30", n)
		}
		from := len(before) + 1
		if f.Recipient.Offset < from || f.Recipient.Offset+f.Recipient.Length > from+len(run) {
			t.Errorf("bytes %d to %d, want them inside %d to %d", f.Recipient.Offset, f.Recipient.Offset+f.Recipient.Length, from, from+len(run))
		}
		if len(got.open) != 1 || got.open[0].ID != f.ID || got.open[0].State != Open {
			t.Errorf("told early %d times, want once, of the same id", len(got.open))
		}
	}
}

// How the text is cut never changes the verdict.
func TestCutsChangeNothing(t *testing.T) {
	rnd := seeded(t)
	s := shelf{}
	a, c := words(rnd, 400), words(rnd, 400)
	s.put("A", "ex-1", a)
	s.put("C", "ex-2", c)
	text := words(rnd, 30) + " " + part(a, 20, 45) + " " + words(rnd, 5) + " " + part(c, 300, 60) + " " + part(a, 200, 33) + words(rnd, 9)
	want := scan(s, rnd, nil, text, part(c, 10, 40)).last
	if len(want) != 3 {
		t.Fatalf("%d findings, want 3", len(want))
	}
	for range 200 {
		got := scan(s, rnd, nil, text, part(c, 10, 40)).last
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the verdict depends on the cuts (-want +got):\n%s", diff)
		}
	}
}

func TestWhatIsNoLeak(t *testing.T) {
	rnd := seeded(t)
	prompt := words(rnd, 200)
	own := map[uint64]bool{}
	for _, p := range printsOf(prompt) {
		own[p.Hi] = true
	}
	for _, c := range []struct {
		name string
		edit func(*store.Match)
		own  func(fingerprint.Print) bool
		text string
	}{
		{name: "the tenant holds it", edit: func(m *store.Match) { m.Own = true }},
		{name: "the request holds it", own: func(p fingerprint.Print) bool { return own[p.Hi] }},
		{name: "it is common", edit: func(m *store.Match) { m.Common = true }},
		{name: "answers say it", edit: func(m *store.Match) { m.Said = true }},
		{name: "an answer introduced it", edit: func(m *store.Match) { m.Owner.Kind = store.Response }},
		{name: "a history introduced it", edit: func(m *store.Match) { m.Owner.Kind = store.History }},
		{name: "the tenant introduced it", edit: func(m *store.Match) { m.Owner.Tenant = "B" }},
		{name: "one passage", text: words(rnd, 20) + " " + part(prompt, 40, 11) + " " + words(rnd, 20)},
		{name: "eleven words, each alone", text: strings.Join(strings.Fields(part(prompt, 0, 100)), " and then came ")},
		{name: "passages on other diagonals", text: shuffled(prompt, rnd)},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := shelf{}
			s.put("A", "ex-1", prompt)
			if c.edit != nil {
				s.edit(c.edit)
			}
			text := c.text
			if text == "" {
				text = prompt
			}
			if got := scan(s, rnd, c.own, text); len(got.open)+len(got.last) > 0 {
				t.Errorf("got %d findings, want none", len(got.open)+len(got.last))
			}
		})
	}
	t.Run("control: without any of these it is one", func(t *testing.T) {
		s := shelf{}
		s.put("A", "ex-1", prompt)
		if got := scan(s, rnd, nil, prompt); len(got.last) != 1 {
			t.Errorf("got %d findings, want 1", len(got.last))
		}
	})
}

// shuffled takes single passages of a prompt out of order.
func shuffled(prompt string, rnd *rand.Rand) string {
	ps := printsOf(prompt)
	var pieces []string
	for i := len(ps) - 1; i >= 0; i -= 6 {
		pieces = append(pieces, prompt[ps[i].Start:ps[i].End], words(rnd, 12))
	}
	return strings.Join(pieces, " ")
}

// A donor that arrives while the response streams is found at its end, one
// that arrives after the end is none.
func TestArrival(t *testing.T) {
	rnd := seeded(t)
	prompt := words(rnd, 60)
	s := shelf{}
	sc := Passages{}.Scan(&Exchange{ID: "ex-9", Tenant: "B", Index: s, Own: func(fingerprint.Print) bool { return false }}, 0)
	if open := sc.Append(nil, Delta{Channel: "content", Prints: printsOf(prompt)}); len(open) > 0 {
		t.Fatal("a leak before there was a donor")
	}
	s.put("A", "ex-1", prompt)
	if last := sc.Finish(nil, arrival.Add(-time.Nanosecond)); len(last) > 0 {
		t.Error("the donor arrived after the end")
	}
	sc = Passages{}.Scan(&Exchange{ID: "ex-9", Tenant: "B", Index: shelf{}, Own: func(fingerprint.Print) bool { return false }}, 0)
	sc.Append(nil, Delta{Channel: "content", Prints: printsOf(prompt)})
	sc.(*passageScan).x.Index = s
	if last := sc.Finish(nil, end); len(last) != 1 || last[0].State != Final {
		t.Errorf("got %d findings at the end, want the one whose donor came late", len(last))
	}
}

// A text that is sent again with more belongs to two prompts: what was there
// before to the first, what is new to the second. A run over the seam is found.
func TestTextSentAgainWithMore(t *testing.T) {
	rnd := seeded(t)
	for range 300 {
		before, more := words(rnd, 60), words(rnd, 60)
		s := shelf{}
		s.put("A", "ex-2", before+" "+more)
		s.put("A", "ex-1", before)
		run := part(before, 45, 15) + " " + part(more, 0, 15)
		got := scan(s, rnd, nil, words(rnd, 30)+" "+run+" "+words(rnd, 30)).last
		if len(got) != 1 || got[0].Donor.Tenant != "A" || got[0].Donor.Exchange == "" {
			t.Fatalf("got %+v, want one leak of A's", got)
		}
	}
}

// What was told early and then became common is withdrawn.
func TestWithdrawn(t *testing.T) {
	rnd := seeded(t)
	prompt := words(rnd, 60)
	s := shelf{}
	s.put("A", "ex-1", prompt)
	sc := Passages{}.Scan(&Exchange{ID: "ex-9", Tenant: "B", Index: s, Own: func(fingerprint.Print) bool { return false }}, 0)
	open := sc.Append(nil, Delta{Channel: "content", Prints: printsOf(prompt)})
	s.edit(func(m *store.Match) { m.Common = true })
	last := sc.Finish(nil, end)
	if len(open) != 1 || len(last) != 1 || last[0].State != Withdrawn || last[0].ID != open[0].ID {
		t.Errorf("got open %+v, last %+v, want one finding that is withdrawn", open, last)
	}
}

func TestConfidence(t *testing.T) {
	rnd := seeded(t)
	prompt := words(rnd, 500)
	s := shelf{}
	s.put("A", "ex-1", prompt)
	for _, c := range []struct {
		name  string
		texts []string
		want  Confidence
	}{
		{"one run", []string{part(prompt, 100, 200)}, Probable},
		{"one run with an edit", []string{part(prompt, 100, 40) + " an edit " + part(prompt, 142, 40)}, Probable},
		{"two runs", []string{part(prompt, 100, 40) + " " + words(rnd, 3) + " " + part(prompt, 300, 40)}, Confirmed},
		{"the same run twice", []string{part(prompt, 100, 40) + " " + words(rnd, 70) + " " + part(prompt, 100, 40)}, Probable},
		{"two blocks", []string{part(prompt, 100, 40), part(prompt, 300, 40)}, Confirmed},
		{"the same run in two blocks", []string{part(prompt, 100, 40), part(prompt, 100, 40)}, Probable},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := scan(s, rnd, nil, c.texts...).last
			if len(got) != len(c.texts) {
				t.Fatalf("%d findings, want one for each of %d blocks", len(got), len(c.texts))
			}
			for _, f := range got {
				severity := High
				if c.want == Confirmed {
					severity = Critical
				}
				if f.Confidence != c.want || f.Severity != severity {
					t.Errorf("%s, %s, want %s, %s", f.Confidence, f.Severity, c.want, severity)
				}
			}
		})
	}
}

// Evidence counts words of the response once each.
func TestEvidence(t *testing.T) {
	rnd := seeded(t)
	prompt := words(rnd, 400)
	s := shelf{}
	s.put("A", "ex-1", prompt)
	got := scan(s, rnd, nil, part(prompt, 50, 100)+" "+words(rnd, 80)+" "+part(prompt, 250, 50)).last
	if len(got) != 1 {
		t.Fatalf("%d findings, want 1", len(got))
	}
	e := got[0].Evidence
	if e.RunWords < 100-18 || e.RunWords > 100 {
		t.Errorf("longest run %d words, want 82 to 100", e.RunWords)
	}
	if e.CoveredWords < 150-36 || e.CoveredWords > 150 {
		t.Errorf("covered %d words, want 114 to 150", e.CoveredWords)
	}
	if e.Passages != len(got[0].Prints) {
		t.Errorf("%d passages, %d prints", e.Passages, len(got[0].Prints))
	}
}

// Runs as short as those that innocent answers share are hardly ever leaks, in
// any script, while every run of 30 words is one.
func TestChance(t *testing.T) {
	rnd := seeded(t)
	var chinese []string
	for range 400 {
		chinese = append(chinese, string(rune(0x4e00+rnd.IntN(8000))))
	}
	for name, prompt := range map[string]string{"words": words(rnd, 400), "characters": strings.Join(chinese, " ")} {
		s := shelf{}
		s.put("A", "ex-1", prompt)
		alarms := 0
		for i := range 300 {
			text := words(rnd, 40) + " " + part(prompt, i, 15) + " " + words(rnd, 40)
			alarms += len(scan(s, rnd, nil, text).last)
			if n := len(scan(s, rnd, nil, words(rnd, 40)+" "+part(prompt, i, 30)+" "+words(rnd, 40)).last); n != 1 {
				t.Errorf("%s: %d findings for a run of 30, want 1", name, n)
			}
		}
		// Of 15 words, four in ten have two hits; of those, the neighbours of one
		// in ten allow for 30.
		t.Logf("%s: %d alarms for 300 runs of 15", name, alarms)
		if alarms > 45 {
			t.Errorf("%s: %d alarms for 300 runs of 15, want at most 45", name, alarms)
		}
	}
}

// Completeness of the registry: names are unique and findings carry them.
func TestAll(t *testing.T) {
	var names []string
	for _, d := range All() {
		names = append(names, d.Name())
	}
	slices.Sort(names)
	if got := slices.Compact(slices.Clone(names)); len(names) == 0 || len(got) != len(names) {
		t.Errorf("names %q, want each once", names)
	}
}
