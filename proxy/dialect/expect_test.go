package dialect

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// expected is what an independent decoder read in one recorded interaction.
type expected struct {
	URL    string
	Stream bool
	Prompt []struct {
		Role     string
		Text     string
		ToolArgs []string `json:"tool_args"`
		TokenIDs any      `json:"token_ids"`
	}
	Outputs []struct {
		Index     int
		Text      string
		Reasoning string
		ToolCalls []struct{ Name, Args string } `json:"tool_calls"`
		Finish    string                        `json:"finish_reason"`
	}
	Usage map[string]any
	Error map[string]any
	ID    string
	Model string
}

// TestExpect holds the recorded samples against what another decoder read.
func TestExpect(t *testing.T) {
	all := recordings(t)
	b, err := os.ReadFile(filepath.Join(samples, "EXPECT.json"))
	if err != nil {
		t.Fatal(err)
	}
	var files map[string]json.RawMessage
	if err := json.Unmarshal(b, &files); err != nil {
		t.Fatal(err)
	}
	want := map[string][]expected{}
	total := 0
	for file, b := range files {
		if !slices.Contains(sampleFolders, strings.Split(file, "/")[0]) {
			continue
		}
		var list []expected
		if err := json.Unmarshal(b, &list); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		want[file] = list
		total += len(list)
	}
	checked := 0
	for _, r := range all {
		if r.n >= len(want[r.file]) {
			continue
		}
		checked++
		t.Run(r.String(), func(t *testing.T) {
			w := want[r.file][r.n]
			d := Find(All(), "POST", r.path)
			if d == nil {
				t.Fatalf("no dialect matches %s", r.path)
			}
			if r.request != nil {
				checkPrompt(t, d, r, w)
			}
			checkAnswer(t, decodeWhole(d.Decoder(r.contentType), r.response), r, w)
		})
	}
	if checked != total {
		t.Errorf("checked %d interactions, want all %d within scope", checked, total)
	}
}

func checkPrompt(t *testing.T, d Dialect, r recording, w expected) {
	t.Helper()
	p, err := d.Prompt(r.request, r.path, nil)
	if err != nil {
		t.Errorf("prompt: %v", err)
	}
	if p.Stream != w.Stream {
		t.Errorf("stream: got %t, want %t", p.Stream, w.Stream)
	}

	// The expectation names text and arguments. Names of calls, reasoning of
	// earlier turns and what the tools say of themselves are taken from the
	// body by a walk of its own.
	var wantParts []Part
	for _, m := range w.Prompt {
		role := map[string]Role{"system": System, "user": User, "assistant": Assistant, "tool": Tool}[m.Role]
		if m.Text != "" {
			wantParts = append(wantParts, Part{role, m.Text})
		}
		for _, a := range m.ToolArgs {
			wantParts = append(wantParts, Part{Assistant, a})
		}
	}
	for _, s := range toolStrings(t, r.request) {
		role := System
		if s.history {
			role = Assistant
		}
		wantParts = append(wantParts, Part{role, s.text})
	}
	sortParts(wantParts)
	got := slices.Clone(p.Parts)
	sortParts(got)
	if diff := cmp.Diff(wantParts, got); diff != "" {
		t.Errorf("prompt parts (-want +got):\n%s", diff)
	}
	var unseen []Reason
	if strings.Contains(r.file, "token_ids") {
		unseen = append(unseen, ReasonTokenIDs)
	}
	if strings.Contains(r.file, "multimodal") {
		unseen = append(unseen, ReasonMedia)
	}
	if diff := cmp.Diff(unseen, p.Unseen); diff != "" {
		t.Errorf("unseen in the prompt (-want +got):\n%s", diff)
	}
}

func sortParts(p []Part) {
	slices.SortFunc(p, func(a, b Part) int {
		return strings.Compare(string(a.Role)+a.Text, string(b.Role)+b.Text)
	})
}

type toolString struct {
	text    string
	history bool
}

// toolStrings collects the names, descriptions and enumerations of a request's
// tools, and the names and reasoning in its history.
func toolStrings(t *testing.T, body []byte) (all []toolString) {
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
			for k, e := range v {
				s, isString := e.(string)
				switch {
				case isString && (k == "name" || k == "description"):
					all = append(all, toolString{text: s})
				case k == "enum":
					for _, s := range e.([]any) {
						all = append(all, toolString{text: s.(string)})
					}
				default:
					walk(e)
				}
			}
		}
	}
	walk(v["tools"])
	messages, _ := v["messages"].([]any)
	for _, m := range messages {
		if s, _ := m.(map[string]any)["reasoning_content"].(string); s != "" {
			all = append(all, toolString{s, true})
		}
		calls, _ := m.(map[string]any)["tool_calls"].([]any)
		for _, c := range calls {
			f := c.(map[string]any)["function"].(map[string]any)
			all = append(all, toolString{f["name"].(string), true})
		}
	}
	return all
}

func checkAnswer(t *testing.T, got answer, r recording, w expected) {
	t.Helper()
	wantErr := Reason("")
	if r.file == "workers-ai/openai_shape_reasoning_content.sse" {
		wantErr = ReasonTruncated // the sample has neither a finish reason nor [DONE]
	}
	if gotErr := reasonOf(got.Err); gotErr != wantErr {
		t.Errorf("error: got %v, want reason %q", got.Err, wantErr)
	}
	texts := map[string]string{}
	for _, o := range w.Outputs {
		put := func(c Channel, block int, s string) {
			if s != "" {
				texts[fmt.Sprint(o.Index, c, block)] = s
			}
		}
		block := blockMain
		if r.file == "openai-chat/audio_transcript_output.yaml" {
			block = blockTranscript
		}
		put(Content, block, o.Text)
		put(Reasoning, blockMain, o.Reasoning)
		for i, c := range o.ToolCalls {
			put(ToolName, i, c.Name)
			put(ToolArgs, i, c.Args)
		}
	}
	gotTexts := map[string]string{}
	for _, d := range got.Places {
		if d.Channel != ToolID { // the expectation doesn't name ids
			gotTexts[fmt.Sprint(d.Choice, d.Channel, d.Block)] = d.Text
		}
	}
	if diff := cmp.Diff(texts, gotTexts); diff != "" {
		t.Errorf("text (-want +got):\n%s", diff)
	}
	if len(w.Outputs) > 0 && got.Info.FinishReason != w.Outputs[0].Finish {
		t.Errorf("finish reason: got %q, want %q", got.Info.FinishReason, w.Outputs[0].Finish)
	}
	if got.Info.ID != w.ID || got.Info.Model != w.Model {
		t.Errorf("id and model: got %q, %q, want %q, %q", got.Info.ID, got.Info.Model, w.ID, w.Model)
	}
	details, _ := w.Usage["prompt_tokens_details"].(map[string]any)
	usage := []int{number(w.Usage["prompt_tokens"]), number(w.Usage["completion_tokens"]), number(details["cached_tokens"])}
	gotUsage := []int{got.Info.PromptTokens, got.Info.CompletionTokens, got.Info.CachedTokens}
	if diff := cmp.Diff(usage, gotUsage); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	if code, _ := w.Error["code"].(string); got.Info.Error != code {
		t.Errorf("error code: got %q, want %q", got.Info.Error, code)
	}
}

func number(v any) int {
	f, _ := v.(float64)
	return int(f)
}

func reasonOf(err *Error) Reason {
	if err == nil {
		return ""
	}
	return err.Reason
}
