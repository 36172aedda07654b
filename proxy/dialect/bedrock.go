package dialect

import (
	"encoding/base64"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

// bedrockModel returns the model of a Bedrock path that ends with one of the
// given actions, which is an id or an ARN, and whether it is such a path.
func bedrockModel(path string, actions ...string) (string, bool) {
	s := ends(path)
	for _, a := range actions {
		if at(s, 0) == a && at(s, 2) == "model" {
			return at(s, 1), true
		}
	}
	return "", false
}

// bedrockError returns an error of Bedrock's.
func bedrockError(message string, h Header) []byte {
	v := map[string]string{"message": message}
	switch {
	case h == nil:
		return marshal(v)
	case isFrames(h):
		return exceptionFrame("internalServerException", v)
	}
	return nil
}

// bedrockInvoke speaks Bedrock's invocations: every maker's models take and
// give what that maker's API does, and a stream wraps each event of it in a
// frame, as {"bytes": base64, "p": padding}.
type bedrockInvoke struct{}

func (bedrockInvoke) Name() string { return "bedrock-invoke" }

func (bedrockInvoke) About() About {
	return About{
		API:     "AWS Bedrock invocations: Anthropic, Nova, Titan, Llama, Mistral, Cohere, AI21 and others",
		Paths:   []string{"POST /model/{model}/invoke", "POST /model/{model}/invoke-with-response-stream"},
		Formats: []string{formatJSON, formatFrames},
	}
}

func (bedrockInvoke) Match(method, path string) bool {
	_, ok := bedrockModel(path, "invoke", "invoke-with-response-stream")
	return ok && method == "POST"
}

func (bedrockInvoke) Prompt(body []byte, path string, h Header) (Prompt, error) {
	model, _ := bedrockModel(path, "invoke", "invoke-with-response-stream")
	return readRequest("bedrock-invoke", model, body, h, func(r *request, v gjson.Result) {
		r.prompt.Model = model
		r.prompt.Stream = strings.HasSuffix(path, "stream")
		r.bedrock(v)
	})
}

func (bedrockInvoke) Decoder(p Prompt, h Header) Decoder {
	b := newBedrock()
	return newDecoder(p, h, form{read: b.read, frame: b.frame, remember: true})
}

func (bedrockInvoke) Error(_ int, message string, h Header) []byte { return bedrockError(message, h) }

// bedrock reads the answers of invocations.
type bedrock struct{ shapes *shapes }

func newBedrock() *bedrock { return &bedrock{newShapes()} }

// frame reads one frame of a stream.
func (b *bedrock) frame(o *output, m eventstream.Message) {
	if bedrockFailure(o, m) {
		return
	}
	o.payload(m.Payload, func(o *output, v gjson.Result) {
		coded := v.Get("bytes").Str
		if o.cut {
			coded = coded[:len(coded)/4*4]
		}
		chunk, err := base64.StdEncoding.DecodeString(coded)
		if err != nil {
			o.fault(ReasonShape, "bytes is not base64")
			return
		}
		o.payload(chunk, b.read)
	})
}

// bedrockFailure reads a frame that says that something went wrong, and says
// whether m is one.
func bedrockFailure(o *output, m eventstream.Message) bool {
	switch frameHeader(m, ":message-type") {
	case "exception":
		o.failure(shortCode(frameHeader(m, ":exception-type")))
	case "error":
		o.failure(shortCode(frameHeader(m, ":error-code")))
	default:
		return false
	}
	return true
}

// shortCode returns a code out of a header, unless it may be a message.
func shortCode(s string) string {
	if len(s) > 64 || strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return s
}

// read reads a whole answer or one event of any maker's.
func (b *bedrock) read(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	metrics := v.Get("amazon-bedrock-invocationMetrics")
	known := b.shapes.known(o, v) || readConverse(o, v) || readMakers(o, v)
	if !known && (!metrics.IsObject() || v.Get("choices").Exists()) {
		readOpenAI(o, v)
	}
	if metrics.IsObject() { // in the last event of every stream
		o.done = true
		// They don't count what came out of the cache, unlike what the model says.
		o.info.PromptTokens = max(o.info.PromptTokens, count(metrics.Get("inputTokenCount")))
		o.info.CompletionTokens = max(o.info.CompletionTokens, count(metrics.Get("outputTokenCount")))
		o.info.CachedTokens = max(o.info.CachedTokens, count(metrics.Get("cacheReadInputTokenCount")))
	}
}

// readMakers reads the answers of makers that have no API of their own here,
// and says whether v is one. Streams send the same fields as whole answers.
func readMakers(o *output, v gjson.Result) bool {
	if _, isCohere := v.Get("is_finished").Value().(bool); isCohere {
		readCohereV1(o, v)
		return true
	}
	known := false
	i := o.base
	main := place{i, Content, blockMain}
	list := func(where string, v gjson.Result, text, finish string) {
		known = true
		o.each(where, v, func(n int, e gjson.Result) {
			o.text(place{i + n, Content, blockMain}, text, e.Get(text))
			o.finish(o.choice(i+n), e.Get(finish))
		})
	}
	for k, f := range v.All() {
		switch k.Str {
		case "outputText": // Titan, streamed
			o.text(main, "outputText", f)
			known = true
		case "completionReason":
			o.finish(o.choice(i), f)
		case "inputTextTokenCount":
			o.info.PromptTokens = max(o.info.PromptTokens, count(f))
		case "results":
			list("results", f, "outputText", "completionReason")
		case "generation": // Llama
			o.text(main, "generation", f)
			known = true
		case "stop_reason":
			o.finish(o.choice(i), f)
		case "prompt_token_count":
			o.info.PromptTokens = max(o.info.PromptTokens, count(f))
		case "generation_token_count":
			o.info.CompletionTokens = max(o.info.CompletionTokens, count(f))
		case "outputs": // Mistral
			list("outputs", f, "text", "stop_reason")
		case "generations": // Cohere
			list("generations", f, "text", "finish_reason")
		case "text":
			o.text(main, "text", f)
			known = true
		case "completions": // AI21
			list("completions", f, "data.text", "finishReason.reason")
		case "embedding", "embeddings", "embeddingsByType":
			known = true
		}
	}
	return known
}

// bedrock reads the body of an invocation, of any maker's model.
func (r *request) bedrock(v gjson.Result) {
	r.blocks(System, "system", -1, v.Get("system")) // wherever it stands, the model reads it first
	for k, f := range v.All() {
		if isNull(f) {
			continue
		}
		switch k.Str {
		case "inputText":
			r.text(User, "inputText", -1, f)
		case "inputs":
			r.texts(User, "inputs", f)
		case "messages":
			r.converseMessages(f)
		case "toolConfig":
			r.converseTools(f)
		case "message", "texts", "chat_history", "preamble", "documents", "query":
			r.cohereV1Field(k.Str, f)
		default:
			r.field(k.Str, f)
		}
	}
}
