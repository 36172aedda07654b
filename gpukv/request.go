package gpukv

// The state of a request on one node. Each node has its own, as in the engine:
// the two halves of a request share an id and a transfer and nothing else.
//
// How a request ends is told by two fields, and the incident lives between them.
// finishedReason says that the request has ended. toFinish says that it is to
// end at the next chance. finished looks at the first alone; aborted looks at
// both. updateFinishState is the only place that turns the second into the
// first, and the prefill node never calls it on the results of its forward
// passes. So a request that setFinishWithAbort has marked there is aborted, is
// not finished, and walks on through every queue that asks only whether it is
// finished: as a request of one placeholder token.

// Request is what a client asks.
type Request struct {
	ID     uint64  // unique among the requests that are live or have reads that were not forgotten
	Tenant uint32  // whose request it is
	Prompt []Token // not empty; kept until the request has ended, so the caller must not change it
	MaxNew int     // most tokens of the answer; 0 means 128; cut to what the pool and the window leave
	Stop   Token   // ends the answer when generated, is counted and not yielded; 0 means none
}

// Finish says how a request ended.
type Finish struct {
	Reason           string // stop, length or abort
	Status           int    // HTTP status: 200, that of a refusal, or 499 when the client had gone
	Message          string // of a refusal, as the engine words it
	ErrType          string // of a refusal: BadRequestError or InternalServerError
	PromptTokens     int    // as the node that answered counts them
	CompletionTokens int    // generated tokens, the stop token included
}

// The reasons of a [Finish].
const (
	reasonStop   = "stop"
	reasonLength = "length"
	reasonAbort  = "abort"
)

// finish is the reason that a node records for the end of a request.
type finish struct {
	reason  string
	status  int
	message string
	errType string
}

var (
	finishStop   = &finish{reason: reasonStop, status: 200}
	finishLength = &finish{reason: reasonLength, status: 200}
	finishGone   = &finish{reason: reasonAbort, status: 499}
)

// placeholder is the input of an aborted request.
const placeholder Token = 0

// req is a request on one node.
type req struct {
	input  []Token // the prompt, or the placeholder
	output []Token
	maxNew int
	stop   Token

	finishedReason *finish
	toFinish       *finish

	pages  []uint32 // page table
	owed   int      // pages promised and not yet taken
	filled int      // prefill: tokens computed
	gone   bool     // the node has let go of it and of its pages
}

func newReq(r *Request) req {
	return req{input: r.Prompt, maxNew: r.MaxNew, stop: r.Stop}
}

func (r *req) finished() bool { return r.finishedReason != nil }

// aborted says whether the request has ended or will end by an abort.
func (r *req) aborted() bool {
	return r.finishedReason != nil && r.finishedReason.reason == reasonAbort ||
		r.toFinish != nil && r.toFinish.reason == reasonAbort
}

// setFinishWithAbort marks the request to be ended with 400 and swaps its input
// for the placeholder. The request is not finished.
func (r *req) setFinishWithAbort(message string) {
	r.input = []Token{placeholder}
	r.toFinish = badRequest(message)
}

// updateFinishState promotes toFinish, or ends the request if its answer is
// complete.
func (r *req) updateFinishState() {
	switch n := len(r.output); {
	case r.finished():
	case r.toFinish != nil:
		r.finishedReason, r.toFinish = r.toFinish, nil
	case n > 0 && r.stop != 0 && r.output[n-1] == r.stop:
		r.finishedReason = finishStop
	case n >= r.maxNew:
		r.finishedReason = finishLength
	}
}

// release gives the pages of the request back to the pool of its node.
func (r *req) release(p *pool) {
	p.give(r.pages)
	p.forgo(r.owed)
	r.pages, r.owed, r.gone = nil, 0, true
}
