package dialect

// How each API says that something went wrong. A proxy that must withhold an
// answer speaks as the upstream would have, so that the client's library
// raises the error that its user knows how to handle.

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// Refuser is a dialect that can write its API's own errors.
type Refuser interface {
	// Error returns an error with the given status and message. If h is nil, no
	// response has begun, and the error is the JSON body of one with that
	// status. Otherwise it is what ends the response that has begun with the
	// header h, behind a whole event, line, frame or array element of it: the
	// last event of a stream, framed. A JSON body that has begun can't be ended
	// so, and for it Error returns nil.
	Error(status int, message string, h Header) []byte
}

// isStream says whether a response with header h, which has begun, is a stream
// of server-sent events.
func isStream(h Header) bool {
	return h != nil && mediaType(h.Get("Content-Type")) == "text/event-stream"
}

// isLineStream says whether a response that has begun is JSON in lines.
func isLineStream(h Header) bool { return h != nil && isLines(mediaType(h.Get("Content-Type"))) }

// marshal returns v as JSON. The values given to it always marshal.
func marshal(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return []byte("{}")
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// sseError returns an event that holds v. The name may be empty.
func sseError(name string, v any) []byte {
	var b []byte
	if name != "" {
		b = append(append(append(b, "event: "...), name...), '\n')
	}
	b = append(append(b, "data: "...), marshal(v)...)
	return append(b, "\n\n"...)
}

// doneEvent is the end marker of OpenAI-style streams.
const doneEvent = "data: [DONE]\n\n"

// ending returns v as the end of a response that has begun with header h: an
// event, followed by end, or a line. For any other response it is nil.
func ending(h Header, name string, v any, end string) []byte {
	switch {
	case isStream(h):
		return append(sseError(name, v), end...)
	case isLineStream(h):
		return append(marshal(v), '\n')
	}
	return nil
}

// errorType names the kind of a status, as OpenAI does.
func errorType(status int) string {
	switch {
	case status == 401:
		return "authentication_error"
	case status == 403:
		return "permission_error"
	case status == 404:
		return "not_found_error"
	case status == 429:
		return "rate_limit_error"
	case status >= 400 && status < 500:
		return "invalid_request_error"
	}
	return "server_error"
}

// failure is the error that OpenAI's envelope holds.
type failure struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    any     `json:"code"`
}

type envelope struct {
	Error failure `json:"error"`
}

// openAIFailure returns OpenAI's envelope.
func openAIFailure(status int, message string) envelope {
	return envelope{failure{Message: message, Type: errorType(status), Code: errorType(status)}}
}

// openAIError returns the error of APIs that follow OpenAI.
func openAIError(status int, message string, h Header) []byte {
	if h == nil {
		return marshal(openAIFailure(status, message))
	}
	return ending(h, "", openAIFailure(status, message), doneEvent)
}

// exceptionFrame returns a frame of AWS's event stream that says an exception.
func exceptionFrame(exception string, v any) []byte {
	var b bytes.Buffer
	err := eventstream.NewEncoder().Encode(&b, eventstream.Message{
		Headers: eventstream.Headers{
			{Name: ":message-type", Value: eventstream.StringValue("exception")},
			{Name: ":exception-type", Value: eventstream.StringValue(exception)},
			{Name: ":content-type", Value: eventstream.StringValue("application/json")},
		},
		Payload: marshal(v),
	})
	if err != nil {
		return nil
	}
	return b.Bytes()
}

// isFrames says whether a response that has begun is an AWS event stream.
func isFrames(h Header) bool {
	return h != nil && strings.HasSuffix(mediaType(h.Get("Content-Type")), "amazon.eventstream")
}
