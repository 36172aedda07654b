package dialect

import "github.com/tidwall/gjson"

// openAIChat speaks chat completions as OpenAI defined them and as many others
// serve them: Azure, Workers AI under /ai/v1, DeepSeek, OpenRouter, Groq,
// Mistral, Perplexity, z.ai, vLLM, SGLang, llama.cpp.
type openAIChat struct{}

func (openAIChat) Name() string { return "openai-chat" }

// Match accepts any prefix before /chat/completions, which no other API uses.
func (openAIChat) Match(method, path string) bool {
	s := ends(path)
	return method == "POST" && at(s, 0) == "completions" && at(s, 1) == "chat"
}

func (openAIChat) About() About {
	return About{
		API: "Chat completions: OpenAI, Azure, Workers AI, AI Gateway compat, DeepSeek, OpenRouter, Groq, Mistral, Perplexity, z.ai, vLLM, SGLang, llama.cpp",
		Paths: []string{"POST /v1/chat/completions", "POST /openai/deployments/{deployment}/chat/completions", "POST /openai/v1/chat/completions",
			"POST /client/v4/accounts/{account}/ai/v1/chat/completions", "POST /v1beta/openai/chat/completions"},
		Formats: []string{formatJSON, formatSSE},
	}
}

func (openAIChat) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readOpenAIRequest("openai-chat", body, path, h)
}

func (openAIChat) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readOpenAI})
}

func (openAIChat) Error(status int, message string, h Header) []byte {
	return openAIError(status, message, h)
}

// openAICompletions speaks text completions, and Mistral's and DeepSeek's
// forms of them that fill in the middle.
type openAICompletions struct{}

func (openAICompletions) Name() string { return "openai-completions" }

// Match wants a version, or the deployment of Azure, before /completions: by
// itself that is also llama.cpp's own API.
func (openAICompletions) Match(method, path string) bool {
	s := ends(path)
	if method != "POST" || at(s, 0) != "completions" {
		return false
	}
	before := at(s, 1)
	return isVersion(before) || before == "beta" || before == "fim" || at(s, 2) == "deployments"
}

func (openAICompletions) About() About {
	return About{
		API:     "Text completions: OpenAI, Azure, Mistral and DeepSeek fill-in-the-middle, vLLM, SGLang, TGI",
		Paths:   []string{"POST /v1/completions", "POST /openai/deployments/{deployment}/completions", "POST /beta/completions", "POST /v1/fim/completions"},
		Formats: []string{formatJSON, formatSSE},
	}
}

func (openAICompletions) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readOpenAIRequest("openai-completions", body, path, h)
}

func (openAICompletions) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readOpenAI})
}

func (openAICompletions) Error(status int, message string, h Header) []byte {
	return openAIError(status, message, h)
}

// readOpenAIRequest reads a request for chat or text completions. With echo set
// the answers begin with the prompt, or in a chat, as vLLM does it, with the
// last message if it is the assistant's.
func readOpenAIRequest(api string, body []byte, path string, h Header) (Prompt, error) {
	return readRequest(api, deployment(path), body, h, func(r *request, v gjson.Result) {
		r.fields(v)
		if v.Get("echo").Type != gjson.True {
			return
		}
		if messages := v.Get("messages").Array(); len(messages) > 0 {
			if last := messages[len(messages)-1]; roleOf(last.Get("role").Str) == Assistant {
				r.echoes(last.Get("content"), 1)
				r.prompt.asked.perEcho = maxChoices
			}
			return
		}
		r.echoes(v.Get("prompt"), count(v.Get("n")))
	})
}

// deployment returns the model that a path of Azure names, or "".
func deployment(path string) string {
	s := segments(path)
	for i, name := range s[:max(len(s)-1, 0)] {
		if name == "deployments" {
			return s[i+1]
		}
	}
	return ""
}
