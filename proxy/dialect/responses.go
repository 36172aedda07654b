package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// openAIResponses speaks OpenAI's Responses API, as Azure, Workers AI, vLLM,
// SGLang and llama.cpp serve it too.
//
// An answer is a list of items, and an item's text lies in parts of its own;
// a place is named by (output_index, content_index). A stream sends each text
// as deltas, then whole in output_text.done, again in content_part.done, in
// output_item.done, and in response.completed. The last one is the surest: it
// may hold text whose deltas were never sent.
//
// An answer can be fetched later with GET /v1/responses/{id}, where no prompt
// comes with it. One that the first response leaves unfinished is promised by
// [Info.Queued], and the GET says by [Prompt.Poll] which one it fetches.
type openAIResponses struct{}

func (openAIResponses) Name() string { return "openai-responses" }

func (openAIResponses) About() About {
	return About{
		API: "OpenAI Responses: OpenAI, Azure, Workers AI, vLLM, SGLang, llama.cpp",
		Paths: []string{"POST /v1/responses", "POST /openai/v1/responses", "POST /client/v4/accounts/{account}/ai/v1/responses",
			"POST /v1/responses/compact", "POST /v1/responses/input_tokens", "GET /v1/responses/{id}", "POST /v1/responses/{id}/cancel"},
		Formats: []string{formatJSON, formatSSE},
	}
}

func (openAIResponses) Match(method, path string) bool {
	s := ends(path)
	switch method {
	case "POST":
		return at(s, 0) == "responses" || at(s, 1) == "responses" && (at(s, 0) == "compact" || at(s, 0) == "input_tokens") ||
			at(s, 2) == "responses" && at(s, 0) == "cancel"
	case "GET":
		return at(s, 1) == "responses"
	}
	return false
}

func (openAIResponses) Prompt(body []byte, path string, h Header) (Prompt, error) {
	s := ends(path)
	id := ""
	if at(s, 2) == "responses" && at(s, 0) == "cancel" {
		id = at(s, 1)
	} else if at(s, 1) == "responses" && at(s, 0) != "compact" && at(s, 0) != "input_tokens" {
		id = at(s, 0)
	}
	if id != "" {
		return Prompt{Poll: id, Unseen: []Reason{ReasonStored}}, nil
	}
	return readRequest("openai-responses", "", body, h, func(r *request, v gjson.Result) {
		for k, f := range v.All() {
			r.responses(k.Str, f)
		}
	})
}

func (openAIResponses) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: newResponses().read, remember: true})
}

func (openAIResponses) Error(status int, message string, h Header) []byte {
	if isStream(h) {
		return sseError("error", struct {
			Type           string  `json:"type"`
			Code           string  `json:"code"`
			Message        string  `json:"message"`
			Param          *string `json:"param"`
			SequenceNumber int     `json:"sequence_number"`
		}{"error", errorType(status), message, nil, 0})
	}
	return openAIError(status, message, h)
}

// responses reads the answers of the Responses API.
type responses struct {
	blocks blocks
	ids    map[string]int // the items of a stream by their ids
}

func newResponses() *responses { return &responses{blocks{}, map[string]int{}} }

// read reads a whole response or one event.
func (r *responses) read(o *output, v gjson.Result) {
	if !v.IsObject() {
		o.misfit("the body", v)
		return
	}
	if t := v.Get("type").Str; isResponsesEvent(t) {
		r.event(o, t, v)
	} else if !r.object(o, v) && !readError(o, v) {
		o.fault(ReasonShape, "neither output, usage nor an error")
	}
}

// isResponsesEvent says whether the type of a value is that of an event.
func isResponsesEvent(t string) bool {
	return strings.HasPrefix(t, "response.") || t == "error" || t == "keepalive"
}

// object reads a response, and says whether v is one.
func (r *responses) object(o *output, v gjson.Result) bool {
	known := false
	var status, reason, id gjson.Result
	for k, f := range v.All() {
		switch k.Str {
		case "id":
			name(&o.info.ID, f)
			id = f
		case "model":
			name(&o.info.Model, f)
		case "output":
			r.items(o, f)
			known = true
		case "usage":
			if f.IsObject() {
				readUsage(o, f)
				known = true
			}
		case "input_tokens": // of the endpoint that counts them
			o.info.PromptTokens = count(f)
			known = true
		case "status":
			status = f
		case "incomplete_details":
			reason = f.Get("reason")
		case "error":
			if !isNull(f) {
				o.failure(errorCode(f))
				known = true
			}
		}
	}
	switch status.Str {
	case "queued", "in_progress":
		name(&o.info.Queued, id)
	case "":
	default:
		if reason.Str != "" {
			status = reason
		}
		o.finish(o.choice(o.base), status)
		o.info.Queued = ""
		known = true
	}
	return known
}

