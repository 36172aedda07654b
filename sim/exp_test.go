package sim

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/auditproxy/auditproxy/gpukv"
)

func env(name string, def int) int {
	if s := os.Getenv(name); s != "" {
		n, _ := strconv.Atoi(s)
		return n
	}
	return def
}

func TestExperiment(t *testing.T) {
	if os.Getenv("EXP") == "" {
		t.Skip()
	}
	div := env("DIV", 64)
	var mu sync.Mutex
	var total, foreign, ans, prm, shared int
	debugJudge = func(e *Engine, l *Label, victim uint32, answers []answer) {
		mu.Lock()
		defer mu.Unlock()
		for _, a := range answers {
			total += len(a.tokens)
			foreign += len(a.reads)
			for _, r := range a.reads {
				if r.Answer {
					ans++
				} else {
					prm++
				}
			}
			words := e.vocabulary.words(nil, a.tokens)
			for _, r := range runs(a) {
				if r.answer {
					continue
				}
				var w window
				for i := r.from; i < r.to; i++ {
					if words[i] != 0 && w.add(words[i]) {
						o, ok := e.origins.find(w.hash)
						if !ok || !o.sole(r.tenant) {
							shared++
						}
					}
				}
			}
			if l.LongestRunWords < 30 && os.Getenv("SHOW") != "" {
				fmt.Println("=====", l.Exchange, l.Tenant, l.LongestRunWords, len(a.tokens))
				at := 0
				for _, r := range runs(a) {
					fmt.Printf("%q\n", e.vocabulary.Decode(a.tokens[at:r.from]))
					fmt.Printf("   <%s answer=%v> %q\n", e.tenantName(r.tenant), r.answer, e.vocabulary.Decode(a.tokens[r.from:r.to]))
					at = r.to
				}
				fmt.Printf("%q\n", e.vocabulary.Decode(a.tokens[at:]))
			}
		}
	}
	defer func() {
		fmt.Printf("oversized answers: tokens %d foreign %d, from answers %d, from prompts %d of which not sole windows %d\n", total, foreign, ans, prm, shared)
	}()
	cfg := gpukv.Config{Seed: uint64(env("SEED", 1))}
	if os.Getenv("NOFAULT") == "" {
		cfg.Faults = []gpukv.Fault{gpukv.StalePages}
	}
	if f := os.Getenv("FIX"); f != "" {
		cfg.Fixes = []gpukv.Fix{gpukv.Fix(f)}
	}
	e, err := New(Options{Cluster: cfg, Divisor: div})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	srv := httptest.NewServer(e.Handler())
	defer srv.Close()
	w := Workload{Seed: uint64(env("SEED", 1)), Divisor: div}
	start := time.Now()
	var results []Result
	bad := 0
	tr := http.DefaultTransport.(*http.Transport).Clone()
	tr.MaxIdleConnsPerHost = 64
	tr.DisableCompression = true
	err = w.Drive(context.Background(), &http.Client{Transport: tr}, srv.URL, env("CONC", 8), func(r Result) {
		results = append(results, r)
		if r.Err != nil || r.Status != 200 {
			bad++
			if bad < 10 {
				fmt.Println("bad", r.ID, r.Tenant, r.Oversized, r.Status, r.Err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(start)
	var over, legible, ordForeign, pt, ct, n int
	hist := map[int]int{}
	for _, l := range e.Labels() {
		if l.Oversized {
			over++
			if len(l.Expect) > 0 {
				legible++
			} else {
			}
			hist[l.LongestRunWords/10*10]++
		} else {
			if l.ForeignTokens > 0 {
				ordForeign++
			}
			pt += l.PromptTokens
			n++
		}
	}
	leave, refused := 0, 0
	var ov []time.Duration
	for _, r := range results {
		if r.Aborted {
			leave++
		}
		if r.Refused {
			refused++
		}
		ct += r.CompletionTokens
		if r.Oversized {
			ov = append(ov, r.Latency)
		}
	}
	var sum time.Duration
	for _, d := range ov {
		sum += d
	}
	var ms runtime.MemStats
	runtime.ReadMemStats(&ms)
	s := e.Stats()
	fmt.Printf("seed %d conc %d div %d: took %v, results %d, bad %d, oversized %d legible %d, ordinary foreign %d, mean prompt %d, completion %d, aborted %d, refused %d, mean oversized latency %v, wraps %d, sys %d MiB, runs %d pieces %d\n",
		env("SEED", 1), env("CONC", 8), div, took, len(results), bad, over, legible, ordForeign, pt/max(n, 1), ct/len(results), leave, refused, sum/time.Duration(max(1, len(ov))), s.Decode.Wraps, ms.Sys>>20, len(e.origins.young.runs), e.vocabulary.Len())
	fmt.Println(hist)
}
