package dialect

import (
	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
	"github.com/tidwall/gjson"
)

// sageMaker speaks the one path that SageMaker asks of a server, /invocations,
// on which each serves what it can: chat and text completions (vLLM, SGLang),
// inputs (TGI), embeddings. The fields tell which it is. SageMaker itself wraps
// a stream in frames, cut without regard to the events.
type sageMaker struct{}

func (sageMaker) Name() string { return "sagemaker" }

func (sageMaker) About() About {
	return About{API: "SageMaker endpoints: vLLM, SGLang, TGI",
		Paths: []string{"POST /invocations", "POST /endpoints/{endpoint}/invocations",
			"POST /endpoints/{endpoint}/invocations-response-stream"},
		Formats: []string{formatJSON, formatSSE, formatFrames}}
}

func (sageMaker) Match(method, path string) bool {
	last := at(ends(path), 0)
	return method == "POST" && (last == "invocations" || last == "invocations-response-stream")
}

func (sageMaker) Prompt(body []byte, _ string, h Header) (Prompt, error) {
	return readRequest("sagemaker", "", body, h, func(r *request, v gjson.Result) {
		switch {
		case v.Get("inputs").Exists():
			r.textGeneration(v, false)
		case v.Get("input").Exists() || v.Get("text").Exists():
			r.numbers(v)
		default:
			r.fields(v)
		}
	})
}

func (sageMaker) Decoder(p Prompt, h Header) Decoder {
	g := newGenerated()
	read := func(o *output, v gjson.Result) {
		one := v.Get("choices").Exists() || v.Get("usage").Exists() && !v.Get("text").Exists()
		switch {
		case one:
			readOpenAI(o, v)
		case v.Get("data").IsArray(), v.Get("embedding").Exists():
			readNumbers(o, v)
		default:
			g.read(o, v)
		}
	}
	if h != nil && mediaType(h.Get("Content-Type")) == "application/vnd.amazon.eventstream" {
		inner := newStream(read)
		m := maker{form: form{remember: true}, prompt: p, header: h}
		m.begin(&inner.output)
		return &unwrapper{inner: inner, frames: newFrames(nil)}
	}
	return newDecoder(p, h, form{read: read, remember: true})
}

func (sageMaker) Error(status int, message string, h Header) []byte {
	if isFrames(h) {
		return exceptionFrame("ModelStreamError", map[string]string{"Message": message, "ErrorCode": "ModelInvocationTimeExceeded"})
	}
	return openAIError(status, message, h)
}

// unwrapper decodes a stream whose bytes are the payloads of frames.
type unwrapper struct {
	frames *frames
	inner  *stream
	dst    []Delta
}

// Append implements Decoder.
func (d *unwrapper) Append(dst []Delta, b []byte) []Delta {
	d.frames.read = d.frame
	d.dst = dst
	d.frames.Append(nil, b)
	dst, d.dst = d.dst, nil
	return dst
}

func (d *unwrapper) frame(_ *output, m eventstream.Message) {
	if t := frameHeader(m, ":message-type"); t == "exception" || t == "error" {
		d.inner.failure(shortCode(frameHeader(m, ":exception-type") + frameHeader(m, ":error-code")))
		return
	}
	d.dst = d.inner.Append(d.dst, m.Payload)
}

// Finish implements Decoder.
func (d *unwrapper) Finish(dst []Delta) ([]Delta, error) {
	d.frames.read = d.frame
	d.dst = dst
	d.frames.done = true // the inner stream says whether it ended
	_, outer := d.frames.Finish(nil)
	dst, err := d.inner.Finish(d.dst)
	d.dst = nil
	if outer != nil {
		err = outer
	}
	return dst, err
}

// Info implements Decoder.
func (d *unwrapper) Info() Info { return d.inner.Info() }
