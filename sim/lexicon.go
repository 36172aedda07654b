package sim

// A lexicon holds what one tenant talks about: invented people, firms, places,
// products, projects and file numbers. All of it is put together from syllables
// by the tenant's own random numbers, once, so the words of two lexicons hardly ever
// meet, and a sentence that names somebody belongs to one tenant. Given names
// are common ones; nobody real is meant by them together with a made-up surname.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode"
	"unicode/utf8"
)

type lexicon struct {
	people   []string
	surnames []string
	firms    []string
	towns    []string
	streets  []string
	products []string
	projects []string
	types    []string // of code, in camel case
	prefix   string   // of file numbers
	domain   string   // of mail addresses
	cjk      bool
}

var (
	onsets = []string{"b", "br", "c", "ch", "d", "dr", "f", "fl", "g", "gr", "h", "j", "k", "kl", "l", "m", "n", "p", "pr", "qu", "r", "s", "sh", "st", "t", "th", "tr", "v", "w", "z"}
	vowels = []string{"a", "e", "i", "o", "u", "ai", "ea", "io", "oa", "ou", "y"}
	codas  = []string{"", "l", "n", "r", "s", "th", "ck", "nd", "rm", "st", "x", "mp", "rt", "lk"}

	surnameEnds = []string{"", "son", "er", "ov", "ell", "man", "ley", "sen", "ini", "ez", "ard"}
	townEnds    = []string{"ford", "ham", "wick", "stead", "mouth", "bury", "berg", "ville", "field", "haven"}
	streetEnds  = []string{"Street", "Lane", "Road", "Row", "Avenue", "Court", "Quay", "Terrace"}
	firmEnds    = []string{"Holdings", "Partners", "Works", "Logistics", "Trading", "Systems", "Supply", "Group", "Foods", "Energy", "Textiles", "Optics"}
	typeEnds    = []string{"Ledger", "Router", "Batch", "Cursor", "Policy", "Worker", "Snapshot", "Gateway", "Planner", "Index", "Voucher", "Shard", "Probe", "Digest"}

	givenNames = []string{
		"Agnes", "Bruno", "Carla", "Dario", "Elin", "Farid", "Greta", "Hugo", "Ines", "Jonas", "Katya", "Lars",
		"Mina", "Nadia", "Oskar", "Paula", "Quentin", "Rosa", "Stefan", "Tessa", "Ulrich", "Vera", "Wanda", "Yusuf",
		"Zora", "Amara", "Bela", "Cyril", "Dunja", "Emil", "Freya", "Goran", "Hanna", "Ivo", "Jelena", "Kofi",
	}
	hanSurnames = []rune("王李张刘陈杨赵黄周吴徐孙胡朱高林何郭马罗田中山川小大井上")
	hanGiven    = []rune("伟芳娜敏静丽强磊军洋勇艳杰娟涛明超秀霞平刚桂英华玉兰红健诚介翔美咲悠真结")
	hanFirm     = []rune("恒泰瑞丰永盛宏远佳达华信安康鼎新海天嘉和凯翔东旭联创启明润泽")
)

// invent returns a made-up word of so many syllables.
func invent(rnd *rand.Rand, syllables int) string {
	var b strings.Builder
	for range syllables {
		b.WriteString(pick(rnd, onsets))
		b.WriteString(pick(rnd, vowels))
		b.WriteString(pick(rnd, codas))
	}
	return b.String()
}

func pick[T any](rnd *rand.Rand, list []T) T { return list[rnd.IntN(len(list))] }

func capital(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(r)) + s[n:]
}

func newLexicon(rnd *rand.Rand, lang string) *lexicon {
	l := &lexicon{
		prefix: strings.ToUpper(invent(rnd, 1)),
		domain: invent(rnd, 3) + ".example",
		cjk:    lang == "zh" || lang == "ja",
	}
	times := func(n int, f func() string) []string {
		s := make([]string, n)
		for i := range s {
			s[i] = f()
		}
		return s
	}
	l.surnames = times(80, func() string { return capital(invent(rnd, 2) + pick(rnd, surnameEnds)) })
	l.people = times(120, func() string { return pick(rnd, givenNames) + " " + pick(rnd, l.surnames) })
	l.firms = times(60, func() string { return capital(invent(rnd, 2)) + " " + pick(rnd, firmEnds) })
	l.towns = times(40, func() string { return capital(invent(rnd, 2) + pick(rnd, townEnds)) })
	l.streets = times(60, func() string { return capital(invent(rnd, 2)) + " " + pick(rnd, streetEnds) })
	l.products = times(50, func() string { return capital(invent(rnd, 2)) + fmt.Sprintf(" %d", 2+rnd.IntN(98)) })
	l.projects = times(40, func() string { return "Project " + capital(invent(rnd, 3)) })
	l.types = times(90, func() string { return capital(invent(rnd, 2)) + pick(rnd, typeEnds) })
	if l.cjk {
		chars := func(set []rune, n int) string {
			s := make([]rune, n)
			for i := range s {
				s[i] = pick(rnd, set)
			}
			return string(s)
		}
		l.people = times(160, func() string { return chars(hanSurnames, 1) + chars(hanGiven, 2) })
		l.firms = times(90, func() string { return chars(hanFirm, 4) + "公司" })
		l.towns = times(60, func() string { return chars(hanFirm, 2) + "市" })
		l.streets = times(60, func() string { return chars(hanFirm, 3) + "路" })
		l.projects = times(60, func() string { return "「" + chars(hanFirm, 4) + "」" })
	}
	return l
}

// ref returns a file number of the tenant's own kind, such as "BRAIL-48213-K".
func (l *lexicon) ref(rnd *rand.Rand) string {
	return fmt.Sprintf("%s-%05d-%c", l.prefix, rnd.IntN(100_000), 'A'+rune(rnd.IntN(26)))
}

func (l *lexicon) mail(rnd *rand.Rand) string {
	return strings.ToLower(pick(rnd, givenNames)) + "." + strings.ToLower(pick(rnd, l.surnames)) + "@" + l.domain
}
