package sim

// The tenants of the workload. Each is a firm of some trade, in some language,
// that uses the engine by one kind of API and in some typical ways.

// industry is the vocabulary of a trade, in English.
type industry struct {
	name      string
	things    []string // what it deals with, singular
	acts      []string // what is done to them, past tense
	roles     []string
	sentences []string // beside those that all share
	questions []string // short ones
}

var industries = map[string]*industry{
	"law": {
		name:   "law",
		things: []string{"lease", "claim", "clause", "deposition", "easement", "injunction", "hearing", "settlement", "lien", "subpoena"},
		acts:   []string{"contested", "filed", "withdrew", "settled", "notarised", "served", "appealed"},
		roles:  []string{"plaintiff", "bailiff", "trustee", "lessee", "paralegal", "executor"},
		sentences: []string{
			"The lessee {who} shall vacate {num} {street} by {date} or owe {firm} {money} a month",
			"Counsel for {firm} moved to strike {ref}, which {who} had {act} in the court of {town} on {date}",
			"Whereas {firm} held a lien of {money} on the {product}, {sur} released it under the {doc} {ref}",
			"Witness {who} testified on {date} that {sur} of {firm} had read {ref}",
			"The estate of {who} is to go to {sur}, and the house at {num} {street} with {money} to {firm}",
		},
		questions: []string{"How long does a tenant have to answer a notice?", "What is an easement in plain words?", "Is a spoken agreement binding?"},
	},
	"clinic": {
		name:   "clinic",
		things: []string{"prescription", "scan", "referral", "biopsy", "chart", "dressing", "allergy", "dose", "ward", "discharge"},
		acts:   []string{"prescribed", "examined", "recorded", "postponed", "repeated", "admitted", "treated"},
		roles:  []string{"patient", "nurse", "surgeon", "midwife", "radiologist", "carer"},
		sentences: []string{
			"Patient {who}, MRN {num}-{num2}, has been in pain since {date} and is on the {product}, says {sur}",
			"It was {sur} who put the dose of the {product} up to {n} mg after {who} was ill in {town}",
			"The blood pressure of {who} was {n} over {n} at {time}, and {sur} put it into {ref}",
			"Next of kin is {who}, {phone}, who lives at {num} {street} in {town}",
			"{who} is allergic to {product}; {sur} at {firm} was told on {date}",
		},
		questions: []string{"Can this medicine be taken with food?", "What does a raised white cell count mean?", "How often should a dressing be changed?"},
	},
	"bank": {
		name:   "bank",
		things: []string{"mortgage", "overdraft", "guarantee", "transfer", "deposit", "covenant", "margin", "tranche", "fee", "default"},
		acts:   []string{"approved", "declined", "booked", "reversed", "hedged", "called", "restructured"},
		roles:  []string{"borrower", "teller", "guarantor", "auditor", "treasurer", "underwriter"},
		sentences: []string{
			"Account {num} {num2} of {who} was debited {money} by {firm} on {date}",
			"{firm} breached the covenant of {ref} when its debt passed {money} at {pct}",
			"The credit committee gave {who} {money} at {pct} against {num} {street}, {town}",
			"{sur} does not think that {firm} can pay back the {money} by {date}, as is said in the {doc} {ref}",
			"Card ending {num} of {who} was blocked at {time} after a purchase from {firm}",
		},
		questions: []string{"What is the difference between a fee and a charge?", "How is a covenant tested?", "When is interest booked?"},
	},
	"logistics": {
		name:   "logistics",
		things: []string{"pallet", "container", "manifest", "trailer", "seal", "consignment", "customs form", "detour", "crate", "booking"},
		acts:   []string{"loaded", "rerouted", "weighed", "sealed", "delayed", "scanned", "stored"},
		roles:  []string{"driver", "dispatcher", "forwarder", "stevedore", "broker", "planner"},
		sentences: []string{
			"Container {ref} left {town} at {time} with {num} crates of the {product} for {firm}",
			"Driver {who} waited {n} hours at {num} {street} until {sur} signed the {doc} {ref}",
			"Seal {num}{num2} on {ref} was broken; {who} blames {firm} in {town}",
			"{firm} charges {money} for the detour by {town} that {sur} {act} on {date}",
			"Gate {n} is closed, so {who} takes {product} to {street} for {firm}",
		},
		questions: []string{"Which form does a pallet of batteries need?", "What is demurrage?", "How is volumetric weight worked out?"},
	},
	"games": {
		name:   "games",
		things: []string{"quest", "boss", "level", "shader", "patch", "cutscene", "inventory", "leaderboard", "skin", "checkpoint"},
		acts:   []string{"rebalanced", "scrapped", "animated", "localised", "nerfed", "shipped", "playtested"},
		roles:  []string{"producer", "level designer", "animator", "tester", "composer", "writer"},
		sentences: []string{
			"In chapter {n} it is {who} who sells {sur} to the king of {town} for {num} coins and {product}",
			"Build {num} of {project} crashes when {product} meets {type} near {town}",
			"{who} wants {sur} to drop the {product} at {pct} instead of {pct} in {town}",
			"{firm} composed {n} tracks for {project}, due {date}, {money} each, {ref}",
			"Players in {town} found that {type} lets {product} pass the wall of {street}",
		},
		questions: []string{"What makes a tutorial feel short?", "How many frames should a jump take?", "Name a reward that is not an item."},
	},
	"school": {
		name:   "school",
		things: []string{"essay", "excursion", "report card", "timetable", "detention", "scholarship", "syllabus", "locker", "exam", "absence"},
		acts:   []string{"graded", "excused", "rescheduled", "handed in", "lost", "corrected", "supervised"},
		roles:  []string{"pupil", "head teacher", "counsellor", "caretaker", "examiner", "form tutor"},
		sentences: []string{
			"{who} of form {n} missed {n} lessons since {date}; {sur} has spoken to {firm}",
			"The parents of {who}, {num} {street}, {town}, ask {sur} to waive {money}",
			"{sur} gave {who} a {n} for the essay on {town}, resit on {date}",
			"The excursion to {town} is {money} for each of them and will be led by {who}, who is on {phone}",
			"Scholarship {ref} goes to {who}, not to {who2}, says {sur} of {firm}",
		},
		questions: []string{"How do I explain fractions to a nine year old?", "What is a fair penalty for late homework?", "Suggest a topic for a debate."},
	},
	"city": {
		name:   "city",
		things: []string{"permit", "hydrant", "petition", "sewer", "kerb", "playground", "fine", "tender", "streetlight", "zoning plan"},
		acts:   []string{"granted", "revoked", "inspected", "repaved", "tendered", "fenced", "surveyed"},
		roles:  []string{"councillor", "inspector", "clerk", "resident", "surveyor", "mayor"},
		sentences: []string{
			"Residents of {street} collected {num} signatures against the {doc} {ref}, led by {who}",
			"The tender for {num} {street} went to {firm} at {money}, {sur} abstained",
			"Inspector {who} fined {firm} {money} for the {adj} {thing} in {town}",
			"Councillor {sur} asked why {town} had {act} {n} {things} without a {doc} like {ref}",
			"Plot {num}/{num2} in {town} belongs to {who} and may hold {n} flats of {firm}",
		},
		questions: []string{"Who decides where a streetlight goes?", "How long is a building permit valid?", "What is a zoning plan?"},
	},
	"pharmacy": {
		name:   "pharmacy",
		things: []string{"ampoule", "batch", "recall", "inhaler", "label", "refill", "ointment", "cold box", "blister", "tablet"},
		acts:   []string{"dispensed", "recalled", "quarantined", "relabelled", "ordered", "returned", "mixed"},
		roles:  []string{"pharmacist", "wholesaler", "customer", "prescriber", "inspector", "courier"},
		sentences: []string{
			"Batch {ref} of the {product} expires on {date}; {who} has {num} left for {firm}",
			"{sur} dispensed {n} tablets of the {product} to {who}, {num} {street}, for {money}",
			"{firm} recalls {product} in {town}, lot {num}{num2}, call {phone}",
			"The cold box of {who} stood at {n} degrees until {time}, says {sur}",
			"Prescription {ref} for {who} names {product}, but {sur} ordered {product2}",
		},
		questions: []string{"May tablets be split?", "How warm may a cold box get?", "What does a batch number tell me?"},
	},
	"insurance": {
		name:   "insurance",
		things: []string{"policy", "premium", "excess", "adjuster", "flood claim", "roof", "waiver", "assessment", "rider", "payout"},
		acts:   []string{"assessed", "denied", "renewed", "paid out", "photographed", "estimated", "lapsed"},
		roles:  []string{"policyholder", "adjuster", "broker", "actuary", "assessor", "claimant"},
		sentences: []string{
			"Policy {ref} of {who} excludes floods in {town}, yet {sur} paid {money} on {date}",
			"The roof of {num} {street} was {act} by {who}, damage {money}, photos {ref2}",
			"{firm} raises the premium of {who} from {money} to {money2} after {n} claims",
			"Assessor {sur} met {who} at {time} and valued {product} at {money}",
			"Claimant {who}, {phone}, says that {firm} lost the {doc} {ref} between {town} and {street}",
		},
		questions: []string{"What is an excess?", "Does a policy lapse at once?", "How is a flood claim assessed?"},
	},
	"software": {
		name:   "software",
		things: []string{"deployment", "migration", "flag", "queue", "endpoint", "retry", "secret", "dashboard", "rollback", "timeout"},
		acts:   []string{"deployed", "reverted", "paged", "throttled", "migrated", "profiled", "renamed"},
		roles:  []string{"engineer", "tech lead", "maintainer", "tester", "architect", "customer"},
		sentences: []string{
			"{who} reverted {ref} because {type} leaked {num} handles in {project}",
			"At {time} {type} fell behind {type2} by {num} messages and paged {sur}",
			"{firm} pays {money} a month for the {product} and gets {pct} of its errors from {type}",
			"The migration in the {doc} {ref} is to turn {type} into the {type2}, and it is {who} who runs it on {date}",
			"The customer {firm} lost {num} rows of {type} in {town}, says {sur}",
		},
		questions: []string{"What does idempotent mean?", "When should a retry give up?", "Why is my index not used?"},
	},
	"factory": {
		name:   "factory",
		things: []string{"valve", "gearbox", "shift plan", "mould", "boiler", "sensor", "conveyor", "spindle", "gasket", "torque test"},
		acts:   []string{"calibrated", "welded", "overhauled", "scrapped", "milled", "greased", "rejected"},
		roles:  []string{"foreman", "welder", "quality engineer", "buyer", "fitter", "supplier"},
		sentences: []string{
			"Line {n} of {firm} stopped at {time} when the {thing} of the {product} hit {type}",
			"{who} milled {num} parts for {firm}, of which {sur} rejected {n} under the {doc} {ref}",
			"{firm} delivers the {thing} for the {product} to {num} {street} on {date}",
			"Torque on {ref} was {num} where {who} allows {num2}, see {sur}",
			"Foreman {sur} wants {money} for {n} extra shifts in {town}",
		},
		questions: []string{"How do I read a torque chart?", "What is scrap rate?", "When is a gasket worn?"},
	},
	"travel": {
		name:   "travel",
		things: []string{"itinerary", "voucher", "transfer", "cabin", "visa", "upgrade", "guide", "suitcase", "refund", "excursion"},
		acts:   []string{"booked", "cancelled", "upgraded", "misplaced", "rebooked", "confirmed", "overbooked"},
		roles:  []string{"guest", "guide", "concierge", "purser", "agent", "porter"},
		sentences: []string{
			"Guest {who} in room {num} lost {product} at {street}, call {phone} before {time}",
			"Booking {ref}: {who} and {n} others, {town}, from {date} for {money}",
			"{firm} overbooked cabin {num}, so {sur} moved {who} to {town}",
			"The voucher {ref} of {who2} covers {money} at {firm}, not at {street}",
			"The guide {sur} is to meet {who} at {time} under the clock of {town} with the bags of {firm}",
		},
		questions: []string{"What may go into hand luggage?", "Is a voucher money?", "How early should I be at the gate?"},
	},
}

