// Package dialect reads the APIs that pass the sidecar: what a request body
// says to the model, and what a response body says back, whole or streamed.
//
// A dialect reads and never rewrites. What it does not understand it reports,
// and the caller counts the exchange as audited in part or not at all. A
// [Dialect] is stateless and safe for concurrent use; a [Decoder] belongs to
// one response and one goroutine.
package dialect

// Role says who speaks in a part of a prompt.
type Role string

// The roles that ownership depends on. Text that the tenant itself brought
// (system, user, tool) can make the tenant a donor; the assistant's earlier
// turns never can.
const (
	System    Role = "system"
	User      Role = "user"
	Assistant Role = "assistant"
	Tool      Role = "tool"
)

// Channel names one stream of text inside a choice. Channels are scanned
// apart, since the client shows them apart.
type Channel string

// The channels of a response.
const (
	Content   Channel = "content"
	Reasoning Channel = "reasoning"
	Refusal   Channel = "refusal"
	ToolName  Channel = "tool_name"
	ToolArgs  Channel = "tool_args"
	ToolID    Channel = "tool_id"
)

// Reason says why an exchange was not audited, or not wholly.
type Reason string

// The reasons that a dialect can give. Those of the transport stand beside
// them in package audit.
const (
	ReasonNotJSON   Reason = "not_json"   // the body is not the JSON that the path promises
	ReasonShape     Reason = "bad_shape"  // JSON, but of the wrong types
	ReasonTruncated Reason = "truncated"  // the body ended before its end was said
	ReasonTokenIDs  Reason = "token_ids"  // the prompt is numbers, not text
	ReasonMedia     Reason = "media"      // images, audio or files, which hold no text here
	ReasonStored    Reason = "stored"     // text kept by the upstream and named by an id
	ReasonEncrypted Reason = "encrypted"  // opaque reasoning
	ReasonTooLong   Reason = "too_long"   // an event or body over the reader's limit
	ReasonMIME      Reason = "media_type" // a content type that the dialect does not read
	ReasonNoDialect Reason = "no_dialect" // no dialect speaks on this method and path, or of this body
	ReasonGeneric   Reason = "generic"    // an API that is not known: only fields that look like text were read
)

// Part is one run of prompt text. Passages never span two parts.
type Part struct {
	Role Role
	Text string
}

// Prompt is what one request says, in the order in which it says it.
type Prompt struct {
	Model  string   // as named by the body or path; "" when neither names it
	Stream bool     // the body asked for a stream
	Parts  []Part   // every run of text, of every role
	Unseen []Reason // what the request holds beside text, and faults beyond the one of the error, each reason once

	// Canonical is equal for two requests only if they ask the same of the same
	// API: model, messages with their roles, tools, parameters, images and files
	// all enter it, while stream flags, user ids and metadata do not. Zero means
	// that it is not known.
	Canonical [32]byte
	// Poll is the id of the request whose answer this one fetches, as
	// [Info.Queued] named it; "" if it fetches none. The text of such a request
	// came with that other one, so Unseen says [ReasonStored]; a caller that
	// still knows the other's prompt may take it instead.
	Poll string

	asked asked // what the decoder of the response must know
}

// asked is what a request says about its own response.
type asked struct {
	echo    []string // texts that the answers begin with, by choice/perEcho
	perEcho int      // answers to each of these; 0 means 1
	steps   []step   // of AI Gateway's universal endpoint
	nothing bool     // the request is of no API that holds text
}

// Delta is one piece of response text, decoded, in arrival order. Its text is
// valid UTF-8 and never empty.
type Delta struct {
	Choice  int     // index of the choice (n>1)
	Channel Channel //
	Block   int     // content block or tool call inside the choice; text of two blocks never joins
	Text    string  // as JSON decoding yields it; of tool arguments that are JSON in a string, with the escapes of both undone
}

