package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func mustPlan(t *testing.T, w Workload) *plan {
	t.Helper()
	p, err := newPlan(w)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// allTexts returns the words of every text of the plan, by item. Histories hold
// no answers, since nothing was sent.
func allTexts(p *plan) []chatText {
	out := make([]chatText, len(p.items))
	for i := range p.items {
		out[i] = p.text(&p.items[i])
	}
	return out
}

func TestWorkloadOptions(t *testing.T) {
	for _, tt := range []struct {
		w    Workload
		want string
	}{
		{Workload{Tenants: -1}, "tenants"},
		{Workload{Divisor: -1}, "divisor"},
		{Workload{WarmUp: 1.5}, "warm-up"},
		{Workload{Timeout: -time.Second}, "timeout"},
		{Workload{Divisor: 4000}, "no room"},
		{Workload{Window: 1000, Pool: 900}, "no room"},
	} {
		if _, err := newPlan(tt.w); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want one with %q", tt.w, err, tt.want)
		}
	}
	p := mustPlan(t, Workload{Ordinary: -1, Oversized: -1, Divisor: 64})
	if len(p.items) != 0 || len(p.tenants) != 24 {
		t.Errorf("%d items of %d tenants", len(p.items), len(p.tenants))
	}
	p = mustPlan(t, Workload{Tenants: 30, Ordinary: 10, Divisor: 64})
	names := make(map[string]bool)
	for _, u := range p.tenants {
		names[u.name] = true
	}
	if len(names) != 30 {
		t.Errorf("30 tenants have %d names", len(names))
	}
}

func TestWorkloadIsDeterministic(t *testing.T) {
	w := Workload{Seed: 9, Divisor: 64, Ordinary: 300, Oversized: 12}
	describe := func(p *plan) (out []string) {
		texts := allTexts(p)
		for i, it := range p.items {
			out = append(out, fmt.Sprint(it.id, it.tenant.name, it.kind, it.api, it.stream, it.max, it.leave, it.turn, wordHash(texts[i].joined())))
		}
		return out
	}
	a := describe(mustPlan(t, w))
	if d := cmp.Diff(a, describe(mustPlan(t, w))); d != "" {
		t.Errorf("one seed, two workloads:\n%s", d)
	}
	w.Seed = 10
	same := 0
	for i, s := range describe(mustPlan(t, w)) {
		if s == a[i] {
			same++
		}
	}
	if same > 5 {
		t.Errorf("two seeds share %d of %d requests", same, len(a))
	}
}

