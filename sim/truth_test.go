package sim

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/auditproxy/auditproxy/gpukv"
)

// scene is an engine whose cluster says nothing: tests say what was sent and what
// was read from where.
type scene struct {
	t *testing.T
	e *Engine
}

func newScene(t *testing.T) scene {
	t.Helper()
	e, err := New(Options{Divisor: 1024})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return scene{t, e}
}

func (s scene) tenant(name string) uint32 {
	s.t.Helper()
	n, ok := s.e.tenant(name)
	if !ok {
		s.t.Fatalf("too many tenants for %s", name)
	}
	return n
}

// sends has a tenant send texts, as a user's messages.
func (s scene) sends(tenant string, texts ...string) {
	for _, text := range texts {
		s.e.encode(s.tenant(tenant), textPrompt(text, false))
	}
}

// copied is a part of an answer: the background's, or copied from a donor.
type copied struct {
	text   string
	donor  string // "" for the background
	answer bool   // from the donor's answer
	at     int    // position in the donor's sequence
}

// said puts an answer together.
func (s scene) said(pieces ...copied) answer {
	var a answer
	for _, p := range pieces {
		from := len(a.tokens)
		a.tokens = s.e.vocabulary.Encode(a.tokens, p.text)
		if p.donor == "" {
			continue
		}
		for i := from; i < len(a.tokens); i++ {
			a.reads = append(a.reads, gpukv.Read{
				Step: i, Donor: uint64(s.tenant(p.donor)), Tenant: s.tenant(p.donor), Position: p.at + i - from, Answer: p.answer,
			})
		}
	}
	return a
}

func (s scene) label(victim string, l Label, answers ...answer) Label {
	l.Tenant = victim
	s.e.judge(&l, s.tenant(victim), answers)
	return l
}

// secret returns n words, the same for the same name.
func secret(name string, n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = fmt.Sprintf("%s%dx", name, i)
	}
	return strings.Join(words, " ")
}

