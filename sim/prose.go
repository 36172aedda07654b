package sim

// Prose writes a tenant's private text from sentence templates. A slot in braces
// is filled from the tenant's lexicon, from the word lists of its industry, or
// from numbers.
//
// Two rules keep tenants apart. No template has more than eight fixed words in a
// row, counting common nouns and adjectives as fixed; and what stands in between
// comes from the tenant's own lexicon or is a number drawn from many. So a run of
// eleven words nearly always holds something private, and equal runs in the texts
// of two tenants are rare accidents (a test counts them).

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

type prose struct {
	rnd   *rand.Rand
	lex   *lexicon
	field *industry
	lang  string
}

// sentences by language; those of the industry come on top, in English.
var sentences = map[string][]string{
	"en": {
		"{who} of {firm} has {act} {the} {thing} and asked {sur} to send it with the {doc} {ref} by {date}",
		"At the back of {num} {street} the {adj} {thing} was {act} by {who}, and it is not clear to {sur} why",
		"According to the {role}, {firm} still owes us the {money} for a {thing} that {sur} took to {town}",
		"On {date} the {dept} of {firm} sent the {doc} {ref} to {who}, who had it from the {role} {sur}",
		"{sur} noted that the {doc} {ref} was {adj}, and that {who} had to wait for a {thing} in {town}",
		"Between {date} and {date2} it was the {role} {who} who {act} the {things} of {project} for {firm}",
		"{firm} offered {money} less than what the {role} {sur} had written into the {doc} {ref}, and {who} will not sign",
		"If the {role} cannot reach {sur} by {time}, then {firm} is to close the file {ref} for {who}",
		"The {role} {who} told {sur} that we need a {adj} {thing} for {project} and that {firm} has one",
		"The {doc} {ref} says that {who}, born on {date}, lives at {num} {street} and is a {role} at {firm}",
		"{who} did not want the {adj} {thing}, because {firm} had {act} it without a word to {sur}",
		"At {time} {sur} had a call from {who} about the {money} that {firm} put under the {doc} {ref}",
		"So far the {thing} for {project} has cost us {money}, and {who} thinks that {firm} will ask for a further {money2}",
		"The keys to {num} {street} are with {who}, but {sur} has the {doc} that goes with {ref}",
		"Of the {doc} {ref}, {n} {things} are from {firm}, and {sur} says that {who} knew of it",
		"{who} and the {role} {sur} do not agree about the {product}, which {firm} had {act} on {date} for {money}",
		"You should compare the {doc} {ref} with {ref2}, because in the one {sur} has {money} where {who} put {money2}",
		"{firm} has moved the {dept} from {town} to a new place at {num} {street}, where {who} is the {role}",
		"The {thing} that {sur} has {act} is {num} kilograms too heavy for {project}, as {who} said to {firm}",
		"It is only the {role} {who} who may open the {doc} {ref}, since it is about the {money} of {firm}",
		"{who} wrote to {mail} that the {adj} {things} of {project} were a week late and not {act} by {firm}",
		"There is a second {doc}, {ref}, in which {who} has the {product} at {money} and {sur} has it at {money2}",
		"The {dept} in {town} has asked {firm} to explain the {doc} {ref} to {who}, and {sur} is to answer",
		"Since {date} it has been {who} who {act} the {product} for {firm}, all of it under the name {project}",
		"The {role} of {firm} left {town} at {time} with the {adj} {thing} that {who} had {act} for the {role} {sur}",
		"{sur} has paid the {money} into the account {num} {num2} and told {who} to wait for a {doc} from {firm}",
		"There is a mistake in the {doc} {ref} of {firm}, and it is one that, says {who}, has cost the {dept} {money}",
		"Where the {doc} of {firm} says that it was on {date}, {sur} says {date2}, and {who} has the file {ref} to prove it",
		"{project} came to an end when {who} had {act} the last {thing} in {town} and {firm} would not pay the {money}",
		"A copy of the {doc} {ref} is with {who}, a second one is with {sur}, and the {dept} of {firm} has the third",
		"The {adj} part of the {product} is the {thing}, and that is what {sur} {act} in {town} for the {role} {who}",
		"{who} wants to know if the {dept} of {firm} is to {verb} the {product} at {pct} or if it is for {sur} to do",
		"The room at the end of {street} is for {who} and the {role} {sur} from {time} on, and {firm} knows nothing",
		"After {firm} had {act} all the {things} for {who}, the price that {sur} had seen went up to {money}",
		"It was the {product} that made the {thing} in {town} so {adj}, as you and {who} can see from the {doc} {ref}",
		"You can reach the {role} {who} on {phone}, or if {firm} is closed you can try {sur} on {phone2}",
		"\"It was not the {role} of {firm} that {act} the {thing},\" said {sur}, \"and {who} has known it since {date}\"",
		"In all, the {thing} of {project} is {money} plus the {pct} that go to {firm}, and it is {who} who pays",
		"{who} would like to {verb} a {product} with the {adj} {thing} that {firm} has in {town}, if {sur} lets the {role}",
		"The file {ref} was opened by the {role} {sur}, then closed by {who}, and it is open again since the {date}",
		"In {town} there was a {thing} too many, says {sur}, but in the {doc} {ref} {who} has the right {num}",
		"{firm} has {sur} {verb} the {adj} {thing} at {num} {street}, and the {role} {who} is to be there",
	},
	"fr": {
		"{who} a transmis le dossier {ref} à {firm} le {date}",
		"Le contrat {ref} entre {firm} et {who} porte sur {money}",
		"Selon {sur}, {firm} doit encore {money} à {who} pour {n} livraisons",
		"Le {date}, {who} a visité {num} {street} à {town} avec {sur}",
		"{firm} demande à {who} de corriger la pièce {ref} avant le {date}",
		"Monsieur {sur} refuse de payer {money} tant que {who} garde {product}",
		"À {town}, {who} a compté {num} colis, alors que {ref} en indique {num2}",
		"Le projet {project} a coûté {money}, dont {money2} versés par {firm}",
		"Madame {sur} joindra {who} au {phone} à propos de {ref}",
		"{who} et {who2} contestent la date du {date} inscrite dans {ref}",
		"Les clés du {num} {street} sont chez {who}, celles de {town} chez {sur}",
		"{firm} a remplacé {product} par {product2}, ce que {sur} ignore encore",
		"Une remise de {pct} a été promise à {who} par {sur} pour {product}",
		"Veuillez écrire à {mail} pour confirmer {ref} au nom de {who}",
	},
	"de": {
		"{who} hat die Akte {ref} am {date} an {firm} übergeben",
		"Laut {sur} schuldet {firm} noch {money} für {n} Lieferungen nach {town}",
		"Der Vertrag {ref} zwischen {who} und {firm} endet am {date}",
		"In {town} zählte {who} genau {num} Pakete, {ref} nennt aber {num2}",
		"{firm} bittet {who}, den Beleg {ref} bis {date} zu berichtigen",
		"Herr {sur} zahlt {money} erst, wenn {who} das Gerät {product} zurückgibt",
		"Das Vorhaben {project} kostete {money}, davon trug {firm} nur {money2}",
		"Frau {sur} erreicht {who} unter {phone} wegen {ref}",
		"Die Schlüssel für {num} {street} liegen bei {who}, sagt {sur}",
		"{who} und {who2} streiten über {product}, das {firm} am {date} lieferte",
		"Für {project} hat {sur} am {date} insgesamt {n} Räume in {town} gemietet",
		"Bitte an {mail} schreiben, ob {who} der Rechnung {ref} zustimmt",
		"{firm} ersetzt {product} durch {product2}, was {sur} {pct} mehr kostet",
		"Um {time} meldete {who} einen Schaden an {product} in {town}",
	},
	"es": {
		"{who} entregó el expediente {ref} a {firm} el {date}",
		"Según {sur}, {firm} debe todavía {money} por {n} envíos a {town}",
		"El contrato {ref} entre {who} y {firm} termina el {date}",
		"En {town} {who} contó {num} cajas, pero {ref} indica {num2}",
		"{firm} pide a {who} que corrija el documento {ref} antes del {date}",
		"El señor {sur} pagará {money} cuando {who} devuelva {product}",
		"El proyecto {project} costó {money}, y {firm} puso solo {money2}",
		"La señora {sur} llamará a {who} al {phone} por {ref}",
		"Las llaves de {num} {street} las tiene {who}, dice {sur}",
		"{who} y {who2} discuten sobre {product}, que {firm} envió el {date}",
		"Hay que escribir a {mail} para que {who} confirme {ref}",
		"{firm} cambió {product} por {product2} y {sur} pagó {pct} más",
		"A las {time} {who} avisó de un daño en {product} en {town}",
		"Para {project} {sur} alquiló {n} salas en {num} {street}",
	},
	"zh": {
		"{date}，{who}把{ref}交给了{firm}的{who2}",
		"{firm}欠{who}{money}，编号{ref}",
		"{who}在{town}{street}{num}号签了{ref}",
		"{who2}说{firm}少发了{num}件{product}",
		"项目{project}已花费{money}，由{who}负责",
		"{town}的{who}要求{firm}在{date}前答复",
		"请联系{who}，电话{phone}，事由{ref}",
		"{firm}和{firm2}争议金额为{money}",
		"{who}核对{ref}时发现差了{money2}",
		"{project}延期到{date}，{who2}不同意",
		"仓库{num}里有{who}的{num2}箱货",
		"{who}已把{product}退给{firm}",
	},
	"ja": {
		"{date}に{who}が{firm}へ{ref}を渡した",
		"{firm}は{who}に{money}を払っていない",
		"{who}は{town}{street}{num}で{ref}に署名した",
		"{who2}によると{product}が{num}個足りない",
		"案件{project}の費用は{money}で{who}が担当",
		"{town}の{who}は{firm}に{date}までの回答を求めた",
		"{who}の電話は{phone}、件名は{ref}",
		"{firm}と{firm2}の差額は{money}である",
		"{ref}を{who}が確認し{money2}の誤りを見つけた",
		"{project}は{date}に延び{who2}が反対した",
		"倉庫{num}に{who}の箱が{num2}個ある",
		"{who}は{product}を{firm}へ返した",
	},
}