// persona is a kind of tenant.
type persona struct {
	name     string // of the tenant; an account or an API key
	industry string
	lang     string
	native   bool // uses Workers AI, else the OpenAI routes
	vendor   bool // is a customer of the help desk product that many use
	agent    bool // runs coding agents
	archive  bool // asks about one long document, again and again
	repo     bool // the archive is code
}

// personas are the default tenants. Those with an archive come early, so that a
// smaller number of tenants still has some.
var personas = []persona{
	{name: "brightwater-legal", industry: "law", lang: "en", native: true, archive: true},
	{name: "osprey-software", industry: "software", lang: "en", native: true, agent: true, archive: true, repo: true},
	{name: "linden-clinic", industry: "clinic", lang: "en", native: true, vendor: true},
	{name: "harbour-freight-line", industry: "logistics", lang: "en", native: false, archive: true},
	{name: "castellan-bank", industry: "bank", lang: "en", native: true, archive: true},
	{name: "pixelforge-games", industry: "games", lang: "en", native: false, agent: true},
	{name: "maple-grove-school", industry: "school", lang: "en", native: true, vendor: true},
	{name: "riverton-city-hall", industry: "city", lang: "en", native: true, vendor: true, archive: true},
	{name: "kestrel-devtools", industry: "software", lang: "en", native: false, agent: true, archive: true, repo: true},
	{name: "anchor-mutual", industry: "insurance", lang: "en", native: true, archive: true},
	{name: "greenleaf-pharmacy", industry: "pharmacy", lang: "en", native: false, vendor: true},
	{name: "cabinet-morvane", industry: "law", lang: "fr", native: true, archive: true},
	{name: "tiefbau-norden", industry: "factory", lang: "de", native: true, archive: true},
	{name: "transportes-alcazor", industry: "logistics", lang: "es", native: false},
	{name: "heng-yue-trading", industry: "logistics", lang: "zh", native: true},
	{name: "minato-hoken", industry: "insurance", lang: "ja", native: false},
	{name: "wayfarer-tours", industry: "travel", lang: "en", native: true, vendor: true},
	{name: "ironbark-machining", industry: "factory", lang: "en", native: false},
	{name: "quillon-labs", industry: "software", lang: "en", native: true, agent: true},
	{name: "saffron-telehealth", industry: "clinic", lang: "en", native: false, vendor: true},
	{name: "delta-parcel", industry: "logistics", lang: "en", native: true, vendor: true},
	{name: "northgate-credit", industry: "bank", lang: "en", native: false},
	{name: "hotel-lorvenne", industry: "travel", lang: "fr", native: true, vendor: true},
	{name: "tandem-payroll", industry: "software", lang: "en", native: false, agent: true},
}
