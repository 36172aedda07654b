package dialect

import (
	"strings"
	"testing"
)

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
		{"POST", "/v1/0123456789abcdef0123456789ABCDEF/gw/run", "workers-ai", ""},
		{"GET", "/client/v4/accounts/023e/ai/run/@cf/meta/llama-3.1-8b-instruct", "", ""},
		{"POST", "/client/v4/accounts/023e/ai/models/search", "generic", ""},
		{"POST", "/client/v4/accounts/023e/ai", "generic", ""},

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
		{"POST", "/v1/chat/completions/chatcmpl-1", "generic", ""},
		{"GET", "/v1/chat/completions/chatcmpl-1", "", ""},

		{"POST", "/v1/completions", "openai-completions", ""},
		{"POST", "/foo/v1/completions", "openai-completions", ""},
		{"POST", "/client/v4/accounts/023e/ai/v1/completions", "openai-completions", ""},
		{"POST", "/openai/deployments/my-gpt/completions", "openai-completions", "my-gpt"},
		{"POST", "/beta/completions", "openai-completions", ""},
		{"POST", "/v1/fim/completions", "openai-completions", ""},
		{"POST", "/completions", "llama.cpp", ""},
		{"POST", "/completion", "llama.cpp", ""},
		{"POST", "/infill", "llama.cpp", ""},
		{"POST", "/apply-template", "tokenizer", ""},
		{"POST", "/tokenize", "tokenizer", ""},

		{"POST", "/v1/responses", "openai-responses", ""},
		{"POST", "/openai/v1/responses", "openai-responses", ""},
		{"POST", "/client/v4/accounts/023e/ai/v1/responses", "openai-responses", ""},
		{"GET", "/v1/responses/resp_1", "openai-responses", ""},
		{"POST", "/v1/responses/resp_1/cancel", "openai-responses", ""},
		{"GET", "/v1/responses/resp_1/input_items", "", ""},
		{"GET", "/v1/responses", "", ""},
		{"DELETE", "/v1/responses/resp_1", "", ""},
		{"POST", "/v1/embeddings", "embeddings", ""},
		{"POST", "/openai/deployments/ada/embeddings", "embeddings", "ada"},
		{"POST", "/v1/audio/transcriptions", "openai-audio", ""},
		{"POST", "/openai/deployments/whisper/audio/translations", "openai-audio", "whisper"},
		{"POST", "/v1/audio/speech", "openai-speech", ""},

		{"POST", "/v1/messages", "anthropic-messages", ""},
		{"POST", "/anthropic/v1/messages", "anthropic-messages", ""},
		{"POST", "/client/v4/accounts/023e/ai/v1/messages", "anthropic-messages", ""},
		{"POST", "/v1/messages/count_tokens", "anthropic-messages", ""},
		{"POST", "/v1/threads/thread_1/messages", "generic", ""}, // OpenAI's
		{"GET", "/v1/messages", "", ""},
		{"POST", "/v1/messages/batches", "anthropic-batches", ""},
		{"GET", "/v1/messages/batches/b1/results", "anthropic-batches", ""},
		{"GET", "/v1/messages/batches/b1", "", ""},
		{"POST", "/v1/complete", "anthropic-complete", ""},

		{"POST", "/v1beta/models/gemini-2.5-pro:generateContent", "gemini", "gemini-2.5-pro"},
		{"POST", "/v1beta/models/gemini-2.5-pro%3AstreamGenerateContent", "gemini", "gemini-2.5-pro"},
		{"POST", "/v1/projects/p/locations/l/publishers/google/models/g:countTokens", "gemini", "g"},
		{"POST", "/v1/projects/p/locations/l/publishers/anthropic/models/claude:streamRawPredict", "vertex-raw", "claude"},
		{"POST", "/v1/projects/p/locations/l/endpoints/7:predict", "vertex-predict", "7"},
		{"POST", "/v1beta/models/g:unknownAction", "generic", ""},
		{"GET", "/v1beta/models/g:generateContent", "", ""},

		{"POST", "/model/amazon.nova-pro-v1%3A0/invoke", "bedrock-invoke", "amazon.nova-pro-v1:0"},
		{"POST", "/model/m/invoke-with-response-stream", "bedrock-invoke", "m"},
		{"POST", "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Ainference-profile%2Fx/converse", "bedrock-converse",
			"arn:aws:bedrock:us-east-1:1:inference-profile/x"},
		{"POST", "/model/m/converse-stream", "bedrock-converse", "m"},
		{"POST", "/model/m/invocations", "sagemaker", ""},

		{"POST", "/v2/chat", "cohere-v2", ""},
		{"POST", "/v1/chat", "cohere-v1", ""},
		{"POST", "/v1/generate", "cohere-v1", ""},
		{"POST", "/v1/summarize", "cohere-v1", ""},
		{"POST", "/v2/embed", "embeddings", ""},
		{"POST", "/v2/rerank", "rerank", ""},
		{"POST", "/rerank", "rerank", ""},

		{"POST", "/api/chat", "ollama", ""},
		{"POST", "/api/generate", "ollama", ""},
		{"POST", "/api/embed", "ollama-embed", ""},
		{"POST", "/api/embeddings", "ollama-embed", ""},
		{"POST", "/api/chat/completions", "openai-chat", ""},

		{"POST", "/generate", "generate", ""},
		{"PUT", "/generate", "generate", ""},
		{"POST", "/generate_stream", "tgi", ""},
		{"POST", "/", "tgi", ""},
		{"POST", "", "tgi", ""},
		{"POST", "/models/org/model", "tgi", "org/model"},
		{"POST", "/hf-inference/models/org/model", "tgi", "org/model"},
		{"POST", "/v2/models/m/generate", "triton-generate", "m"},
		{"POST", "/v2/models/m/versions/3/generate_stream", "triton-generate", "m"},
		{"POST", "/v2/models/m/infer", "kserve-infer", "m"},
		{"POST", "/v2/models/m/load", "generic", ""},
		{"POST", "/v2/repository/models/m/load", "generic", ""},
		{"POST", "/invocations", "sagemaker", ""},

		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw", "ai-gateway", ""},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/anthropic/v1/messages", "anthropic-messages", ""},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/openai/completions", "openai-completions", ""},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/openai/responses", "openai-responses", ""},
		{"GET", "/v1/0123456789abcdef0123456789abcdef/gw/openai/responses/resp_1", "openai-responses", ""},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/google-ai-studio/v1beta/models/g:generateContent", "gemini", "g"},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/google-vertex-ai/v1/projects/p/locations/l/publishers/google/models/g:generateContent",
			"gemini", "g"},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/azure-openai/res/dep/chat/completions", "openai-chat", "dep"},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/aws-bedrock/bedrock-runtime/us-east-1/model/m%2Fn/invoke", "bedrock-invoke", "m/n"},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/cohere/v1/chat", "cohere-v1", ""},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/huggingface/org/model", "tgi", "org/model"},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/replicate/predictions", "generic", ""},
		{"POST", "/v1/0123456789abcdef0123456789abcdef/gw/my-own/v1/chat/completions", "openai-chat", ""},
		{"GET", "/v1/0123456789abcdef0123456789abcdef/gw", "", ""},

		{"POST", "/graphql", "", ""},
		{"POST", "/anything/else", "generic", ""},
		{"POST", "/%zz/%", "generic", ""},
		{"PATCH", "/anything/else", "", ""},
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
		if err != nil && tt.want != "generic" && tt.want != "ai-gateway" || p.Model != tt.model {
			t.Errorf("%s: got model %q, error %v, want %q", tt.path, p.Model, err, tt.model)
		}
	}
}

