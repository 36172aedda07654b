package sim

// origins remembers who first brought each run of 11 words into the engine, and
// who else did. It is what the labels rest on when they say that a piece of
// text is evidence of a leak: text that several tenants send, or that the engine
// itself once answered, proves nothing when it turns up elsewhere.
//
// The record is exact up to 64-bit hashes: every run of 11 consecutive words of
// every prompt text, by the polynomial over the words' hashes. Texts are words
// in lower case without what stands between them. The record shares no code
// with the auditor's fingerprints and, unlike those, samples nothing.
//
// A prompt of 700,000 words that a tenant sends twenty times must not cost
// 700,000 look-ups each time. So texts are cut into chunks where a word's hash
// says so (about every 256 words, wherever the text stands), and a chunk whose
// words and the 10 before it the same tenant has already sent is skipped whole:
// all its runs are known.
//
// The record lives in two generations. When the young one has reached its limit
// it becomes the old one, and the old one is dropped; what is met again in the
// old one moves to the young one. The default limit is 16,777,216 runs, at some 26
// bytes each; the default workload makes 1.6 million, and 10.5 million at full
// size, so nothing of it is dropped. A run that was dropped is no evidence, which
// can only make a label more lenient.

import (
	"sync"
	"sync/atomic"
)

const (
	runWords       = 11
	minDistinct    = 5   // words of a run; fewer are repetition, which anybody may produce
	chunkMask      = 255 // a chunk ends at a word whose hash has these bits clear
	chunkWords     = 1024
	chunkShare     = 8 // runs to a chunk at which a generation ends, were all chunks that short
	defaultOrigins = 1 << 24
	runBase        = 0x9e3779b97f4a7c15
)

// runDrop is runBase to the power of runWords: the weight of the word that
// leaves the window.
var runDrop = func() uint64 {
	p := uint64(1)
	for range runWords {
		p *= runBase
	}
	return p
}()

// origin says who has brought a run. Tenants are numbers from 1 on.
type origin struct {
	first uint32 // who brought it first; 0 if the engine did, in an answer
	more  uint32 // the second tenant to send it, 0 if none; several if there was a third
}

const several = ^uint32(0)

// sole reports whether tenant is the only one that ever brought the run.
func (o origin) sole(tenant uint32) bool { return o.first == tenant && o.more == 0 }

// sent reports whether tenant is known to have sent the run.
func (o origin) sent(tenant uint32) bool { return o.first == tenant || o.more == tenant }

type generation struct {
	runs   map[uint64]origin
	chunks map[uint64]struct{} // of one tenant each
}

func newGeneration() *generation {
	return &generation{runs: make(map[uint64]origin), chunks: make(map[uint64]struct{})}
}

// origins is safe for concurrent use.
type origins struct {
	limit   int
	dropped atomic.Uint64 // runs that were forgotten

	mu         sync.RWMutex
	young, old *generation
}

func newOrigins(limit int) *origins {
	if limit <= 0 {
		limit = defaultOrigins
	}
	return &origins{limit: limit, young: newGeneration(), old: newGeneration()}
}

// window is the polynomial over the last runWords words.
type window struct {
	hash  uint64
	words [runWords]uint64
	n     int
}

// add takes in a word and reports whether the window is full.
func (w *window) add(word uint64) bool {
	i := w.n % runWords
	w.hash = w.hash*runBase + word - w.words[i]*runDrop
	w.words[i] = word
	w.n++
	return w.n >= runWords
}

// distinct reports whether the window holds enough different words to be worth
// remembering.
func (w *window) distinct() bool {
	n := 0
	for i, a := range w.words {
		fresh := true
		for _, b := range w.words[:i] {
			if a == b {
				fresh = false
				break
			}
		}
		if fresh {
			if n++; n >= minDistinct {
				return true
			}
		}
	}
	return false
}

// addPrompt records the words of one text of a tenant's prompt. A zero is no
// word and is skipped.
func (o *origins) addPrompt(tenant uint32, words []uint64) { o.add(tenant, words) }

// addAnswer records the words of an answer, as the engine's own.
func (o *origins) addAnswer(words []uint64) { o.add(0, words) }

func (o *origins) add(tenant uint32, words []uint64) {
	var w window
	for len(words) > 0 {
		// The chunk's name depends on its words and on those before it that
		// its first runs reach back to.
		name := mix(w.hash^uint64(tenant)*runBase) + 1
		n, k := 0, 0
		for k < len(words) && n < chunkWords {
			h := words[k]
			k++
			if h == 0 {
				continue
			}
			n++
			name = mix(name ^ h)
			if h>>32&chunkMask == 0 {
				break
			}
		}
		o.addChunk(tenant, name, words[:k], &w)
		words = words[k:]
	}
}

func (o *origins) addChunk(tenant uint32, name uint64, words []uint64, w *window) {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, known := o.young.chunks[name]
	if !known {
		o.young.chunks[name] = struct{}{}
	}
	for _, h := range words {
		if h == 0 || !w.add(h) || known {
			continue
		}
		o.put(tenant, w.hash)
	}
	if len(o.young.runs) >= o.limit || len(o.young.chunks) >= o.limit/chunkShare+1 {
		o.dropped.Add(uint64(len(o.old.runs)))
		o.old, o.young = o.young, newGeneration()
	}
}

func (o *origins) put(tenant uint32, run uint64) {
	have, ok := o.young.runs[run]
	if !ok {
		if have, ok = o.old.runs[run]; ok {
			o.young.runs[run] = have
		}
	}
	switch {
	case !ok:
		o.young.runs[run] = origin{first: tenant}
	case tenant == 0 || have.sent(tenant) || have.more == several:
	case have.more == 0:
		have.more = tenant
		o.young.runs[run] = have
	default:
		have.more = several
		o.young.runs[run] = have
	}
}

// find returns what is known of a run.
func (o *origins) find(run uint64) (origin, bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	have, ok := o.young.runs[run]
	if !ok {
		have, ok = o.old.runs[run]
	}
	return have, ok
}
