package dialect

import "github.com/tidwall/gjson"

// embeddings speaks the APIs that take text and give vectors: their prompts are
// indexed like any other, and their answers hold no text.
type embeddings struct{}

func (embeddings) Name() string { return "embeddings" }

func (embeddings) About() About {
	return About{
		API: "Embeddings: OpenAI, Azure, Workers AI, Cohere, vLLM, SGLang, TEI, llama.cpp",
		Paths: []string{"POST /v1/embeddings", "POST /openai/deployments/{deployment}/embeddings",
			"POST /client/v4/accounts/{account}/ai/v1/embeddings", "POST /v1/embed", "POST /v2/embed", "POST /embed", "POST /embedding", "POST /encode", "POST /pooling"},
		Formats: []string{formatNone},
	}
}

func (embeddings) Match(method, path string) bool {
	switch at(ends(path), 0) {
	case "embeddings", "embed", "embedding", "embed_all", "embed_sparse", "pooling", "encode":
		return method == "POST"
	}
	return false
}

func (embeddings) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readRequest("embeddings", deployment(path), body, h, (*request).numbers)
}

func (embeddings) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readNumbers})
}

func (embeddings) Error(status int, message string, h Header) []byte {
	return openAIError(status, message, h)
}

// rerank speaks the APIs that take texts and give scores or labels for them.
type rerank struct{}

func (rerank) Name() string { return "rerank" }

func (rerank) About() About {
	return About{
		API: "Ranking, scoring and classification: Cohere, Jina, vLLM, SGLang, TEI, llama.cpp",
		Paths: []string{"POST /v1/rerank", "POST /v2/rerank", "POST /rerank", "POST /reranking", "POST /score", "POST /v1/score",
			"POST /generative_scores", "POST /classify", "POST /v1/moderations"},
		Formats: []string{formatNone},
	}
}

func (rerank) Match(method, path string) bool {
	switch at(ends(path), 0) {
	case "rerank", "reranking", "score", "generative_scores", "classify", "moderations":
		return method == "POST"
	}
	return false
}

func (rerank) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return readRequest("rerank", "", body, h, (*request).numbers)
}

func (rerank) Decoder(p Prompt, h Header) Decoder { return newDecoder(p, h, form{read: readNumbers}) }

func (rerank) Error(status int, message string, h Header) []byte {
	return openAIError(status, message, h)
}

// numbers reads a request for vectors, scores or labels.
func (r *request) numbers(v gjson.Result) {
	for k, f := range v.All() {
		if isNull(f) {
			continue
		}
		switch k.Str {
		case "input", "inputs", "texts", "text", "text_1", "text_2", "query", "queries", "content", "items":
			if f.IsArray() && f.Get("0").IsObject() { // contents with parts
				for _, e := range f.All() {
					if t := e.Get("text"); t.Exists() && !e.Get("type").Exists() {
						r.text(User, k.Str+"[].text", -1, t)
					} else if e.Get("content").Exists() {
						r.content(User, -1, e.Get("content"))
					} else {
						r.part(User, -1, e)
					}
				}
			} else {
				r.texts(User, k.Str, f)
			}
		case "images", "image":
			r.unseen(ReasonMedia)
		case "documents":
			r.cohereDocuments(User, f)
		case "examples":
			for _, e := range f.All() {
				r.text(User, "examples[].text", -1, e.Get("text"))
			}
		default:
			r.field(k.Str, f)
		}
	}
}

// readNumbers reads an answer without text.
func readNumbers(o *output, v gjson.Result) {
	if !v.IsObject() {
		if !v.IsArray() {
			o.misfit("the body", v)
		}
		return
	}
	name(&o.info.ID, v.Get("id"))
	name(&o.info.Model, v.Get("model"))
	if u := v.Get("usage"); u.IsObject() {
		readUsage(o, u)
	}
	if n := v.Get("prompt_eval_count"); n.Exists() { // Ollama
		o.info.PromptTokens = count(n)
	}
	if m := v.Get("meta"); m.IsObject() { // Cohere
		readCohereUsage(o, m)
	}
	switch e := v.Get("error"); {
	case !isNull(e):
		o.failure(errorCode(e))
	case v.Get("message").Exists() || v.Get("detail").Exists() || v.Get("object").Str == "error":
		readError(o, v)
	}
}

// tokenizer speaks the APIs that turn text into tokens and back, and prompts
// into what a model is given. What comes out is what went in, in another form.
type tokenizer struct{}

func (tokenizer) Name() string { return "tokenizer" }

func (tokenizer) About() About {
	return About{
		API: "Tokens and templates: vLLM, SGLang, Cohere, llama.cpp",
		Paths: []string{"POST /tokenize", "POST /detokenize", "POST /v1/tokenize", "POST /v1/detokenize", "POST /v1/chat/completions/render",
			"POST /apply-template"},
		Formats: []string{formatJSON},
	}
}

func (tokenizer) Match(method, path string) bool {
	switch at(ends(path), 0) {
	case "tokenize", "detokenize", "apply-template", "render":
		return method == "POST"
	}
	return false
}

func (tokenizer) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readRequest("tokenizer-"+at(ends(path), 0), "", body, h, func(r *request, v gjson.Result) {
		for k, f := range v.All() {
			switch k.Str {
			case "content", "text":
				r.text(User, k.Str, -1, f)
			case "tokens":
				r.texts(User, "tokens", f)
			default:
				r.field(k.Str, f)
			}
		}
	})
}

func (tokenizer) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readTokenizer})
}

func (tokenizer) Error(status int, message string, h Header) []byte {
	return openAIError(status, message, h)
}

// readTokenizer reads text made of tokens or of messages.
func readTokenizer(o *output, v gjson.Result) {
	readNumbers(o, v)
	for _, key := range [...]string{"prompt", "content", "text"} {
		if f := v.Get(key); f.Type == gjson.String {
			o.text(place{0, Content, blockMain}, key, f)
		}
	}
}