// TestAbout holds the table of the documentation to the truth: what stands in
// it about a dialect is read by that dialect and no other, and nothing is left
// out of it.
func TestAbout(t *testing.T) {
	fill := strings.NewReplacer("{account}", "0123456789abcdef0123456789abcdef", "{provider}", "openai", "{rest}", "chat/completions")
	for _, d := range All() {
		about := d.(Describer).About()
		if about.API == "" || len(about.Paths) == 0 || len(about.Formats) == 0 {
			t.Errorf("%s: got %+v", d.Name(), about)
		}
		for _, p := range about.Paths {
			method, path, _ := strings.Cut(p, " ")
			want := d.Name()
			if d.Name() == "ai-gateway" && strings.Count(path, "/") > 3 {
				want = "openai-chat" // passed on
			}
			path = fill.Replace(path)
			if got := Find(All(), method, path); got == nil || got.Name() != want {
				t.Errorf("%s: %s is read by %v", d.Name(), p, got)
			}
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
			if d.Decoder(Prompt{}, typed(contentType)) == nil {
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
		{"", "\xEF\xBB\xBF\xEF\xBB\xBF" + whole, ReasonMIME},
		{"", "\xEF\xBB\xBF \xEF\xBB", ReasonMIME},
		{"text/plain; charset=utf-8", whole, ""},
		{"text/plain", stream, ""},
		{"text/plain", "upstream connect error", ReasonMIME},
		{"text/plain", "data", ReasonMIME},
		{"text/plain", "  ", ReasonTruncated},
		{"", "", ReasonTruncated},
		{"text/html", "<html>", ReasonMIME},
		{"image/png", "\x89PNG", ReasonMIME},
		{"application/x-ndjson", whole, ReasonTruncated},
		{"application/x-ndjson", `{"choices":[{"delta":{"content":"x"},"finish_reason":"stop"}]}`, ""},
		{"application/json", `{"choices":[{"delta":{"content":"x"}}]}` + "\n" + `{"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n", ""},
	} {
		for _, n := range []int{1, 2, 3, 1 << 20} {
			a := decode(openAIChat{}.Decoder(Prompt{}, typed(tt.contentType)), []byte(tt.body), func() int { return n })
			if got := reasonOf(a.Err); got != tt.want {
				t.Errorf("%q with %.12q: got %v, want reason %q", tt.contentType, tt.body, a.Err, tt.want)
			}
			if (tt.want == "" || tt.body == whole) != (a.textAt(0, Content) == "x") && tt.want != ReasonMIME {
				t.Errorf("%q with %.12q: got text %q", tt.contentType, tt.body, a.textAt(0, Content))
			}
		}
	}
	a := decodeWhole(workersAI{}.Decoder(Prompt{}, typed("image/png")), []byte("\x89PNG"))
	if len(a.Info.Unseen) != 1 || a.Info.Unseen[0] != ReasonMedia {
		t.Errorf("an image: got unseen %v, want %s", a.Info.Unseen, ReasonMedia)
	}
}
