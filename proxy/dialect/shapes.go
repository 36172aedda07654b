package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// shapes reads the answers of gateways and clouds that pass on, under one path,
// what models of several makers answer, each in the shape of its maker's API.
// The fields tell which it is.
type shapes struct {
	anthropic *anthropic
	google    *google
	responses *responses
}

func newShapes() *shapes { return &shapes{newAnthropic(), newGoogle(), newResponses()} }

// read reads a value of any shape that it knows.
func (s *shapes) read(o *output, v gjson.Result) {
	if !s.known(o, v) {
		readOpenAI(o, v)
	}
}

// known reads a value unless it is of the shape of chat completions, and says
// whether it is of another one.
func (s *shapes) known(o *output, v gjson.Result) bool {
	if !v.IsObject() {
		return false
	}
	// One walk over the fields, since this is asked of every event.
	var kind, object, output, content gjson.Result
	var candidates, stopped, completion bool
	for k, f := range v.All() {
		switch k.Str {
		case "type":
			kind = f
		case "object":
			object = f
		case "output":
			output = f
		case "content":
			content = f
		case "candidates", "usageMetadata":
			candidates = true
		case "stop_reason":
			stopped = true
		case "completion":
			completion = true
		}
	}
	switch t := kind.Str; {
	case t == "message_start", t == "message_delta", t == "message_stop", t == "ping", t == "message",
		strings.HasPrefix(t, "content_block_"), t == "completion", stopped && (content.IsArray() || completion):
		return s.anthropic.known(o, v)
	case strings.HasPrefix(t, "response."):
		s.responses.event(o, t, v)
		return true
	case candidates:
		return s.google.known(o, v)
	case object.Str == "response", output.IsArray() && output.Get("0.type").Exists():
		return s.responses.object(o, v)
	}
	return false
}
