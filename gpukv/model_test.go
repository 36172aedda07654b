package gpukv

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// over returns a context of which the first prompt tokens are the prompt.
func over(tokens []Token, prompt int, seed uint64) *Context {
	p := newPool(4, (len(tokens)+3)/4, false, newLedger())
	copy(p.tokens, tokens)
	table := make([]uint32, len(p.tokens)/4)
	for i := range table {
		table[i] = uint32(i)
	}
	c := &Context{copied: -1, rnd: rand.New(rand.NewPCG(seed, 0))}
	c.bind(p, table, len(tokens), prompt)
	return c
}

// TestSource: the longest match wins, zero slots and the answer are no source,
// and without a match any written place of the prompt is.
func TestSource(t *testing.T) {
	for _, tt := range []struct {
		name   string
		tokens []Token
		prompt int
		match  int
		want   []int // places that may be found, all of them over many seeds
	}{
		{"one match", []Token{1, 2, 3, 4, 9, 2}, 5, 0, []int{2}},
		{"longest", []Token{2, 8, 1, 2, 7, 2, 6, 1, 2}, 7, 0, []int{4}},
		{"equals", []Token{5, 2, 8, 1, 2, 7, 9, 2}, 7, 0, []int{2, 5}},
		{"one token compared", []Token{5, 2, 8, 1, 2, 7, 1, 2}, 6, 1, []int{2, 5}},
		{"not the answer", []Token{1, 3, 2, 8, 2}, 2, 0, []int{0, 1}},
		{"at the end of the prompt", []Token{1, 3, 2, 8, 2}, 3, 0, []int{0, 1, 2}},
		{"zero follows", []Token{2, 0, 5, 2, 6, 9, 2}, 6, 0, []int{4}},
		{"zero between", []Token{1, 0, 2, 7, 1, 2, 8, 3, 0, 2}, 8, 0, []int{3, 6}},
		{"no match", []Token{0, 4, 0, 0, 5, 0, 2}, 6, 0, []int{1, 4}},
		{"after a placeholder", []Token{3, 4, 0}, 2, 0, []int{0, 1}},
		{"nothing written", []Token{0, 0, 0, 0, 2}, 4, 0, []int{-1}},
		{"short", []Token{2, 2}, 1, 0, []int{-1}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found := map[int]bool{}
			for seed := range uint64(200) {
				found[Induction{Match: tt.match}.source(over(tt.tokens, tt.prompt, seed))] = true
			}
			var got []int
			for at := range found {
				got = append(got, at)
			}
			slices.Sort(got)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("places (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContextNote(t *testing.T) {
	type history struct{ Copied, Run, Gap int }
	c := Context{copied: -1}
	for i, tt := range []struct {
		from int
		want history
	}{
		{-1, history{-1, 0, 1}},
		{-1, history{-1, 0, 2}},
		{0, history{0, 1, 0}},
		{1, history{1, 2, 0}},
		{2, history{2, 3, 0}},
		{9, history{9, 1, 0}},
		{-1, history{-1, 0, 1}},
		{10, history{10, 1, 0}},
	} {
		c.note(tt.from)
		if got := (history{c.Copied(), c.Run(), c.Gap()}); got != tt.want {
			t.Errorf("token %d: got %+v, want %+v", i, got, tt.want)
		}
	}
}

// TestRuns measures ordinary answers with the defaults: they quote their own
// prompt in long pieces with background between.
func TestRuns(t *testing.T) {
	const seed, requests, n = 5, 60, 400
	r := newRig(t, Config{Seed: seed}, small)
	var runs, gaps []int
	r.model = modelFunc(func(c *Context) (Token, int) {
		tok, from := Induction{Background: noise(50)}.Next(c)
		switch {
		case from >= 0 && c.Copied() < 0:
			gaps = append(gaps, c.Gap())
		case from < 0 && c.Copied() >= 0:
			runs = append(runs, c.Run())
		case from >= 0 && from != c.Copied()+1:
			t.Errorf("a run jumps from %d to %d", c.Copied(), from)
		}
		if from >= 0 && (tok != c.At(from) || from >= c.Prompt()) {
			t.Errorf("token %d copied from position %d of a prompt of %d", tok, from, c.Prompt())
		}
		return tok, from
	})
	for id := uint64(1); id <= requests; id++ {
		r.submit(Request{ID: id, Tenant: uint32(id), Prompt: words(id, 4000), MaxNew: n})
	}
	r.drain()
	if r.foreign() != 0 {
		t.Error("foreign reads")
	}
	copied := 0
	for id, answer := range r.answers {
		for _, tok := range answer {
			if uint64(tok)>>20 == id {
				copied++
			}
		}
	}
	mean := func(s []int) float64 {
		sum := 0
		for _, v := range s {
			sum += v
		}
		return float64(sum) / float64(len(s))
	}
	share := float64(copied) / (requests * n)
	t.Logf("%d runs of %d to %d, mean %.1f; %d gaps of %d to %d, mean %.1f; %.0f %% copied", len(runs),
		slices.Min(runs), slices.Max(runs), mean(runs), len(gaps), slices.Min(gaps), slices.Max(gaps), mean(gaps), 100*share)
	// Runs end early only where the prompt does.
	short := 0
	for _, n := range runs {
		if n < 25 {
			short++
		}
	}
	if slices.Max(runs) > 120 || short > len(runs)/20 || mean(runs) < 50 || mean(runs) > 75 {
		t.Errorf("runs: %d of %d shorter than 25, longest %d, mean %.1f", short, len(runs), slices.Max(runs), mean(runs))
	}
	if slices.Min(gaps) < 8 || slices.Max(gaps) > 48 || mean(gaps) < 15 || mean(gaps) > 30 {
		t.Errorf("gaps of %d to %d, mean %.1f", slices.Min(gaps), slices.Max(gaps), mean(gaps))
	}
	if share < 0.6 || share > 0.85 {
		t.Errorf("%.2f of the answers is copied", share)
	}
}

// TestNoBackground: the zero value is a model too.
func TestNoBackground(t *testing.T) {
	r := newRig(t, Config{}, Induction{})
	r.run(Request{ID: 1, Prompt: words(1, 200), MaxNew: 200})
	zero, own := 0, 0
	for _, tok := range r.answers[1] {
		if tok == placeholder {
			zero++
		} else if tok>>20 == 1 {
			own++
		}
	}
	if zero == 0 || own == 0 || zero+own != 200 {
		t.Errorf("%d placeholders and %d tokens of the prompt in 200", zero, own)
	}
}

// TestModelThatLies: a position that doesn't exist counts as none.
func TestModelThatLies(t *testing.T) {
	for _, pos := range []int{-7, 1 << 40} {
		r := newRig(t, Config{}, modelFunc(func(c *Context) (Token, int) {
			if c.Copied() != -1 {
				t.Errorf("position %d was believed", c.Copied())
			}
			return 1, pos
		}))
		if f := r.run(Request{ID: 1, Prompt: words(1, 3), MaxNew: 5}); f.CompletionTokens != 5 {
			t.Errorf("position %d: %+v", pos, f)
		}
	}
}
