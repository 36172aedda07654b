package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// ollama speaks Ollama's own API of chat and text generation. A request streams
// unless it says not to, as JSON in lines; each line holds the next piece, and
// the last one says done.
type ollama struct{}

func (ollama) Name() string { return "ollama" }

func (ollama) About() About {
	return About{API: "Ollama; SGLang", Paths: []string{"POST /api/chat", "POST /api/generate"}, Formats: []string{formatLines, formatJSON}}
}

func (ollama) Match(method, path string) bool {
	s := ends(path)
	return method == "POST" && at(s, 1) == "api" && (at(s, 0) == "chat" || at(s, 0) == "generate")
}

func (ollama) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readRequest("ollama-"+at(ends(path), 0), "", body, h, func(r *request, v gjson.Result) {
		r.prompt.Stream = v.Get("stream").Type != gjson.False
		for k, f := range v.All() {
			switch k.Str {
			case "stream":
			case "system", "template":
				r.text(System, k.Str, -1, f)
			case "context":
				if f.IsArray() && strings.ContainsAny(f.Raw, "0123456789") {
					r.unseen(ReasonTokenIDs)
				}
			case "images":
				if f.IsArray() && f.Get("0").Exists() {
					r.unseen(ReasonMedia)
				}
			case "format":
				r.schema(f, 0)
			case "messages":
				r.ollamaMessages(f)
			default:
				r.field(k.Str, f)
			}
		}
	})
}

// ollamaMessages reads messages, which hold thinking and images beside what
// those of other APIs do.
func (r *request) ollamaMessages(v gjson.Result) {
	r.messages(v)
	for _, m := range v.All() {
		r.text(Assistant, "messages[].thinking", -1, m.Get("thinking"))
		if m.Get("images.0").Exists() {
			r.unseen(ReasonMedia)
		}
	}
}

func (ollama) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readOllama})
}

func (ollama) Error(_ int, message string, h Header) []byte { return plainError(message, h) }

// plainError returns an error that is a message and nothing else.
func plainError(message string, h Header) []byte {
	v := map[string]string{"error": message}
	if h == nil {
		return marshal(v)
	}
	return ending(h, "", v, "")
}

// readOllama reads a whole answer or one line.
func readOllama(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	i := o.base
	known := false
	for k, f := range v.All() {
		was := known
		known = true
		switch k.Str {
		case "model":
			name(&o.info.Model, f)
			known = was
		case "response":
			o.text(place{i, Content, blockMain}, "response", f)
		case "thinking":
			o.text(place{i, Reasoning, blockMain}, "thinking", f)
		case "tool_calls":
			readToolCalls(o, i, o.choice(i), f)
		case "message":
			if f.IsObject() {
				readMessage(o, i, o.choice(i), f)
				o.text(place{i, Reasoning, blockMain}, "message.thinking", f.Get("thinking"))
			} else if !isNull(f) {
				o.misfit("message", f)
			}
		case "done":
			if f.Type == gjson.True {
				o.done = true
				o.choice(i)
			}
		case "done_reason":
			o.finish(o.choice(i), f)
		case "prompt_eval_count":
			o.info.PromptTokens = count(f)
		case "eval_count":
			o.info.CompletionTokens = count(f)
		case "error":
			if !isNull(f) {
				o.failure(errorCode(f))
			}
		default:
			known = was
		}
	}
	if !known {
		o.fault(ReasonShape, "neither an answer nor an error")
	}
}

// ollamaEmbed speaks Ollama's embeddings.
type ollamaEmbed struct{}

func (ollamaEmbed) Name() string { return "ollama-embed" }

func (ollamaEmbed) About() About {
	return About{API: "Ollama embeddings", Paths: []string{"POST /api/embed", "POST /api/embeddings"}, Formats: []string{formatNone}}
}

func (ollamaEmbed) Match(method, path string) bool {
	s := ends(path)
	return method == "POST" && at(s, 1) == "api" && (at(s, 0) == "embed" || at(s, 0) == "embeddings")
}

func (ollamaEmbed) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return readRequest("ollama-embed", "", body, h, (*request).numbers)
}

func (ollamaEmbed) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readNumbers})
}

func (ollamaEmbed) Error(_ int, message string, h Header) []byte { return plainError(message, h) }
