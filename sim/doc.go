// Package sim is a simulated inference engine: an HTTP server around the
// paged-KV cluster of package gpukv, with its own API encoders, the traffic of
// many invented tenants, and a ground-truth label for every answer.
//
// An [Engine] owns one cluster and steps it on one goroutine; its handler
// speaks the APIs of Workers AI, OpenAI, Anthropic, Gemini, Ollama and SGLang.
// What an answer says comes out of the cluster's pages: an induction head copies
// what the page table holds, and a small background language model fills the
// gaps. When a fault makes a request read pages that it never wrote, other
// tenants' text stands in its answer, and the engine's [Label] for it names
// whose, from the cluster's shadow record.
//
// The package imports gpukv and nothing else of this module: it shares no
// tokenizer, word splitter, encoder or decoder with the auditor, so that a
// mistake in one can't hide the same mistake in the other.
package sim
