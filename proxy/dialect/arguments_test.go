package dialect

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestArguments(t *testing.T) {
	for _, tt := range []struct{ name, given, want string }{
		{"nothing to undo", `{"a":1}`, `{"a":1}`},
		{"every escape", `{"a":"\"\\\/\b\f\n\r\t\u00e9"}`, "{\"a\":\"\"\\/\b\f\n\r\té\"}"},
		{"a pair of surrogates", `{"a":"\ud83d\ude00"}`, `{"a":"😀"}`},
		{"half a pair", `{"a":"\ud83d"}`, "{\"a\":\"\uFFFD\"}"},
		{"one level only", `{"a":"{\"b\":\"x\\ny\"}"}`, `{"a":"{"b":"x\ny"}"}`},
		{"white space before", " \n{\"a\":\"x\\ty\"}", " \n{\"a\":\"x\ty\"}"},
		{"a list", `["x\ny"]`, "[\"x\ny\"]"},
		{"a string", `"x\ny"`, "\"x\ny\""},
		{"no JSON", `dir C:\new`, `dir C:\new`},
		{"no escapes", `{"a":"C:\q \u12g4 \ux"}`, `{"a":"C:\q \u12g4 \ux"}`},
		{"ended behind a backslash", `{"a":"x\`, `{"a":"x`},
		{"ended inside an escape", `{"a":"x\u00e`, `{"a":"x`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for size := 1; size <= len(tt.given); size++ {
				var o output
				var a arguments
				got := ""
				for rest := tt.given; rest != ""; {
					n := min(size, len(rest))
					o.add(place{}, a.decode(rest[:n]))
					rest = rest[n:]
				}
				for _, d := range o.texts.flush(o.dst) {
					got += d.Text
				}
				if got != tt.want {
					t.Fatalf("in pieces of %d: got %q, want %q", size, got, tt.want)
				}
			}
			if got := wellFormed(argumentsOf(tt.given)); got != tt.want {
				t.Errorf("whole: got %q, want %q", got, tt.want)
			}
		})
	}
}

// letter is what is said in a prompt, and comes back in the arguments of a call.
const letter = "Dear Zoë,\nthe \"vault\" opens at\t9 \\ 😀."

// TestArgumentsSayWhatPromptsDo holds that a text reads the same as the
// argument of a call, streamed or whole, in any API, and in the history.
func TestArgumentsSayWhatPromptsDo(t *testing.T) {
	ascii := func(v any) string { // as servers in Python write it
		b, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		var s strings.Builder
		for _, r := range string(b) {
			switch {
			case r < utf8.RuneSelf:
				s.WriteRune(r)
			case r > 0xFFFF:
				s.WriteString(`\ud83d\ude00`)
			default:
				s.WriteString(`\u00eb`)
			}
		}
		return s.String()
	}
	args := ascii(map[string]string{"letter": letter})
	inner := ascii(args) // JSON in a string
	const want = `{"letter":"` + letter + `"}`
	stream := func(event func(piece string) string, end string) string {
		var b strings.Builder
		for i := range len(args) {
			b.WriteString("data: " + event(ascii(args[i:i+1])) + "\n\n")
		}
		return b.String() + "data: " + end + "\n\n"
	}
	for _, tt := range []struct{ name, dialect, kind, body string }{
		{"openai", "openai-chat", "application/json", `{"choices":[{"message":{"tool_calls":[{"function":{"arguments":` + inner + `}}]},"finish_reason":"stop"}]}`},
		{"an object", "openai-chat", "application/json", `{"choices":[{"message":{"tool_calls":[{"function":{"arguments":` + args + `}}]},"finish_reason":"stop"}]}`},
		{"openai stream", "openai-chat", "text/event-stream", stream(func(s string) string {
			return `{"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":` + s + `}}]}}]}`
		}, "[DONE]")},
		{"workers ai stream", "workers-ai", "text/event-stream", stream(func(s string) string {
			return `{"tool_calls":[{"index":0,"function":{"arguments":` + s + `}}],"p":"x"}`
		}, "[DONE]")},
		{"anthropic stream", "anthropic-messages", "text/event-stream", stream(func(s string) string {
			return `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":` + s + `}}`
		}, `{"type":"message_stop"}`)},
		{"anthropic", "anthropic-messages", "application/json", `{"type":"message","content":[{"type":"tool_use","input":` + args + `}],"stop_reason":"tool_use"}`},
		{"responses stream", "openai-responses", "text/event-stream", stream(func(s string) string {
			return `{"type":"response.function_call_arguments.delta","output_index":0,"delta":` + s + `}`
		}, `{"type":"response.function_call_arguments.done","output_index":0,"arguments":`+inner+`}`+"\n\n"+
			`data: {"type":"response.completed","response":{"status":"completed","output":[{"type":"function_call","arguments":`+inner+`}]}}`)},
		{"cohere 2 stream", "cohere-v2", "text/event-stream", stream(func(s string) string {
			return `{"type":"tool-call-delta","index":0,"delta":{"message":{"tool_calls":{"function":{"arguments":` + s + `}}}}}`
		}, `{"type":"message-end","delta":{"finish_reason":"TOOL_CALL"}}`)},
		{"cohere 1 stream", "cohere-v1", "text/event-stream", stream(func(s string) string {
			return `{"is_finished":false,"event_type":"tool-calls-chunk","tool_call_delta":{"index":0,"parameters":` + s + `}}`
		}, `{"is_finished":true,"event_type":"stream-end","finish_reason":"COMPLETE"}`)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := dialectNamed(t, tt.dialect)
			a := decodeWhole(d.Decoder(Prompt{}, typed(tt.kind)), []byte(tt.body))
			if got := a.textAt(0, ToolArgs); got != want || a.Err != nil {
				t.Errorf("got %q, %v; want %q", got, a.Err, want)
			}
			checkCuts(t, body{tt.name, d, Prompt{}, typed(tt.kind), []byte(tt.body)})
		})
	}
	for name, call := range map[string]string{
		"openai":    `{"role":"assistant","tool_calls":[{"function":{"arguments":` + inner + `}}]}`,
		"an object": `{"role":"assistant","tool_calls":[{"function":{"arguments":` + args + `}}]}`,
		"item":      `{"type":"function_call","arguments":` + inner + `}`,
		"block":     `{"role":"assistant","content":[{"type":"tool_use","input":` + args + `}]}`,
	} {
		p, err := openAIChat{}.Prompt([]byte(`{"messages":[`+call+`]}`), "", nil)
		if diff := cmp.Diff([]Part{{Assistant, want}}, p.Parts); diff != "" || err != nil {
			t.Errorf("history, %s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// TestCustomInputIsNoJSON leaves the backslashes of free text alone, even where
// it begins like JSON.
func TestCustomInputIsNoJSON(t *testing.T) {
	const input = `{\n}`
	a := decodeWhole(openAIChat{}.Decoder(Prompt{}, typed("application/json")),
		[]byte(`{"choices":[{"message":{"tool_calls":[{"custom":{"input":"{\\n}"}}]},"finish_reason":"stop"}]}`))
	if got := a.textAt(0, ToolArgs); got != input {
		t.Errorf("got %q, want %q", got, input)
	}
	p, _ := openAIChat{}.Prompt([]byte(`{"messages":[{"role":"assistant","tool_calls":[{"custom":{"input":"{\\n}"}}]}]}`), "", nil)
	if len(p.Parts) != 1 || p.Parts[0].Text != input {
		t.Errorf("history: got %q, want %q", p.Parts, input)
	}
}

// TestArgumentsAreBounded gives more places than are followed.
func TestArgumentsAreBounded(t *testing.T) {
	var o output
	for i := range maxArguments + 10 {
		o.argumentsAt(place{block: i}).decode(`{"\`)
	}
	if len(o.args) != maxArguments {
		t.Errorf("%d places are kept, want %d", len(o.args), maxArguments)
	}
}

// FuzzArguments holds that any cut gives the same, and that of valid JSON what
// encoding/json reads in its strings stands in the text.
func FuzzArguments(f *testing.F) {
	f.Add(`{"a":"x\ny\u00e9\ud83d\ude00\\"}`, 3, 9)
	f.Add(`  ["\"", "\\u0041", "\u12`, 1, 20)
	f.Fuzz(func(t *testing.T, s string, i, j int) {
		want := wellFormed(argumentsOf(s))
		i, j = min(max(i, 0), len(s)), min(max(j, 0), len(s))
		i, j = min(i, j), max(i, j)
		var a arguments
		got := wellFormed(a.decode(s[:i]) + a.decode(s[i:j]) + a.decode(s[j:]))
		if got != want {
			t.Fatalf("%q cut at %d and %d: got %q, want %q", s, i, j, got, want)
		}
		var v map[string]string
		if json.Unmarshal([]byte(s), &v) != nil || !utf8.ValidString(s) {
			return
		}
		for _, text := range v {
			if !strings.Contains(want, `"`+text+`"`) {
				t.Fatalf("%q: got %q, in which %q is missing", s, want, text)
			}
		}
	})
}

func dialectNamed(t *testing.T, name string) Dialect {
	t.Helper()
	for _, d := range All() {
		if d.Name() == name {
			return d
		}
	}
	t.Fatalf("no dialect is named %s", name)
	return nil
}