// TestWorkloadShape holds what the package says of its default traffic.
func TestWorkloadShape(t *testing.T) {
	const divisor, window, pool = 64, 16_384, 10_645
	p := mustPlan(t, Workload{Seed: 1, Divisor: divisor})
	texts := allTexts(p)
	kinds := make(map[kind]int)
	apis := make(map[api]int)
	langs := make(map[string]int)
	archives := make(map[string]string)
	var oversized, streams, leaving, retried, turns, questions, tokens, first int
	for i, it := range p.items {
		kinds[it.kind]++
		apis[it.api]++
		n := CountTokens(texts[i].joined()) + len(texts[i]) + 1
		if it.stream {
			streams++
		}
		if it.kind == kindArchive {
			if oversized++; oversized == 1 {
				first = i
			}
			if n < pool || n+it.max >= window {
				t.Errorf("%s: %d tokens and an answer of %d are not between the pool and the window", it.id, n, it.max)
			}
			if it.leave > 0 || it.max < 256 {
				t.Errorf("%s: leaves after %d, answer of %d", it.id, it.leave, it.max)
			}
			if doc := it.tenant.doc(); !strings.Contains(texts[i].joined(), doc) {
				t.Errorf("%s: without the archive", it.id)
			}
			archives[it.tenant.name] = it.tenant.doc()
			continue
		}
		tokens += n
		langs[it.tenant.lang]++
		if n+it.max > pool-6 {
			t.Errorf("%s: %d tokens of kind %d don't fit the pool", it.id, n, it.kind)
		}
		if it.kind == kindShort {
			words := len(strings.Fields(texts[i].joined()))
			if lang := it.tenant.lang; lang != "zh" && lang != "ja" && (words < 2 || words > 15) {
				t.Errorf("%s: a short question of %d words: %q", it.id, words, texts[i].joined())
			}
			questions++
		}
		if it.leave > 0 {
			leaving++
		}
		if it.retried {
			retried++
		}
		if it.turn > 0 {
			turns++
			if roles := texts[i]; roles[len(roles)-1].Role != "user" {
				t.Errorf("%s: a turn that ends with %s", it.id, roles[len(roles)-1].Role)
			}
		}
	}
	if len(p.items) != 3155 || oversized != 155 || len(archives) != 9 {
		t.Errorf("%d requests, %d oversized of %d tenants", len(p.items), oversized, len(archives))
	}
	if first < 1200 || first > 1210 {
		t.Errorf("the first oversized request is the %d-th", first)
	}
	within := func(name string, got, low, high int) {
		t.Helper()
		if got < low || got > high {
			t.Errorf("%s: %d, want %d to %d", name, got, low, high)
		}
	}
	within("short questions", questions, 800, 1300)
	within("streams", streams, 1400, 2000)
	within("clients that leave", leaving, 50, 130)
	within("retries", retried, 15, 80)
	within("later turns", turns, 100, 300)
	within("long requests", kinds[kindLong], 60, 300)
	within("lookups", kinds[kindLookup], 100, 300)
	within("agents' code", kinds[kindCode], 100, 500)
	within("mails", kinds[kindMail], 100, 400)
	within("mean tokens of an ordinary prompt", tokens/3000, 500, 1300)
	for a := nativePrompt; a <= openAICompletion; a++ {
		within(fmt.Sprintf("api %d", a), apis[a], 100, 1500)
	}
	within("english", langs["en"], 1800, 2800)
	for _, l := range []string{"fr", "de", "es", "zh", "ja"} {
		within(l, langs[l], 25, 500)
	}
}

// origin11 returns which tenants sent each run of 11 words, as a set of bits.
func origin11(p *plan, texts []chatText) map[uint64]uint32 {
	bit := make(map[*tenant]uint32)
	for i, t := range p.tenants {
		bit[t] = 1 << i
	}
	v := NewVocabulary(0)
	sent := make(map[uint64]uint32)
	for i, c := range texts {
		for _, turn := range c {
			var w window
			for _, h := range v.words(nil, v.Encode(nil, turn.Content)) {
				if h != 0 && w.add(h) {
					sent[w.hash] |= bit[p.items[i].tenant]
				}
			}
		}
	}
	return sent
}

func ones(x uint32) (n int) {
	for ; x != 0; x &= x - 1 {
		n++
	}
	return n
}

// TestTenantsShareOnlyWhatIsShared counts runs of 11 words that several tenants
// send before the first oversized request: the shared texts, sent by many, and
// what joins them to the rest.
func TestTenantsShareOnlyWhatIsShared(t *testing.T) {
	p := mustPlan(t, Workload{Seed: 1, Divisor: 64, Oversized: -1})
	p.items = slices.DeleteFunc(p.items[:1200], func(it item) bool { return it.kind == kindLong })
	sent := origin11(p, allTexts(p))
	// Session and build of the scaffold are drawn anew each time.
	opening, rest, _ := strings.Cut(agentScaffold(p.random(0, 0)), "Session ")
	_, rest, _ = strings.Cut(rest, ")")
	shared := make(map[uint64]bool)
	for _, s := range append(append([]string{vendorPrompt, opening, rest}, publicDocuments...), mailFooters...) {
		for _, r := range runsOf(s) {
			shared[r] = true
			if n := ones(sent[r]); n < 3 {
				t.Errorf("shared text is sent by %d tenants only", n)
			}
		}
	}
	several := 0
	for r, who := range sent {
		if ones(who) > 1 && !shared[r] {
			several++
		}
	}
	t.Logf("%d runs, %d of shared texts, %d more sent by several tenants", len(sent), len(shared), several)
	if len(shared) < 1000 {
		t.Errorf("only %d runs are shared", len(shared))
	}
	// What joins shared text to the rest, such as "the context alone. Context:
	// [1] Municipal Tree", is shared as well; private text never is.
	if several > 400 {
		t.Errorf("%d of %d runs are shared by accident", several, len(sent))
	}
}

