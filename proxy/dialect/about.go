package dialect

// About says what a dialect speaks, for the table of the documentation.
type About struct {
	API     string   // name of the API, and who serves it
	Paths   []string // methods with example paths, in which {x} stands for any segment
	Formats []string // of the responses that are read
}

// Describer is a dialect that can say what it speaks.
type Describer interface{ About() About }

// The formats of responses.
const (
	formatJSON   = "JSON"
	formatSSE    = "SSE"
	formatLines  = "NDJSON"
	formatArray  = "JSON array stream"
	formatFrames = "AWS eventstream"
	formatText   = "plain text"
	formatNone   = "no text"
)
