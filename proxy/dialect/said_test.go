package dialect

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// remembering returns an output that keeps track of what it gives.
func remembering() *output { return &output{said: map[place]*said{}} }

func TestRest(t *testing.T) {
	for _, tt := range []struct {
		name   string
		pieces []string
		wholes []string
		want   string // in the place itself
		second string // in its second block
	}{
		{"the same", []string{"ab", "cd"}, []string{"abcd"}, "abcd", ""},
		{"five times", []string{"ab"}, []string{"ab", "ab", "ab", "ab"}, "ab", ""},
		{"nothing before", nil, []string{"abcd"}, "abcd", ""},
		{"more", []string{"ab"}, []string{"abcd"}, "abcd", ""},
		{"more and more", []string{"ab"}, []string{"abcd", "abcdef"}, "abcdef", ""},
		{"trimmed", []string{"  ab"}, []string{"ab"}, "  ab", ""},
		{"trimmed, and more", []string{"\n ab"}, []string{"ab\n"}, "\n ab\n", ""},
		{"not trimmed", []string{" ab"}, []string{" ab c"}, " ab c", ""},
		{"white space only", []string{" "}, []string{" ab"}, " ab", ""},
		{"white space that grows", []string{" "}, []string{"  ab"}, "  ab", ""},
		{"another text", []string{"abcd"}, []string{"xyz"}, "abcd", "xyz"},
		{"another text, twice", []string{"abcd"}, []string{"xyz", "xyz"}, "abcd", "xyz"},
		{"another text that grows", []string{"abcd"}, []string{"xy", "xyz"}, "abcd", "xyz"},
		{"shorter", []string{"abcd"}, []string{"ab"}, "abcd", "ab"},
		{"empty whole", []string{"ab"}, []string{""}, "ab", ""},
		{"half a character that the whole has", []string{`a\ud83d`}, []string{`a\ud83d\ude00`}, "a😀", ""},
		{"a character in halves", []string{`a\ud83d`, `\ude00b`}, []string{`a\ud83d\ude00b`}, "a😀b", ""},
	} {
		o := remembering()
		p := place{0, Content, 0}
		for _, s := range tt.pieces {
			o.text(p, "", gjson.Parse(`"`+strings.ReplaceAll(s, "\n", `\n`)+`"`))
		}
		for _, s := range tt.wholes {
			o.whole(p, "", gjson.Parse(`"`+strings.ReplaceAll(s, "\n", `\n`)+`"`))
		}
		got := map[int]string{}
		for _, d := range merge(o.close(o.dst, new(error))) {
			got[d.Block] = d.Text
		}
		if got[0] != tt.want || got[secondBlock] != tt.second {
			t.Errorf("%s: got %q and %q, want %q and %q", tt.name, got[0], got[secondBlock], tt.want, tt.second)
		}
	}
}

// TestSaidIsBounded gives text at more places than are remembered.
func TestSaidIsBounded(t *testing.T) {
	o := remembering()
	for i := range maxSaid + 100 {
		o.add(place{i, Content, 0}, "x")
		o.from = len(o.dst)
	}
	if len(o.said) != maxSaid {
		t.Errorf("%d places are remembered, want %d", len(o.said), maxSaid)
	}
}

// TestGrowth streams texts as SGLang does, in both of its modes.
func TestGrowth(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	words := []string{"ha", " the", "the", " ", "\n", "é", "漢", "😀", "a", "haha", ""}
	type event struct {
		Text string         `json:"text"`
		IDs  []int          `json:"output_ids,omitempty"`
		Meta map[string]any `json:"meta_info"`
	}
	for range 2000 {
		var whole string
		var all []event
		var ids []int
		whose := []string{"cumulative", "incremental", "cumulative, no ids"}[rnd.IntN(3)]
		for n := rnd.IntN(12); n >= 0; n-- {
			piece, fresh := "", 1+rnd.IntN(3)
			for range fresh {
				piece += words[rnd.IntN(len(words))]
			}
			whole += piece
			var more []int
			for range fresh {
				more = append(more, rnd.IntN(1000))
			}
			ids = append(ids, more...)
			e := event{Text: whole, IDs: ids, Meta: map[string]any{"completion_tokens": len(ids)}}
			switch whose {
			case "incremental":
				e.Text, e.IDs = piece, more
			case "cumulative, no ids":
				e.IDs = nil
			}
			b, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			e = event{}
			if err := json.Unmarshal(b, &e); err != nil {
				t.Fatal(err)
			}
			all = append(all, e)
		}
		var b strings.Builder
		for _, e := range all {
			j, err := json.Marshal(e)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "data: %s\n\n", j)
		}
		b.WriteString("data: [DONE]\n\n")
		a := decodeWhole(generate{}.Decoder(Prompt{}, typed("text/event-stream")), []byte(b.String()))
		if got := a.textAt(0, Content); got != whole {
			t.Fatalf("%s: got %q, want %q, from\n%s", whose, got, whole, b.String())
		}
	}
}

