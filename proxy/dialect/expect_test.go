package dialect

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// expected is what an independent decoder read in one recorded interaction.
type expected struct {
	URL    string
	Stream bool
	Prompt []struct {
		Role     string
		Text     string
		ToolArgs []string `json:"tool_args"`
	}
	Outputs []struct {
		Index     int
		Text      string
		Reasoning string
		ToolCalls []struct{ Name, Args string } `json:"tool_calls"`
		Finish    any                           `json:"finish_reason"`
	}
	Usage map[string]any
	Error map[string]any
	ID    string
	Model string
	Notes []string
}

// speakers says which dialect each sample must be read by.
var speakers = []struct{ prefix, dialect string }{
	{"anthropic/", "anthropic-messages"},
	{"azure/", "openai-chat"},
	{"bedrock/converse", "bedrock-converse"},
	{"bedrock/invoke", "bedrock-invoke"},
	{"cohere/v1", "cohere-v1"},
	{"cohere/v2", "cohere-v2"},
	{"gemini/", "gemini"},
	{"ollama/", "ollama"},
	{"openai-audio/", "openai-audio"},
	{"openai-chat/", "openai-chat"},
	{"openai-compat/", "openai-chat"},
	{"openai-completions/", "openai-completions"},
	{"openai-embeddings/", "embeddings"},
	{"openai-responses/", "openai-responses"},
	{"workers-ai/", "workers-ai"},
}

// exceptions are what the expectations leave out or say otherwise, on purpose.
var exceptions = map[string]string{
	"bedrock/converse_stream_tools.yaml#1 prompt":                  "the expectation leaves out the JSON of tool results",
	"openai-responses/stream_two_messages_phase.chunks.txt#0 text": "the sample drops deltas, and the whole text at the end says more (its own note)",
	"anthropic/stream_spliced_restart.chunks.txt#0 text":           "the expectation keeps the last message only, but the client saw both (its own note)",
	"openai-audio/transcription_multipart.yaml#0 prompt":           "the sample leaves out the form",
	"workers-ai/openai_shape_reasoning_content.sse#0 error":        "the sample has neither a finish reason nor [DONE]",
	"cohere/v1_generate_stream.har#0 usage":                        "the expectation leaves out the tokens that are billed",
}