// Info is what a response says about itself beside its text. Fields that the
// response never named are zero.
type Info struct {
	ID               string // as the body names it
	RequestID        string // as the headers name it
	Model            string
	FinishReason     string // of the first choice that named one
	PromptTokens     int    // of the whole prompt, those read from a cache included
	CompletionTokens int    // those of reasoning included
	CachedTokens     int    // of the prompt's
	Cached           bool   // a gateway answered out of its cache
	Queued           string // id under which the answer can be fetched later; see [Prompt.Poll]
	Error            string // code or type of an error envelope, never its message
	// Complete says that no text can follow: a stream's end marker was read, or
	// an error in its place, or a JSON body to its last brace. It stays false
	// for streams of APIs that name no end.
	Complete bool
	Unseen   []Reason // what the response holds beside text, and faults beyond the one of Finish, each reason once
}

// Decoder turns the bytes of one response body into deltas. How the bytes are
// cut never changes the deltas' concatenation by choice, channel and block. A
// stream gives the deltas of an event as soon as it is complete; a JSON body
// gives all of its deltas at Finish.
type Decoder interface {
	// Append decodes b and appends what it completes to dst.
	Append(dst []Delta, b []byte) []Delta
	// Finish ends the body and appends what was still held back. The error
	// says what could not be read first, as an [*Error]; the deltas stay valid.
	Finish(dst []Delta) ([]Delta, error)
	// Info returns what is known so far; it is complete after Finish.
	Info() Info
}

// Header is the part of http.Header that a dialect needs.
type Header interface{ Get(name string) string }

// Dialect speaks one API.
type Dialect interface {
	Name() string
	// Match says whether method and path belong to this dialect. The path is
	// the URL path as sent, still escaped.
	Match(method, path string) bool
	// Prompt reads a whole request body. The error is an [*Error]; the prompt
	// returned beside it holds what could be read.
	Prompt(body []byte, path string, h Header) (Prompt, error)
	// Decoder reads the response that has the header h, to the request that p
	// was read from. It makes no use of p's parts, which the caller may drop
	// meanwhile; a zero p stands for a request that was not read, a nil h for no
	// header. The decoder is never nil: for a Content-Type that the dialect does
	// not read, Finish says [ReasonMIME].
	Decoder(p Prompt, h Header) Decoder
}

// Error names what could not be read and why, without a word of the text.
type Error struct {
	Reason Reason
	Object string // what was read: "request body", "event 17", "choices[0].delta"
	Detail string // what is wrong with it, in the reader's own words
}

// Error implements error.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Object + ": " + string(e.Reason)
	}
	return e.Object + ": " + e.Detail
}

// All returns every dialect, in the order in which they are to be matched: the
// most specific first. The dialects of this package are [Refuser] and
// [Describer] too.
func All() []Dialect {
	return []Dialect{
		workersAI{},
		aiGateway{},
		openAIChat{},
		openAICompletions{},
		openAIResponses{},
		openAIAudio{},
		openAISpeech{},
		anthropicMessages{},
		anthropicBatches{},
		anthropicComplete{},
		gemini{},
		vertexRaw{},
		vertexPredict{},
		bedrockInvoke{},
		bedrockConverse{},
		ollama{},
		ollamaEmbed{},
		kserveGenerate{},
		kserveInfer{},
		cohereV2{},
		cohereV1{},
		rerank{},
		embeddings{},
		sageMaker{},
		generate{},
		textGeneration{},
		llamaCPP{},
		tokenizer{},
		generic{},
	}
}

// Find returns the first dialect of all that matches, or nil. For a gateway
// that passes an API on under a path of its own, it is the dialect of that API.
func Find(all []Dialect, method, path string) Dialect {
	for _, d := range all {
		if !d.Match(method, path) {
			continue
		}
		if g, ok := d.(router); ok {
			return g.route(all, method, path)
		}
		return d
	}
	return nil
}

// router is a dialect that stands for others on some of its paths.
type router interface {
	// route returns the dialect of a path that Match accepts.
	route(all []Dialect, method, path string) Dialect
}