func TestLabels(t *testing.T) {
	from := func(donor, text string) copied { return copied{text: text, donor: donor} }
	filler := copied{text: " This is said by everybody, and it means nothing at all."}
	leak := func(donors ...string) []Leak {
		var l []Leak
		for _, d := range donors {
			l = append(l, Leak{"prompt_leak", d})
		}
		return l
	}
	for _, tt := range []struct {
		name    string
		sent    func(scene)
		answer  []copied
		expect  []Leak
		allow   []Leak
		foreign int
		longest int
	}{
		{
			name:   "nothing foreign",
			sent:   func(s scene) { s.sends("victim", secret("own", 50)) },
			answer: []copied{filler, {text: " " + secret("own", 40)}},
		},
		{
			name:    "a long run of a donor's prompt",
			sent:    func(s scene) { s.sends("donor", secret("d", 80)) },
			answer:  []copied{filler, from("donor", " "+secret("d", 40)), filler},
			expect:  leak("donor"),
			foreign: 40, longest: 40,
		},
		{
			name:    "29 words are not legible",
			sent:    func(s scene) { s.sends("donor", secret("d", 80)) },
			answer:  []copied{filler, from("donor", " "+secret("d", 29)), filler},
			allow:   leak("donor"),
			foreign: 29, longest: 29,
		},
		{
			name:   "30 are",
			sent:   func(s scene) { s.sends("donor", secret("d", 80)) },
			answer: []copied{from("donor", " "+secret("d", 30))},
			expect: leak("donor"), foreign: 30, longest: 30,
		},
		{
			name: "two donors",
			sent: func(s scene) { s.sends("a", secret("a", 80)); s.sends("b", secret("b", 80)) },
			answer: []copied{
				from("b", " "+secret("b", 33)), filler, from("a", " "+secret("a", 35)),
			},
			expect: leak("a", "b"), foreign: 68, longest: 35,
		},
		{
			name: "the victim has sent it too",
			sent: func(s scene) {
				s.sends("donor", secret("d", 80))
				s.sends("victim", "Here: "+secret("d", 80))
			},
			answer: []copied{from("donor", " "+secret("d", 60))},
			allow:  leak("donor"), foreign: 60,
		},
		{
			name: "two others have sent it too",
			sent: func(s scene) {
				for _, who := range []string{"donor", "b", "c"} {
					s.sends(who, secret("d", 80))
				}
			},
			answer: []copied{from("donor", " "+secret("d", 60))},
			allow:  leak("donor"), foreign: 60,
		},
		{
			name: "one other has sent it too, and it may be either's",
			sent: func(s scene) {
				s.sends("b", secret("d", 80))
				s.sends("donor", secret("d", 80))
			},
			answer: []copied{from("donor", " "+secret("d", 60))},
			allow:  leak("b", "donor"), foreign: 60,
		},
		{
			name: "shared in the middle, private on both sides",
			sent: func(s scene) {
				s.sends("donor", secret("x", 20)+" "+secret("shared", 40)+" "+secret("y", 20))
				s.sends("b", secret("shared", 40))
				s.sends("c", secret("shared", 40))
			},
			answer: []copied{from("donor", " "+secret("x", 20)+" "+secret("shared", 40)+" "+secret("y", 20))},
			// 20 private words and the 10 shared ones that their last run reaches.
			expect: leak("donor"), foreign: 80, longest: 30,
		},
		{
			name: "the engine had said it before",
			sent: func(s scene) {
				s.e.origins.addAnswer(wordsOf(secret("d", 80)))
				s.sends("donor", secret("d", 80))
			},
			answer: []copied{from("donor", " "+secret("d", 60))},
			allow:  leak("donor"), foreign: 60,
		},
		{
			name:   "copied from the donor's answer",
			sent:   func(s scene) { s.sends("donor", secret("d", 80)) },
			answer: []copied{{text: " " + secret("d", 60), donor: "donor", answer: true}},
			allow:  []Leak{{"prompt_leak", "donor"}, {"response_leak", "donor"}}, foreign: 60,
		},
		{
			name: "a third tenant's words out of the donor's answer",
			sent: func(s scene) { s.sends("owner", secret("o", 80)) },
			answer: []copied{
				{text: " " + secret("o", 40), donor: "donor", answer: true},
			},
			allow: []Leak{{"prompt_leak", "donor"}, {"response_leak", "donor"}, {"prompt_leak", "owner"}}, foreign: 40,
		},
		{
			name:   "an old leak comes back by the history",
			sent:   func(s scene) { s.sends("donor", secret("d", 80)) },
			answer: []copied{filler, {text: " " + secret("d", 40)}},
			allow:  leak("donor"),
		},
		{
			name: "a gap in the donor's positions ends the run",
			sent: func(s scene) { s.sends("donor", secret("d", 80)) },
			answer: []copied{
				{text: " " + secret("d", 20), donor: "donor"},
				{text: " " + secret("d", 20), donor: "donor", at: 500},
			},
			allow: leak("donor"), foreign: 40, longest: 20,
		},
		{
			name:   "repetition",
			sent:   func(s scene) { s.sends("donor", strings.Repeat("ha he hi ho ", 30)) },
			answer: []copied{from("donor", strings.Repeat(" ha he hi ho", 20))},
			allow:  leak("donor"), foreign: 80,
		},
		{
			name: "edge words grown together don't count",
			sent: func(s scene) { s.sends("donor", secret("d", 30)) },
			// The donor's first word stood at the start of its prompt, without
			// a separator, and now goes on a word of the background.
			answer: []copied{{text: "and so"}, from("donor", secret("d", 30))},
			allow:  leak("donor"), foreign: 30, longest: 29,
		},
		{
			name: "ideographs are words each",
			sent: func(s scene) {
				s.sends("donor", "订单对账服务在月末批处理时发生死锁问题请尽快修复并通知财务部门同事谢谢大家")
			},
			answer: []copied{filler, from("donor", "订单对账服务在月末批处理时发生死锁问题请尽快修复并通知财务部门同事"), filler},
			expect: leak("donor"), foreign: 33, longest: 33,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			tt.sent(s)
			got := s.label("victim", Label{}, s.said(tt.answer...))
			want := Label{Tenant: "victim", Expect: tt.expect, Allow: tt.allow, ForeignTokens: tt.foreign, LongestRunWords: tt.longest}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("label (-want +got):\n%s", d)
			}
		})
	}
}