// TestExpect holds the recorded samples against what another decoder read.
func TestExpect(t *testing.T) {
	all := recordings(t)
	b, err := os.ReadFile(filepath.Join(samples, "EXPECT.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files map[string][]expected
	if err := json.Unmarshal(b, &files); err != nil {
		t.Fatal(err)
	}
	total := 0
	for file, list := range files {
		if slices.Contains(sampleFolders, strings.Split(file, "/")[0]) {
			total += len(list)
		}
	}
	used := map[string]bool{}
	except := func(r recording, what string) bool {
		key := r.String() + " " + what
		used[key] = true
		_, ok := exceptions[key]
		return ok
	}
	checked := 0
	for _, r := range all {
		if r.n >= len(files[r.file]) {
			continue
		}
		checked++
		t.Run(r.String(), func(t *testing.T) {
			w := files[r.file][r.n]
			d := r.dialect()
			if d == nil {
				t.Fatalf("no dialect matches %s", r.path)
			}
			want := ""
			for _, s := range speakers {
				if strings.HasPrefix(r.file, s.prefix) {
					want = s.dialect
				}
			}
			if d.Name() != want {
				t.Fatalf("%s is read by %s, want %s", r.path, d.Name(), want)
			}
			if r.request != nil && !except(r, "prompt") {
				checkPrompt(t, d, r, w)
			}
			checkAnswer(t, decodeWhole(d.Decoder(r.prompt(), r.header()), r.response), r, w, except)
		})
	}
	if checked != total {
		t.Errorf("checked %d interactions, want all %d", checked, total)
	}
	for key := range exceptions {
		if !used[key] {
			t.Errorf("the exception %q is of no sample", key)
		}
	}
}

// oneLine writes JSON in one way; other text stays as it is.
func oneLine(s string) string {
	s = strings.TrimSpace(s)
	var v any
	if !strings.HasPrefix(s, "{") || json.Unmarshal([]byte(s), &v) != nil {
		return s
	}
	b, err := json.Marshal(v)
	if err != nil {
		return s
	}
	return string(b)
}

// turn is what one role says in a row.
type turn struct {
	Role Role
	Text string
}

// appendSaid adds text to the last turn, if it is of the same role, or else as a
// new one.
func appendSaid(all []turn, role Role, text string) []turn {
	if text = oneLine(text); text == "" {
		return all
	}
	if n := len(all); n > 0 && all[n-1].Role == role {
		all[n-1].Text += "\n" + text
		return all
	}
	return append(all, turn{role, text})
}

// checkPrompt compares what the prompt says, role by role and in order. The
// expectation has no role for what tools gave where the API sends it as the
// user's, and neither names of calls nor what tools say of themselves: those
// are taken from the body by a walk of its own.
func checkPrompt(t *testing.T, d Dialect, r recording, w expected) {
	t.Helper()
	p, err := d.Prompt(r.request, r.path, typed(r.requestType))
	if err != nil {
		t.Errorf("prompt: %v", err)
	}
	if p.Stream != w.Stream && d.Name() != "gemini" && !strings.HasPrefix(d.Name(), "bedrock") && d.Name() != "ollama" {
		t.Errorf("stream: got %t, want %t", p.Stream, w.Stream)
	}
	if p.Canonical == [32]byte{} {
		t.Error("the prompt has no canonical digest")
	}
	toolIsUser := slices.ContainsFunc([]string{"anthropic", "gemini", "bedrock"}, func(s string) bool { return strings.HasPrefix(d.Name(), s) })
	role := func(s string) Role {
		return map[string]Role{"system": System, "developer": System, "user": User, "assistant": Assistant, "model": Assistant, "tool": Tool}[s]
	}
	var want, got []turn
	for _, m := range w.Prompt {
		for line := range strings.SplitSeq(m.Text, "\n") {
			want = appendSaid(want, role(m.Role), line)
		}
		for _, a := range m.ToolArgs {
			want = appendSaid(want, role(m.Role), a)
		}
	}
	extras := toolStrings(t, r.request)
	for _, part := range p.Parts {
		if i := slices.Index(extras, part.Text); i >= 0 && (part.Role == System || part.Role == Assistant) {
			extras = slices.Delete(extras, i, i+1)
			continue
		}
		role := part.Role
		if role == Tool && toolIsUser {
			role = User
		}
		if strings.HasPrefix(strings.TrimSpace(part.Text), "{") {
			got = appendSaid(got, role, part.Text)
			continue
		}
		for line := range strings.SplitSeq(part.Text, "\n") {
			got = appendSaid(got, role, line)
		}
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		t.Errorf("prompt (-want +got):\n%s", diff)
	}
	if len(extras) > 0 {
		t.Errorf("of the tools these were not read: %q", extras)
	}
	var unseen []Reason
	if strings.Contains(r.file, "token_ids") {
		unseen = append(unseen, ReasonTokenIDs)
	}
	if strings.Contains(r.file, "multimodal") {
		unseen = append(unseen, ReasonMedia)
	}
	if diff := gocmp.Diff(unseen, p.Unseen); diff != "" {
		t.Errorf("unseen in the prompt (-want +got):\n%s", diff)
	}
}

// toolStrings collects the names, descriptions and enumerations of a request's
// tools, and the names and reasoning in its history.
func toolStrings(t *testing.T, body []byte) (all []string) {
	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		t.Fatal(err)
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				walk(e)
			}
		case map[string]any:
			for _, k := range slices.Sorted(maps.Keys(v)) {
				s, isString := v[k].(string)
				switch {
				case isString && (k == "name" || k == "description"):
					all = append(all, s)
				case k == "enum":
					for _, s := range v[k].([]any) {
						all = append(all, s.(string))
					}
				default:
					walk(v[k])
				}
			}
		}
	}
	walk(v["tools"])
	walk(v["toolConfig"])
	var history func(v any)
	history = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, e := range v {
				history(e)
			}
		case map[string]any:
			name, _ := v["name"].(string)
			for _, k := range [...]string{"arguments", "input", "args"} {
				if v[k] != nil && name != "" {
					all = append(all, name)
				}
			}
			if s, _ := v["reasoning_content"].(string); s != "" {
				all = append(all, s)
			}
			for _, e := range v {
				history(e)
			}
		}
	}
	history(v["messages"])
	history(v["input"])
	history(v["contents"])
	return all
}

// heard is what one choice says, without its blocks.
type heard struct {
	Text, Reasoning string
	Calls           []string
}

