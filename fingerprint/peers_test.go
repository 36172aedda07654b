//go:build peers

package fingerprint

import (
	"github.com/blevesearch/bleve/v2/analysis"
	"github.com/blevesearch/bleve/v2/analysis/token/lowercase"
	"github.com/blevesearch/bleve/v2/analysis/token/shingle"
	"github.com/blevesearch/bleve/v2/analysis/tokenizer/unicode"
	"github.com/zeebo/xxh3"
)

// peers are what others do with a text.
var peers = []reference{
	{"xxh3", pieceBytes, func() func(part string) {
		return func(part string) { sink += xxh3.HashString(part) }
	}},
	// Passages as bleve has them, as text.
	{"shingles", promptBytes, func() func(part string) {
		analyzer := analysis.DefaultAnalyzer{
			Tokenizer: unicode.NewUnicodeTokenizer(),
			TokenFilters: []analysis.TokenFilter{
				lowercase.NewLowerCaseFilter(),
				shingle.NewShingleFilter(PassageWords, PassageWords, false, " ", ""),
			},
		}
		return func(part string) { sink += uint64(len(analyzer.Analyze([]byte(part)))) }
	}},
}
