package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// What the requests of a plan say.

// chatText is a prompt as a list of turns. APIs that take one text get it joined.
type chatText []chatTurn

type chatTurn struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (c chatText) joined() string {
	var b strings.Builder
	for i, t := range c {
		if i > 0 {
			b.WriteString("\n\n")
		}
		b.WriteString(t.Content)
	}
	return b.String()
}

// text writes what an item says.
func (p *plan) text(it *item) chatText {
	rnd := p.random(streamText, it.seed)
	t := it.tenant
	w := t.prose(rnd)
	switch it.kind {
	case kindShort:
		return chatText{{"user", w.question()}}
	case kindMail:
		return t.withSystem(rnd, chatText{{"user", w.mail()}})
	case kindLookup:
		return t.withSystem(rnd, chatText{{"user", w.lookup()}})
	case kindCode:
		return chatText{
			{"system", agentScaffold(rnd)},
			{"user", pick(rnd, codeTasks) + "\n\n" + w.source(p.fits(300+rnd.IntN(1500)))},
		}
	case kindTurn:
		return p.conversation(it)
	case kindLong:
		return chatText{{"user", p.excerpt(t, rnd) + "\n\n" + w.fillIn(pick(rnd, archiveQuestions))}}
	case kindArchive:
		return p.archived(it, w)
	}
	note := w.fillIn(pick(rnd, noteTasks)) + "\n\n" + w.text(p.fits(noteTokens(rnd)))
	return t.withSystem(rnd, chatText{{"user", note}})
}

// fits cuts a number of tokens to what a small pool still takes as ordinary.
func (p *plan) fits(tokens int) int { return min(tokens, p.w.Pool/4) }

// noteTokens draws the length of a note: most are short, some are pages.
func noteTokens(rnd *rand.Rand) int { return 120 + int(rnd.ExpFloat64()*1100) }

// withSystem puts the tenant's system prompt before a text: the help desk's for
// its customers, else the tenant's own, or none half of the time.
func (t *tenant) withSystem(rnd *rand.Rand, c chatText) chatText {
	if rnd.IntN(2) == 0 {
		return c
	}
	system := t.system
	if t.vendor {
		system = vendorPrompt + "\n\nCompany: " + pick(rnd, t.lex.firms) + ". Agent: " + pick(rnd, t.lex.people) + "."
	}
	return append(chatText{{"system", system}}, c...)
}

// conversation returns the turns up to that of the item, with the answers that
// came.
func (p *plan) conversation(it *item) chatText {
	w := it.tenant.prose(p.random(streamText, it.talk.seed))
	c := it.tenant.withSystem(w.rnd, nil)
	for i := range it.turn + 1 {
		if i == 0 {
			c = append(c, chatTurn{"user", w.fillIn(pick(w.rnd, noteTasks)) + "\n\n" + w.text(p.fits(150+w.rnd.IntN(800)))})
		} else {
			c = append(c, chatTurn{"user", w.fillIn(pick(w.rnd, followUps)) + " " + w.text(p.fits(12+w.rnd.IntN(60)))})
		}
		if i < it.turn && it.talk.turns[i].answer != "" {
			c = append(c, chatTurn{"assistant", it.talk.turns[i].answer})
		}
	}
	return c
}

// excerpt returns a long piece of the tenant's archive that is ordinary still.
func (p *plan) excerpt(t *tenant, rnd *rand.Rand) string {
	doc := t.doc()
	tokens := float64(p.longest()) * (1 + 5*rnd.Float64()) / 6
	n := int(min(1, tokens/float64(t.tokens)) * float64(len(doc)))
	from := rnd.IntN(len(doc) - n + 1)
	return wholeLines(doc, from, from+n)
}

// wholeLines returns the lines of doc that begin at or after from and end before
// to, or what lies between if there are none.
func wholeLines(doc string, from, to int) string {
	if from > 0 {
		if i := strings.IndexByte(doc[from:to], '\n'); i >= 0 {
			from += i + 1
		}
	}
	if to < len(doc) {
		if i := strings.LastIndexByte(doc[from:to], '\n'); i > 0 {
			to = from + i
		}
	}
	return strings.ToValidUTF8(doc[from:to], "")
}

// archived returns the whole archive with a question, and with the questions and
// answers before it in a conversation.
func (p *plan) archived(it *item, w *prose) chatText {
	doc := it.tenant.doc()
	ask := func(w *prose) string { return w.fillIn(pick(w.rnd, archiveQuestions)) }
	if it.talk == nil {
		return chatText{{"user", pick(w.rnd, archiveHeads) + "\n\n" + doc + "\n\n" + ask(w)}}
	}
	w = it.tenant.prose(p.random(streamText, it.talk.seed))
	c := chatText{{"system", pick(w.rnd, archiveHeads) + "\n\n" + doc}}
	for i := range it.turn + 1 {
		c = append(c, chatTurn{"user", ask(w)})
		if a := ""; i < it.turn {
			if a = it.talk.turns[i].answer; a != "" {
				c = append(c, chatTurn{"assistant", p.shorten(a)})
			}
		}
	}
	return c
}

// shorten cuts an answer in a history to what leaves the prompt below the window.
func (p *plan) shorten(answer string) string {
	left := (p.w.Window - p.w.Pool) / 40
	for rest := answer; rest != ""; left-- {
		if left == 0 {
			return answer[:len(answer)-len(rest)]
		}
		end, _ := nextPiece(rest)
		rest = rest[end:]
	}
	return answer
}