var (
	adjectives = []string{
		"broken", "late", "unpaid", "sealed", "disputed", "missing", "urgent", "second", "empty", "revised", "private",
		"damaged", "northern", "temporary", "unsigned", "heavy", "northbound", "spare", "overdue", "blue", "faulty",
	}
	verbs   = []string{"repair", "sell", "insure", "replace", "audit", "ship", "suspend", "refund", "rent", "inspect"}
	depts   = []string{"claims desk", "night shift", "audit team", "front office", "tax unit", "planning office", "loading bay", "complaints desk"}
	docs    = []string{"memo", "invoice", "affidavit", "protocol", "waybill", "annex", "receipt", "minutes", "permit", "reminder"}
	monthsE = []string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	monthsF = []string{"janvier", "février", "mars", "avril", "mai", "juin", "juillet", "août", "septembre", "octobre", "novembre", "décembre"}
	monthsD = []string{"Januar", "Februar", "März", "April", "Mai", "Juni", "Juli", "August", "September", "Oktober", "November", "Dezember"}
	monthsS = []string{"enero", "febrero", "marzo", "abril", "mayo", "junio", "julio", "agosto", "septiembre", "octubre", "noviembre", "diciembre"}
)

// sentence appends one sentence.
func (p *prose) sentence(b *strings.Builder) {
	list := sentences[p.lang]
	if p.lang == "en" && p.rnd.IntN(4) == 0 {
		list = p.field.sentences
	}
	var s strings.Builder
	p.fill(&s, pick(p.rnd, list))
	b.WriteString(capital(s.String()))
	if p.lang == "zh" || p.lang == "ja" {
		b.WriteString("。")
	} else {
		b.WriteByte('.')
	}
}