// TestLostDeltas loses deltas of a stream of the Responses API, whose end then
// gives the rest; text never comes twice.
func TestLostDeltas(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 500 {
		var b strings.Builder
		send := func(v any) {
			j, err := json.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&b, "data: %s\n\n", j)
		}
		type part struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}
		type item struct {
			ID      string `json:"id"`
			Type    string `json:"type"`
			Content []part `json:"content"`
		}
		var items []item
		var want []string
		for i := range 1 + rnd.IntN(3) {
			it := item{ID: fmt.Sprint("m", i), Type: "message"}
			for c := range 1 + rnd.IntN(2) {
				text := fmt.Sprint(i, c) + randomText(rnd, 1+rnd.IntN(30)) + "." // no two begin alike
				it.Content = append(it.Content, part{"output_text", text})
				want = append(want, text)
				kept := []rune(text)[:rnd.IntN(len([]rune(text))+1)]
				for len(kept) > 0 {
					n := 1 + rnd.IntN(len(kept))
					send(map[string]any{"type": "response.output_text.delta", "output_index": i, "content_index": c, "item_id": it.ID, "delta": string(kept[:n])})
					kept = kept[n:]
				}
				if rnd.IntN(2) == 0 {
					send(map[string]any{"type": "response.output_text.done", "output_index": i, "content_index": c, "item_id": it.ID, "text": text})
				}
			}
			if rnd.IntN(2) == 0 {
				send(map[string]any{"type": "response.output_item.done", "output_index": i, "item": it})
			}
			items = append(items, it)
		}
		send(map[string]any{"type": "response.completed", "response": map[string]any{"id": "r", "status": "completed", "output": items}})
		a := decodeWhole(openAIResponses{}.Decoder(Prompt{}, typed("text/event-stream")), []byte(b.String()))
		var got []string
		for _, d := range a.Places {
			got = append(got, d.Text)
		}
		sortStrings := cmp.Transformer("sorted", func(s []string) map[string]int {
			m := map[string]int{}
			for _, x := range s {
				m[x]++
			}
			return m
		})
		if diff := cmp.Diff(want, got, sortStrings); diff != "" {
			t.Fatalf("(-want +got):\n%s\nfrom\n%s", diff, b.String())
		}
	}
}

// TestEcho takes random prompts off random answers, cut anywhere.
func TestEcho(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		prompt := randomText(rnd, 1+rnd.IntN(8))
		rest := randomText(rnd, rnd.IntN(8))
		answer, want := prompt+rest, rest
		if rnd.IntN(3) == 0 { // another text than was asked for
			runes := []rune(prompt)
			answer = string(runes[:rnd.IntN(len(runes))]) + "Z" + rest
			want = answer
		}
		o := &output{echo: newEcho(asked{echo: []string{prompt}})}
		runes := []rune(answer)
		for len(runes) > 0 {
			n := 1 + rnd.IntN(len(runes))
			o.add(place{0, Content, 0}, string(runes[:n]))
			o.add(place{0, Reasoning, 0}, "thought")
			runes = runes[n:]
		}
		a := answerOf(o)
		if got := a.textAt(0, Content); got != want {
			t.Fatalf("prompt %q, answer %q: got %q, want %q", prompt, answer, got, want)
		}
	}
}

func answerOf(o *output) answer { return answer{Places: merge(o.close(o.dst, new(error)))} }

// TestEchoIsBounded asks for more answers to a prompt than there are choices.
func TestEchoIsBounded(t *testing.T) {
	p, err := openAICompletions{}.Prompt([]byte(`{"prompt":"abc","echo":true,"n":1e300}`), "/v1/completions", nil)
	if err != nil {
		t.Fatal(err)
	}
	d := openAICompletions{}.Decoder(p, typed("text/event-stream"))
	var got []Delta
	for i := range maxChoices + 10 {
		got = d.Append(got, fmt.Appendf(nil, "data: {\"choices\":[{\"index\":%d,\"text\":\"ab\",\"finish_reason\":\"stop\"}]}\n\n", i))
	}
	if n := len(d.(*stream).echo.at); n > maxChoices {
		t.Errorf("%d answers are followed", n)
	}
	got, err = d.Finish(got)
	if err != nil || len(got) != maxChoices+10 {
		t.Errorf("got %d deltas, %v", len(got), err)
	}
}