func (p *prose) fillIn(template string) string {
	var b strings.Builder
	p.fill(&b, template)
	return b.String()
}

// question returns a question of 3 to 15 words.
func (p *prose) question() string {
	if list := questionsByLanguage[p.lang]; list != nil && p.rnd.IntN(3) > 0 {
		return pick(p.rnd, list)
	}
	switch x := p.rnd.IntN(10); {
	case x < 5:
		return pick(p.rnd, publicQuestions)
	case x < 7:
		return pick(p.rnd, p.field.questions)
	}
	return p.fillIn(pick(p.rnd, ownQuestions))
}

var ownQuestions = []string{
	"Is {ref} still open?", "What does {firm} sell in {town}?", "How do I spell {sur}?", "Who is {who} at {firm}?",
	"When did we close {project} with {firm}?", "Give me a subject line for {ref}.", "Is {pct} a fair discount on {product}?",
	"Write a one-line reply to {who} about {product}.", "What is {num} times {num2}?", "Does {product} fit into {thing} boxes?",
}

var noteTasks = []string{
	"Summarise this in five points.", "Turn the following into a letter to {who}.", "Find the contradictions in this note.",
	"Make a table of names and amounts from this.", "Which deadlines follow from the text below?", "Shorten this to half its length.",
	"Translate the text below into plain English.", "List every {thing} that is mentioned.", "What is missing before {firm} can sign?",
	"Write minutes from these notes.", "Check the figures in the text.", "Who is responsible for what, according to this?",
}

var followUps = []string{
	"Thanks. One more thing for {who}:", "Now add this:", "And how does that change with the following?", "Please correct it, because of this:",
	"Good. {sur} also writes:", "Shorter, and mention this:",
}

var archiveHeads = []string{
	"The complete file follows.", "Here is the whole dump, read all of it.", "Full record below, the question is at its end.",
}

var archiveQuestions = []string{
	"Where does the file say what {firm} paid to {sur}?", "List all that {who} did in {town}.", "Which entries contradict {ref}?",
	"What did {sur} change between {date} and {date2}?", "Write a summary for {who} of everything about {project}.",
	"Quote the passages on {product} and explain them.", "Which of these would {firm} want to hide, and why?",
	"Draft a reply to {who2} from what stands above.", "How much did {project} cost, entry by entry?",
}

var codeTasks = []string{
	"The test below fails on the second run. Why?", "Rename the type and keep the callers working.", "Review this patch.",
	"Add a limit so that the loop ends.", "Explain what happens when the call times out.", "Port this to the new interface.",
}

// mail returns a mail with its head, some paragraphs, and a footer that others
// use as well.
func (p *prose) mail() string {
	var b strings.Builder
	p.fill(&b, "Answer this mail politely.\n\nFrom: {who} <{mail}>\nTo: {mail}\nDate: {date}, {time}\nSubject: {doc} {ref}, {project}\n\n")
	b.WriteString(p.text(80 + p.rnd.IntN(700)))
	p.fill(&b, "\n\n{who}\n{role}, {firm}\n{num} {street}, {town}\nTel. {phone}\n\n")
	b.WriteString(pick(p.rnd, mailFooters))
	return b.String()
}

// lookup returns public documents as retrieval puts them into prompts, with
// something of the tenant's own.
func (p *prose) lookup() string {
	var b strings.Builder
	b.WriteString("Answer from the context alone.\n\nContext:\n")
	first := p.rnd.IntN(len(publicDocuments))
	for i := range 1 + p.rnd.IntN(5)/3 {
		fmt.Fprintf(&b, "[%d] %s\n", i+1, publicDocuments[(first+i)%len(publicDocuments)])
	}
	b.WriteString("\nSituation: ")
	b.WriteString(p.text(80 + p.rnd.IntN(500)))
	b.WriteString("\n\nQuestion: ")
	p.fill(&b, pick(p.rnd, []string{"What may {who} ask of {firm}?", "Does this apply to {ref}?", "What must {sur} do until {date}?"}))
	return b.String()
}

// systemPrompt returns a tenant's own system prompt.
func (p *prose) systemPrompt() string {
	return p.fillIn("You help the staff of {firm} in {town}. Sign as {who}. Never mention {project} or {product} outside {dept}. "+
		"Questions about {ref} go to {sur}, {phone}.") + " " + p.text(50)
}

// archive returns a long document of so many tokens: a case file of numbered
// entries, or a dump of a repository.
func (p *prose) archive(tokens int, repo bool) string {
	var b strings.Builder
	n := 0
	for entry := 1; n < tokens; entry++ {
		from := b.Len()
		switch {
		case repo && p.rnd.IntN(4) > 0:
			fmt.Fprintf(&b, "==> %s/%s.%s\n", snake(pick(p.rnd, p.lex.types)), snake(pick(p.rnd, p.lex.types)), pick(p.rnd, []string{"go", "py", "ts", "sql", "yaml"}))
			b.WriteString(p.source(120 + p.rnd.IntN(200)))
		case p.rnd.IntN(3) == 0:
			fmt.Fprintf(&b, "%d. ", entry)
			p.fill(&b, "{ref} | {who} | {firm} | {date} | {money}\n")
		default:
			fmt.Fprintf(&b, "%d. ", entry)
			p.paragraph(&b, 2+p.rnd.IntN(5))
		}
		b.WriteString("\n\n")
		n += CountTokens(b.String()[from:])
	}
	return b.String()
}