// paragraph appends n sentences.
func (p *prose) paragraph(b *strings.Builder, n int) {
	for i := range n {
		if i > 0 && p.lang != "zh" && p.lang != "ja" {
			b.WriteByte(' ')
		}
		p.sentence(b)
	}
}

// text returns paragraphs of at least so many tokens.
func (p *prose) text(tokens int) string {
	var b strings.Builder
	for n := 0; n < tokens; {
		from := b.Len()
		if from > 0 {
			b.WriteString("\n\n")
		}
		p.paragraph(&b, 2+p.rnd.IntN(5))
		n += CountTokens(b.String()[from:])
	}
	return b.String()
}

// fill appends template with its slots filled. A brace that opens no slot stands
// for itself, as code needs.
func (p *prose) fill(b *strings.Builder, template string) {
	for {
		before, rest, found := strings.Cut(template, "{")
		b.WriteString(before)
		if !found {
			return
		}
		end := strings.IndexFunc(rest, func(r rune) bool { return r >= utf8.RuneSelf || !asciiWord[r] })
		if end <= 0 || rest[end] != '}' {
			b.WriteByte('{')
			template = rest
			continue
		}
		b.WriteString(p.slot(rest[:end]))
		template = rest[end+1:]
	}
}

func (p *prose) slot(name string) string {
	l, rnd := p.lex, p.rnd
	switch name {
	case "who", "who2":
		return pick(rnd, l.people)
	case "sur":
		if l.cjk {
			return pick(rnd, l.people)
		}
		return pick(rnd, l.surnames)
	case "firm", "firm2":
		return pick(rnd, l.firms)
	case "town":
		return pick(rnd, l.towns)
	case "street":
		return pick(rnd, l.streets)
	case "product", "product2":
		return pick(rnd, l.products)
	case "project":
		return pick(rnd, l.projects)
	case "type", "type2":
		return pick(rnd, l.types)
	case "ref", "ref2":
		return l.ref(rnd)
	case "mail":
		return l.mail(rnd)
	case "thing":
		return pick(rnd, p.field.things)
	case "things":
		return pick(rnd, p.field.things) + "s"
	case "act":
		return pick(rnd, p.field.acts)
	case "role":
		return pick(rnd, p.field.roles)
	case "the":
		return pick(rnd, []string{"the", "a", "every", "another"})
	case "adj":
		return pick(rnd, adjectives)
	case "verb":
		return pick(rnd, verbs)
	case "dept":
		return pick(rnd, depts)
	case "doc":
		return pick(rnd, docs)
	}
	return p.number(name)
}