func TestLabelOfRoleMarkers(t *testing.T) {
	s := newScene(t)
	s.sends("donor", secret("a", 20), secret("b", 20))
	a := s.said(copied{text: " " + secret("a", 20), donor: "donor"})
	for i, tok := range append([]gpukv.Token{userToken}, s.e.vocabulary.Encode(nil, secret("b", 20))...) {
		a.reads = append(a.reads, gpukv.Read{Step: len(a.tokens), Donor: uint64(s.tenant("donor")), Tenant: s.tenant("donor"), Position: 20 + i})
		a.tokens = append(a.tokens, tok)
	}
	got := s.label("victim", Label{}, a)
	if len(got.Expect) > 0 || got.LongestRunWords != 20 || got.ForeignTokens != 41 {
		t.Errorf("a run goes on over a role marker: %+v", got)
	}
}

func TestLabelOfSeveralAnswersAndAborts(t *testing.T) {
	s := newScene(t)
	s.sends("a", secret("a", 80))
	s.sends("b", secret("b", 80))
	one := s.said(copied{text: " " + secret("a", 40), donor: "a"})
	two := s.said(copied{text: " " + secret("b", 45), donor: "b"})
	got := s.label("victim", Label{}, one, two)
	if want := []Leak{{"prompt_leak", "a"}, {"prompt_leak", "b"}}; !cmp.Equal(want, got.Expect) || got.LongestRunWords != 45 {
		t.Errorf("two choices: %+v", got)
	}
	got = s.label("victim", Label{Aborted: true}, one)
	if want := []Leak{{"prompt_leak", "a"}}; len(got.Expect) > 0 || !cmp.Equal(want, got.Allow) {
		t.Errorf("client left: %+v", got)
	}
	// The token that ended an answer is read and never said.
	one.reads = append(one.reads, gpukv.Read{Step: len(one.tokens), Donor: 1, Tenant: s.tenant("b")})
	if got = s.label("victim", Label{}, one); got.ForeignTokens != 40 {
		t.Errorf("with the end of text: %+v", got)
	}
}

func TestLabelRing(t *testing.T) {
	r := labelRing{limit: 3}
	for i := range 5 {
		r.add(Label{Exchange: fmt.Sprint(i)})
	}
	var got []string
	for _, l := range r.all() {
		got = append(got, l.Exchange)
	}
	if d := cmp.Diff([]string{"2", "3", "4"}, got); d != "" || r.lost() != 2 {
		t.Errorf("ring holds %v, lost %d", got, r.lost())
	}
}

func TestWriteLabels(t *testing.T) {
	labels := []Label{
		{Exchange: "r-1", Tenant: "v", Status: 200, Expect: []Leak{{"prompt_leak", "<d>"}}, ForeignTokens: 4, LongestRunWords: 31, Oversized: true, PromptTokens: 9},
		{Exchange: "r-2", Tenant: "w", Expect: []Leak{}},
	}
	var b bytes.Buffer
	if err := WriteLabels(&b, labels); err != nil {
		t.Fatal(err)
	}
	want := `{"exchange":"r-1","tenant":"v","status":200,"expect":[{"kind":"prompt_leak","donor":"<d>"}],"foreign_tokens":4,"longest_run_words":31,"oversized":true,"prompt_tokens":9}
{"exchange":"r-2","tenant":"w","status":0,"expect":[],"foreign_tokens":0,"longest_run_words":0,"oversized":false,"prompt_tokens":0}
`
	if d := cmp.Diff(want, b.String()); d != "" {
		t.Errorf("NDJSON (-want +got):\n%s", d)
	}
	var got []Label
	for dec := json.NewDecoder(&b); dec.More(); {
		var l Label
		if err := dec.Decode(&l); err != nil {
			t.Fatal(err)
		}
		got = append(got, l)
	}
	if d := cmp.Diff(labels, got); d != "" {
		t.Errorf("read back (-want +got):\n%s", d)
	}
}
