package gpukv

import "fmt"

// What a node admits, and what it says to what it doesn't.
//
// The tokenizer knows the window and nothing else. Each scheduler knows the pool
// of its own node. In the incident the window was larger than the pool of the
// prefill node, so that prompts which the tokenizer let pass could not be held
// there, and the decode node, with a larger pool, saw nothing wrong with them.

// maxReqLen returns the most tokens that a node holds for one request.
func maxReqLen(window, pool int) int { return min(window-1, pool-1) }

// maxReqInputLen returns the length from which on a scheduler refuses a prompt.
func maxReqInputLen(window, pool int) int { return maxReqLen(window, pool) - 5 }

func badRequest(message string) *finish {
	return &finish{reason: reasonAbort, status: 400, message: message, errType: "BadRequestError"}
}

func internalError(message string) *finish {
	return &finish{reason: reasonAbort, status: 500, message: message, errType: "InternalServerError"}
}

// overWindow is what the tokenizer answers.
func overWindow(n, window int) *finish {
	return badRequest(fmt.Sprintf("The input (%d tokens) is longer than the model's context length (%d tokens).", n, window))
}

// overPool is what a scheduler answers.
func overPool(n, limit int) string {
	return fmt.Sprintf("Input length (%d tokens) exceeds the maximum allowed length (%d tokens). "+
		"Use a shorter input or enable --allow-auto-truncate.", n, limit)
}
