package dialect

import "github.com/tidwall/gjson"

// openAIChat speaks chat completions as OpenAI defined them and as many others
// serve them: Azure, Workers AI under /ai/v1, DeepSeek, OpenRouter, Groq,
// Mistral, Perplexity, z.ai, vLLM, SGLang, llama.cpp.
type openAIChat struct{}

func (openAIChat) Name() string { return "openai-chat" }

// Match accepts any prefix before /chat/completions, which no other API uses.
func (openAIChat) Match(method, path string) bool {
	s := segments(path)
	return method == "POST" && at(s, 0) == "completions" && at(s, 1) == "chat"
}

func (openAIChat) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readOpenAIRequest(body, path, h)
}

func (openAIChat) Decoder(contentType string) Decoder { return newDecoder(contentType, readOpenAI) }

// openAICompletions speaks text completions, and Mistral's and DeepSeek's
// forms of them that fill in the middle.
type openAICompletions struct{}

func (openAICompletions) Name() string { return "openai-completions" }

// Match wants a version, or the deployment of Azure, before /completions: by
// itself that is also llama.cpp's own API.
func (openAICompletions) Match(method, path string) bool {
	s := segments(path)
	if method != "POST" || at(s, 0) != "completions" {
		return false
	}
	before := at(s, 1)
	return isVersion(before) || before == "beta" || before == "fim" || at(s, 2) == "deployments"
}

func (openAICompletions) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readOpenAIRequest(body, path, h)
}

func (openAICompletions) Decoder(contentType string) Decoder {
	return newDecoder(contentType, readOpenAI)
}

// readOpenAIRequest reads a request for chat or text completions. Azure names
// the model in the path.
func readOpenAIRequest(body []byte, path string, h Header) (Prompt, error) {
	p, err := readRequest(body, h, func(r *request, v gjson.Result) {
		for k, f := range v.All() {
			r.field(k.Str, f)
		}
	})
	if p.Model == "" {
		s := segments(path)
		for i, name := range s[:max(len(s)-1, 0)] {
			if name == "deployments" {
				p.Model = s[i+1]
			}
		}
	}
	return p, err
}
