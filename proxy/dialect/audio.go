package dialect

import (
	"strings"

	"github.com/tidwall/gjson"
)

// openAIAudio speaks OpenAI's transcriptions and translations of speech. The
// request is a form that holds the sound and, for the model to go by, a prompt.
// The answer is JSON, a stream, or text by itself: plain, or as subtitles.
type openAIAudio struct{}

func (openAIAudio) Name() string { return "openai-audio" }

func (openAIAudio) About() About {
	return About{API: "Transcription and translation of speech: OpenAI, Azure, Groq, vLLM, SGLang",
		Paths: []string{"POST /v1/audio/transcriptions", "POST /v1/audio/translations",
			"POST /openai/deployments/{deployment}/audio/transcriptions"},
		Formats: []string{formatJSON, formatSSE, formatText}}
}

func (openAIAudio) Match(method, path string) bool {
	s := ends(path)
	return method == "POST" && at(s, 1) == "audio" && (at(s, 0) == "transcriptions" || at(s, 0) == "translations")
}

func (openAIAudio) Prompt(body []byte, path string, h Header) (Prompt, error) {
	contentType := ""
	if h != nil {
		contentType = h.Get("Content-Type")
	}
	api := "openai-audio-" + at(ends(path), 0)
	if mediaType(contentType) != "multipart/form-data" {
		return readRequest(api, deployment(path), body, h, func(r *request, v gjson.Result) {
			for k, f := range v.All() {
				switch k.Str {
				case "file", "url", "audio":
					r.unseen(ReasonMedia)
				default:
					r.field(k.Str, f)
				}
			}
		})
	}
	var r request
	over := len(body) > MaxBody
	if over {
		body = body[:MaxBody]
		r.fault(ReasonTooLong, "a form that is too large")
	}
	fields, reason, detail := readForm(contentType, body)
	if reason != "" && !over {
		r.fault(reason, detail)
	}
	for _, f := range fields {
		switch {
		case f.file:
			r.unseen(ReasonMedia)
		case f.name == "prompt":
			r.add(User, f.text)
		case f.name == "model" && len(f.text) <= 256:
			r.prompt.Model = f.text
		case f.name == "stream":
			r.prompt.Stream = strings.EqualFold(f.text, "true")
		}
	}
	if r.prompt.Model == "" {
		r.prompt.Model = deployment(path)
	}
	if reason == "" && !over {
		r.prompt.Canonical = formDigest(api, r.prompt.Model, fields)
	}
	return r.end()
}

func (openAIAudio) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readTranscript, plain: true, remember: true})
}

func (openAIAudio) Error(status int, message string, h Header) []byte {
	return openAIError(status, message, h)
}

// readTranscript reads a transcript or one event of one.
func readTranscript(o *output, v gjson.Result) {
	p := place{0, Content, blockMain}
	if !v.IsObject() {
		if v.Type == gjson.String {
			o.text(p, "the body", v)
		} else {
			o.misfit("the body", v)
		}
		return
	}
	switch v.Get("type").Str {
	case "transcript.text.delta":
		o.text(p, "delta", v.Get("delta"))
		return
	case "transcript.text.segment": // the deltas say the same
		return
	case "transcript.text.done":
		o.done = true
	}
	known := false
	text := v.Get("text")
	if text.Exists() {
		o.whole(p, "text", text)
		known = true
	}
	// Segments repeat the text.
	if list := v.Get("segments"); list.IsArray() && !text.Exists() {
		for _, s := range list.All() {
			o.text(p, "segments[].text", s.Get("text"))
		}
		known = true
	}
	if u := v.Get("usage"); u.IsObject() {
		readUsage(o, u)
		known = true
	}
	if known {
		return
	}
	if v.Get("choices").Exists() || !isNull(v.Get("error")) { // vLLM streams chunks of chat completions
		readCompletion(o, v)
		return
	}
	if !readError(o, v) {
		o.fault(ReasonShape, "neither a transcript nor an error")
	}
}

// openAISpeech speaks OpenAI's speech out of text, whose answers are sound.
type openAISpeech struct{}

func (openAISpeech) Name() string { return "openai-speech" }

func (openAISpeech) About() About {
	return About{API: "Speech from text: OpenAI, Azure, Groq", Paths: []string{"POST /v1/audio/speech"}, Formats: []string{formatNone}}
}

func (openAISpeech) Match(method, path string) bool {
	s := ends(path)
	return method == "POST" && at(s, 1) == "audio" && at(s, 0) == "speech"
}

func (openAISpeech) Prompt(body []byte, path string, h Header) (Prompt, error) {
	return readRequest("openai-speech", deployment(path), body, h, func(r *request, v gjson.Result) {
		for k, f := range v.All() {
			if k.Str == "input" {
				r.text(User, "input", -1, f)
			} else {
				r.field(k.Str, f)
			}
		}
	})
}

func (openAISpeech) Decoder(p Prompt, h Header) Decoder {
	return newDecoder(p, h, form{read: readSpeech, media: true})
}

func (openAISpeech) Error(status int, message string, h Header) []byte {
	return openAIError(status, message, h)
}

// readSpeech reads an event of streamed sound, or an error.
func readSpeech(o *output, v gjson.Result) {
	switch v.Get("type").Str {
	case "speech.audio.delta":
		o.unseen(ReasonMedia)
	case "speech.audio.done":
		o.done = true
		readUsage(o, v.Get("usage"))
	default:
		readOpenAI(o, v)
	}
}
