package dialect

import "testing"

func TestFind(t *testing.T) {
	for _, tt := range []struct {
		method, path string
		want         string // "" for none
		model        string // that the path names
	}{
		{"POST", "/client/v4/accounts/023e/ai/run/@cf/meta/llama-3.1-8b-instruct", "workers-ai", "@cf/meta/llama-3.1-8b-instruct"},
		{"POST", "/client/v4/accounts/023e/ai/run/%40cf/meta/llama-3.1-8b-instruct", "workers-ai", "@cf/meta/llama-3.1-8b-instruct"},
		{"POST", "/client/v4/accounts/023e/ai/run/@cf%2Fmeta%2Fllama-3.1-8b-instruct", "workers-ai", "@cf/meta/llama-3.1-8b-instruct"},
		{"POST", "/accounts/023e/ai/run/@hf/thebloke/zephyr", "workers-ai", "@hf/thebloke/zephyr"},
		{"POST", "/proxy/client/v4/accounts/023e/ai/run/@cf/zai-org/glm-5.3", "workers-ai", "@cf/zai-org/glm-5.3"},
		{"POST", "/client/v4/accounts/023e/ai/run", "workers-ai", ""},
		{"POST", "/client/v4/accounts/023e/ai/run/", "workers-ai", ""},
		{"POST", "/client/v4/accounts/023e/ai/run/odd/v1/chat/completions", "workers-ai", "odd/v1/chat/completions"},
		{"POST", "/v1/acc/gw/workers-ai/@cf/meta/llama-3.1-8b-instruct", "workers-ai", "@cf/meta/llama-3.1-8b-instruct"},
		{"POST", "/v1/acc/gw/workers-ai/run/@cf/meta/llama-3.1-8b-instruct", "workers-ai", "@cf/meta/llama-3.1-8b-instruct"},
		{"GET", "/client/v4/accounts/023e/ai/run/@cf/meta/llama-3.1-8b-instruct", "", ""},
		{"POST", "/client/v4/accounts/023e/ai/models/search", "", ""},
		{"POST", "/client/v4/accounts/023e/ai", "", ""},

		{"POST", "/v1/chat/completions", "openai-chat", ""},
		{"POST", "/v1/chat/completions/", "openai-chat", ""},
		{"POST", "//v1//chat/completions", "openai-chat", ""},
		{"POST", "/v1/ch%61t/completions", "openai-chat", ""},
		{"POST", "/chat/completions", "openai-chat", ""},
		{"POST", "/foo/v1/chat/completions", "openai-chat", ""},
		{"POST", "/client/v4/accounts/023e/ai/v1/chat/completions", "openai-chat", ""},
		{"POST", "/v1/acc/gw/workers-ai/v1/chat/completions", "openai-chat", ""},
		{"POST", "/v1/acc/gw/compat/chat/completions", "openai-chat", ""},
		{"POST", "/api/coding/paas/v4/chat/completions", "openai-chat", ""},
		{"POST", "/openai/deployments/my-gpt/chat/completions", "openai-chat", "my-gpt"},
		{"POST", "/v1beta/openai/chat/completions", "openai-chat", ""},
		{"GET", "/v1/chat/completions", "", ""},
		{"post", "/v1/chat/completions", "", ""},
		{"POST", "/v1/chat/completions/chatcmpl-1", "", ""},

		{"POST", "/v1/completions", "openai-completions", ""},
		{"POST", "/foo/v1/completions", "openai-completions", ""},
		{"POST", "/client/v4/accounts/023e/ai/v1/completions", "openai-completions", ""},
		{"POST", "/openai/deployments/my-gpt/completions", "openai-completions", "my-gpt"},
		{"POST", "/beta/completions", "openai-completions", ""},
		{"POST", "/v1/fim/completions", "openai-completions", ""},
		{"POST", "/completions", "", ""}, // llama.cpp's own
		{"POST", "/completion", "", ""},

		{"POST", "/v1/messages", "", ""},
		{"POST", "/v1/responses", "", ""},
		{"POST", "/", "", ""},
		{"POST", "", "", ""},
		{"POST", "/%zz/%", "", ""},
	} {
		d := Find(All(), tt.method, tt.path)
		got := ""
		if d != nil {
			got = d.Name()
		}
		if got != tt.want {
			t.Errorf("%s %s: got %q, want %q", tt.method, tt.path, got, tt.want)
			continue
		}
		if d == nil {
			continue
		}
		p, err := d.Prompt([]byte(`{}`), tt.path, nil)
		if err != nil || p.Model != tt.model {
			t.Errorf("%s: got model %q, error %v, want %q", tt.path, p.Model, err, tt.model)
		}
	}
}