func checkAnswer(t *testing.T, got answer, r recording, w expected, except func(recording, string) bool) {
	t.Helper()
	wantErr := Reason("")
	if except(r, "error") {
		wantErr = ReasonTruncated
	}
	if gotErr := reasonOf(got.Err); gotErr != wantErr {
		t.Errorf("error: got %v, want reason %q", got.Err, wantErr)
	}
	want := map[int]heard{}
	for _, o := range w.Outputs {
		h := heard{Text: o.Text, Reasoning: o.Reasoning}
		for _, c := range o.ToolCalls {
			h.Calls = append(h.Calls, c.Name+" "+oneLine(c.Args))
		}
		if o.Text+o.Reasoning != "" || h.Calls != nil {
			want[o.Index] = h
		}
	}
	if text := heardIn(got, 0); !except(r, "text") {
		if diff := gocmp.Diff(want, text); diff != "" {
			t.Errorf("text (-want +got):\n%s", diff)
		}
	} else {
		checkLonger(t, r, want, got)
	}
	if len(w.Outputs) > 0 && w.Outputs[0].Finish != nil {
		finish := fmt.Sprint(w.Outputs[0].Finish)
		if strings.Contains(r.file, "intenums") {
			finish = map[string]string{"1": "STOP"}[finish]
		}
		if got.Info.FinishReason != finish {
			t.Errorf("finish reason: got %q, want %q", got.Info.FinishReason, finish)
		}
	}
	if w.ID != "" && got.Info.ID != w.ID || w.Model != "" && got.Info.Model != w.Model {
		t.Errorf("id and model: got %q, %q, want %q, %q", got.Info.ID, got.Info.Model, w.ID, w.Model)
	}
	gotUsage := []int{got.Info.PromptTokens, got.Info.CompletionTokens, got.Info.CachedTokens}
	if diff := gocmp.Diff(usageOf(w.Usage), gotUsage); !except(r, "usage") && diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	code, _ := w.Error["code"].(string)
	blocked, _ := w.Error["blockReason"].(string)
	if want := cmp.Or(code, blocked); got.Info.Error != want {
		t.Errorf("error code: got %q, want %q", got.Info.Error, want)
	}
}

// heardIn joins what an answer says in the blocks from the given one on.
func heardIn(a answer, from int) map[int]heard {
	all := map[int]heard{}
	calls := map[[2]int]*[2]string{}
	var order [][2]int
	for _, d := range a.Places {
		if d.Block < from || d.Channel == ToolID {
			continue // the expectation doesn't name ids
		}
		h := all[d.Choice]
		key := [2]int{d.Choice, d.Block}
		switch d.Channel {
		case Content:
			h.Text += d.Text
		case Reasoning:
			h.Reasoning += d.Text
		case ToolName, ToolArgs:
			if calls[key] == nil {
				calls[key] = new([2]string)
				order = append(order, key)
			}
			if d.Channel == ToolName {
				calls[key][0] += d.Text
			} else {
				calls[key][1] += d.Text
			}
		}
		all[d.Choice] = h
	}
	for _, key := range order {
		h := all[key[0]]
		h.Calls = append(h.Calls, calls[key][0]+" "+oneLine(calls[key][1]))
		all[key[0]] = h
	}
	return all
}

// checkLonger checks samples whose expectation holds a part of what was said.
func checkLonger(t *testing.T, r recording, want map[int]heard, got answer) {
	t.Helper()
	switch {
	case strings.Contains(r.file, "spliced"):
		if diff := gocmp.Diff(want, heardIn(got, 2)); diff != "" {
			t.Errorf("the second message (-want +got):\n%s", diff)
		}
	case strings.Contains(r.file, "two_messages"):
		rest := want[0].Text
		for _, d := range got.Places {
			n := 0
			for n < len(rest) && n < len(d.Text) && rest[n] == d.Text[n] {
				n++
			}
			rest = rest[n:]
		}
		if rest != "" {
			t.Errorf("the blocks do not begin with the deltas; left of these: %q", rest)
		}
		if text := got.textAt(0, Content); len(text) < 1000 || strings.Count(text, "Got it") != 1 || strings.Count(text, "Here are a few") != 1 {
			t.Errorf("the whole text is not there, or twice: %q", text)
		}
	default:
		t.Errorf("%s: no check", r)
	}
}

// usageOf reads the counts of prompt, completion and cached tokens.
func usageOf(u map[string]any) []int {
	sum := func(keys ...string) int {
		n := 0
		for _, key := range keys {
			m := u
			for parent, rest, ok := strings.Cut(key, "."); ok; parent, rest, ok = strings.Cut(key, ".") {
				m, _ = m[parent].(map[string]any)
				key = rest
			}
			f, _ := m[key].(float64)
			n += int(f)
		}
		return n
	}
	return []int{
		sum("prompt_tokens", "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "promptTokenCount",
			"inputTokens", "inputTokenCount", "prompt_eval_count", "tokens.input_tokens"),
		sum("completion_tokens", "output_tokens", "candidatesTokenCount", "thoughtsTokenCount", "outputTokens", "outputTokenCount",
			"eval_count", "tokens.output_tokens"),
		sum("prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens", "cache_read_input_tokens", "cached_tokens"),
	}
}

func reasonOf(err *Error) Reason {
	if err == nil {
		return ""
	}
	return err.Reason
}