// TestPrivateTextIsPrivate compares what the tenants write when nothing is
// shared by design.
func TestPrivateTextIsPrivate(t *testing.T) {
	p := mustPlan(t, Workload{Seed: 4, Divisor: 64})
	v := NewVocabulary(0)
	sent := make(map[uint64]uint32)
	total, equal := 0, 0
	for i, u := range p.tenants {
		w := u.prose(p.random(streamText, uint64(i)))
		for _, text := range []string{w.text(6_000), w.source(2_000)} {
			var win window
			tokens := v.Encode(nil, text)
			for j, h := range v.words(nil, tokens) {
				if h == 0 || !win.add(h) {
					continue
				}
				total++
				if who := sent[win.hash]; who != 0 && who != 1<<i {
					equal++
					t.Logf("in two tenants' texts: %q", v.Decode(tokens[max(0, j-runWords):j+1]))
				}
				sent[win.hash] |= 1 << i
			}
		}
	}
	t.Logf("%d of %d runs in the private texts of two tenants", equal, total)
	if equal > total/20_000 {
		t.Errorf("%d of %d runs of 11 words are in the private texts of two tenants", equal, total)
	}
}

// TestBackgroundIsInNoPrompt holds that what the engine says by itself is in
// nothing that a tenant sends.
func TestBackgroundIsInNoPrompt(t *testing.T) {
	const k = 8
	grams := func(text string, f func(string)) {
		words := plainWords(text)
		for i := 0; i+k <= len(words); i++ {
			f(strings.Join(words[i:i+k], " "))
		}
	}
	background := make(map[string]bool)
	for line := range strings.Lines(backgroundText) {
		grams(line, func(g string) { background[g] = true })
	}
	if len(background) < 1000 {
		t.Fatalf("%d runs in the background text", len(background))
	}
	p := mustPlan(t, Workload{Seed: 2, Divisor: 64, Ordinary: 300, Oversized: 2})
	for i, c := range allTexts(p) {
		grams(c.joined(), func(g string) {
			if background[g] {
				t.Errorf("%s says %q, which is background", p.items[i].id, g)
			}
		})
	}
}

func TestSlotsAreFilled(t *testing.T) {
	p := mustPlan(t, Workload{Seed: 3, Divisor: 64, Ordinary: 10, Oversized: 1})
	for _, u := range p.tenants {
		w := u.prose(p.random(streamText, 5))
		var texts []string
		for _, s := range append(append([]string{}, sentences[u.lang]...), u.field.sentences...) {
			texts = append(texts, w.fillIn(s))
		}
		for _, list := range [][]string{noteTasks, followUps, archiveQuestions, ownQuestions} {
			for _, s := range list {
				texts = append(texts, w.fillIn(s))
			}
		}
		texts = append(texts, w.mail(), w.lookup(), w.systemPrompt())
		for _, s := range texts {
			if strings.ContainsAny(s, "{}") {
				t.Errorf("%s: a slot is left open in %q", u.name, s)
			}
		}
		var code strings.Builder
		for _, body := range functionBodies {
			w.fillCode(&code, body)
		}
		for _, name := range []string{"{type", "{snake", "{SNAKE", "{field", "{FIELD", "{verb", "{Verb", "{num", "{ref}", "{n}", "{who", "{sur", "{domain"} {
			if strings.Contains(code.String(), name) {
				t.Errorf("%s: %s is left open in code", u.name, name)
			}
		}
	}
}

func TestWholeLines(t *testing.T) {
	const doc = "one\ntwo\nthree\nfour"
	for _, tt := range []struct {
		from, to int
		want     string
	}{
		{0, len(doc), doc}, {1, len(doc), "two\nthree\nfour"}, {0, 9, "one\ntwo"}, {2, 10, "two"}, {9, 12, "hre"},
	} {
		if got := wholeLines(doc, tt.from, tt.to); got != tt.want {
			t.Errorf("wholeLines(%d, %d) = %q, want %q", tt.from, tt.to, got, tt.want)
		}
	}
}