// items reads the list of all output items. It may lack some that the stream
// had, so an item that has been seen is known by its id.
func (r *responses) items(o *output, v gjson.Result) {
	if !v.IsArray() {
		if !isNull(v) {
			o.misfit("output", v)
		}
		return
	}
	n := 0
	for _, item := range v.All() {
		i, ok := r.ids[item.Get("id").Str]
		if !ok {
			i = n
		}
		r.item(o, i, item)
		n++
	}
}

// known remembers the id of item n.
func (r *responses) known(n int, id gjson.Result) {
	if s := id.Str; s != "" && len(s) <= 256 && len(r.ids) < maxSaid {
		if _, ok := r.ids[s]; !ok {
			r.ids[strings.Clone(s)] = n
		}
	}
}

// at returns a place of the answer.
func (r *responses) at(o *output, c Channel, item int, kind string, part int) place {
	return place{o.base, c, r.blocks.of(blockKey{o.base, item, kind, part})}
}

// pieces says where the text of the events of one kind belongs.
var pieces = map[string]struct {
	channel Channel
	kind    string
	part    string // field that numbers the part; "" if there is one only
	whole   string // field that holds the whole text when it is done; of JSON in a string, "arguments"
}{
	"response.output_text":                     {Content, "content", "content_index", "text"},
	"response.refusal":                         {Refusal, "content", "content_index", "refusal"},
	"response.reasoning_text":                  {Reasoning, "reasoning", "content_index", "text"},
	"response.reasoning_summary_text":          {Reasoning, "summary", "summary_index", "text"},
	"response.function_call_arguments":         {ToolArgs, "call", "", "arguments"},
	"response.custom_tool_call_input":          {ToolArgs, "call", "", "input"},
	"response.mcp_call_arguments":              {ToolArgs, "call", "", "arguments"},
	"response.code_interpreter_call_code":      {ToolArgs, "call", "", "code"},
	"response.apply_patch_call_operation_diff": {ToolArgs, "call", "", "diff"},
	"response.shell_call_command":              {ToolArgs, "command", "command_index", "command"},
	"response.shell_call_output_content":       {Content, "stdout", "command_index", "output"},
	"response.audio.transcript":                {Content, "transcript", "", "transcript"},
	"response.output_audio_transcript":         {Content, "transcript", "", "transcript"},
}

// event reads one event of a stream.
func (r *responses) event(o *output, t string, v gjson.Result) {
	switch t {
	case "error":
		e := v.Get("error")
		if !e.IsObject() {
			e = v
		}
		o.failure(errorCode(e))
		return
	case "response.created", "response.queued", "response.in_progress":
		name(&o.info.ID, v.Get("response.id"))
		name(&o.info.Model, v.Get("response.model"))
		if v.Get("response.background").Type == gjson.True {
			name(&o.info.Queued, v.Get("response.id")) // unless the end comes after all
		}
		return
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		o.done = true
		if !r.object(o, v.Get("response")) {
			o.fault(ReasonShape, "an event without its response")
		}
		return
	}
	item := count(v.Get("output_index"))
	if o.cut && !v.Get("output_index").Exists() {
		item = -1 // the index was cut off: the text joins no other
	}
	r.known(item, v.Get("item_id"))
	switch t {
	case "response.output_item.added", "response.output_item.done":
		r.known(item, v.Get("item.id"))
		r.item(o, item, v.Get("item"))
		return
	case "response.content_part.added", "response.content_part.done":
		r.part(o, item, count(v.Get("content_index")), v.Get("part"))
		return
	case "response.reasoning_summary_part.added", "response.reasoning_summary_part.done":
		o.whole(r.at(o, Reasoning, item, "summary", count(v.Get("summary_index"))), "part.text", v.Get("part.text"))
		return
	case "response.audio.delta", "response.output_audio.delta", "response.image_generation_call.partial_image":
		o.unseen(ReasonMedia)
		return
	}
	if of, ok := strings.CutSuffix(t, ".done"); ok {
		if p, ok := pieces[of]; ok && v.Get(p.whole).Type == gjson.String {
			at := r.at(o, p.channel, item, p.kind, count(v.Get(p.part)))
			if p.whole == "arguments" {
				o.wholeArguments(at, v.Get(p.whole))
			} else {
				o.whole(at, p.whole, v.Get(p.whole))
			}
		}
		return
	}
	of, ok := strings.CutSuffix(t, ".delta")
	if !ok {
		return // progress, annotations
	}
	p, ok := pieces[of]
	if !ok { // of a kind that is not known yet
		p.channel, p.kind = Content, strings.Clone(of[:min(len(of), 64)])
	}
	delta := v.Get("delta")
	if delta.IsObject() { // of a shell's output
		for _, key := range [...]string{"stdout", "stderr"} {
			o.text(r.at(o, p.channel, item, key, count(v.Get(p.part))), "delta."+key, delta.Get(key))
		}
		return
	}
	at := r.at(o, p.channel, item, p.kind, count(v.Get(p.part)))
	if p.whole == "arguments" && delta.Type == gjson.String {
		o.arguments(at, delta)
		return
	}
	o.text(at, "delta", delta)
}