// number fills the slots that hold figures.
func (p *prose) number(name string) string {
	rnd := p.rnd
	switch name {
	case "n":
		return fmt.Sprint(2 + rnd.IntN(60))
	case "num", "num2":
		return fmt.Sprint(100 + rnd.IntN(9900))
	case "pct":
		return fmt.Sprintf("%d.%d %%", 1+rnd.IntN(40), rnd.IntN(10))
	case "time":
		return fmt.Sprintf("%d:%02d", 6+rnd.IntN(16), rnd.IntN(60))
	case "phone", "phone2":
		return fmt.Sprintf("555-%03d-%04d", rnd.IntN(1000), rnd.IntN(10_000))
	case "money", "money2":
		euros, cents := 100+rnd.IntN(900_000), rnd.IntN(100)
		switch p.lang {
		case "zh":
			return fmt.Sprintf("%d元", euros)
		case "ja":
			return fmt.Sprintf("%d円", euros)
		case "fr", "de", "es":
			return fmt.Sprintf("%d,%02d EUR", euros, cents)
		}
		if euros > 1000 {
			return fmt.Sprintf("$%d,%03d.%02d", euros/1000, euros%1000, cents)
		}
		return fmt.Sprintf("$%d.%02d", euros, cents)
	case "date", "date2":
		d, m, y := 1+rnd.IntN(28), rnd.IntN(12), 1950+rnd.IntN(77)
		switch p.lang {
		case "zh", "ja":
			return fmt.Sprintf("%d年%d月%d日", y, m+1, d)
		case "fr":
			return fmt.Sprintf("%d %s %d", d, monthsF[m], y)
		case "de":
			return fmt.Sprintf("%d. %s %d", d, monthsD[m], y)
		case "es":
			return fmt.Sprintf("%d de %s de %d", d, monthsS[m], y)
		}
		return fmt.Sprintf("%d %s %d", d, monthsE[m], y)
	}
	return "{" + name + "}"
}