// TestAll holds what every dialect must be.
func TestAll(t *testing.T) {
	seen := map[string]bool{}
	for _, d := range All() {
		if d.Name() == "" || seen[d.Name()] {
			t.Errorf("the name %q is empty or used twice", d.Name())
		}
		seen[d.Name()] = true
		for _, contentType := range []string{"", "application/json", "text/event-stream", "image/png", "\x00;;"} {
			if d.Decoder(contentType) == nil {
				t.Errorf("%s: no decoder for %q", d.Name(), contentType)
			}
		}
	}
}

func TestContentTypeDecides(t *testing.T) {
	stream := "data: {\"choices\":[{\"delta\":{\"content\":\"x\"},\"finish_reason\":\"stop\"}]}\n\n"
	whole := `{"choices":[{"message":{"content":"x"}}]}`
	for _, tt := range []struct {
		contentType, body string
		want              Reason // "" if the text is read
	}{
		{"text/event-stream", stream, ""},
		{"text/event-stream; charset=utf-8", stream, ""},
		{"Text/Event-Stream;charset=UTF-8", stream, ""},
		{" text/event-stream ", stream, ""},
		{"text/event-stream", whole, ReasonTruncated}, // read, but nothing says that it ended
		{"application/json", whole, ""},
		{"application/json", "\xEF\xBB\xBF" + whole, ""},
		{"APPLICATION/JSON; charset=utf-8", whole, ""},
		{"application/problem+json", whole, ""},
		{"application/json", stream, ReasonNotJSON},
		{"", stream, ""},
		{"", "\n\n: hello\n\n" + stream, ""},
		{"", "\xEF\xBB\xBF" + stream, ""},
		{"", whole, ""},
		{"", "\xEF\xBB\xBF " + whole, ""},
		{"text/plain; charset=utf-8", whole, ""},
		{"text/plain", stream, ""},
		{"text/plain", "upstream connect error", ReasonMIME},
		{"text/plain", "data", ReasonMIME},
		{"text/plain", "  ", ReasonTruncated},
		{"", "", ReasonTruncated},
		{"text/html", "<html>", ReasonMIME},
		{"image/png", "\x89PNG", ReasonMIME},
		{"application/x-ndjson", whole + "\n", ReasonMIME},
	} {
		for _, n := range []int{1, 2, 3, 1 << 20} {
			a := decode(openAIChat{}.Decoder(tt.contentType), []byte(tt.body), func() int { return n })
			if got := reasonOf(a.Err); got != tt.want {
				t.Errorf("%q with %.12q: got %v, want reason %q", tt.contentType, tt.body, a.Err, tt.want)
			}
			if (tt.want == "" || tt.body == whole) != (a.textAt(0, Content) == "x") && tt.want != ReasonMIME {
				t.Errorf("%q with %.12q: got text %q", tt.contentType, tt.body, a.textAt(0, Content))
			}
		}
	}
	a := decodeWhole(workersAI{}.Decoder("image/png"), []byte("\x89PNG"))
	if len(a.Info.Unseen) != 1 || a.Info.Unseen[0] != ReasonMedia {
		t.Errorf("an image: got unseen %v, want %s", a.Info.Unseen, ReasonMedia)
	}
}
