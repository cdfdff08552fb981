package memory

import (
	"slices"
	"strings"
	"unicode"
)

// statement is what a fact says whose last words are a value: of what, and which.
type statement struct {
	subject, value, kind string
	sure                 bool   // the subject has one such value at a time, whoever speaks
	now                  bool   // the fact tells of a change
	moved                bool   // it tells that something moved to a place or a time
	from                 string // where from, folded, if it says so
}

// replaces reports whether both cannot be true: another value of the same kind, and none that may say the same
// otherwise ("Berlin", then "Berlin Mitte"; "Ann Smith", then "Dr. Smith"). Two facts with a time are two
// appointments, unless the newer one says that it moved.
func (s statement) replaces(was statement) bool {
	if s.kind != was.kind || was.moved && !s.moved || s.from != "" && s.from != Fold(was.value) {
		return false
	}
	switch s.kind {
	case kindDay, kindMonth, kindHour:
		return s.moved && strings.TrimSuffix(Fold(s.value), "s") != strings.TrimSuffix(Fold(was.value), "s")
	case kindName, kindCountry, kindRegion, kindWider:
		then := strings.Fields(Fold(was.value))
		return !slices.ContainsFunc(strings.Fields(Fold(s.value)), func(w string) bool { return slices.Contains(then, w) })
	}
	return s.value != was.value
}

// The kinds of values. Only those of one kind may replace one another.
const (
	kindURL     = "url"
	kindAddress = "address"
	kindFile    = "path"
	kindNumber  = "number"
	kindCode    = "code" // v1.2, eu-west-1
	kindHour    = "hour" // 8am, 20:15
	kindDay     = "day"  // Monday, 2026-11-03
	kindMonth   = "month"
	kindName    = "name" // of a person, a place, a firm: words with capitals
	kindCountry = "country"
	kindRegion  = "region" // of a country
	kindWider   = "continent"
)

// fits is what kinds of value a relation takes, and of what subjects.
type fits int

const (
	fitsValue fits = iota + 1 // of a definite thing: a number, an address, a day; a name of a role only
	fitsTime                  // of a definite thing
	fitsPlace                 // of a definite thing or the one whose facts these are
	fitsName
	fitsMoved // a place or a time
)

// relations are the words between a subject and its value that give it one value at a time. What may have
// several ("likes", "speaks", "has", "meets on") is not among them, nor what is true for an hour ("is in").
var relations = map[string]fits{
	"is": fitsValue, "=": fitsValue, "→": fitsValue, "is on": fitsTime, "is at": fitsTime,
	"lives in": fitsPlace, "live in": fitsPlace, "wohnt in": fitsPlace, "is based in": fitsPlace, "is located in": fitsPlace, "is hosted in": fitsPlace,
	"works at": fitsName, "reports to": fitsName, "is called": fitsName, "is named": fitsName, "is led by": fitsName, "is maintained by": fitsName, "is owned by": fitsName,
	"moved to": fitsMoved, "rescheduled to": fitsMoved, "postponed to": fitsMoved,
}

// Words that decide, each between blanks.
const (
	// changed are no part of what is said, those of changing tell of a change.
	changed  = " now currently instead jetzt nun "
	changing = " now instead jetzt nun "
	// doubtful are those with which a fact adds to another, denies it, or is true sometimes only.
	doubtful = " and or also too both another either neither plus besides additionally as well sometimes often usually mostly mainly partly not never no nor" +
		" if when while unless until till since but except may might maybe perhaps probably possibly could would should will planned plans again still temporarily "
	// several are of whom somebody may have more than one.
	several = " brother sister sibling twin son daughter child kid baby cousin uncle aunt nephew niece grandson granddaughter grandchild parent grandparent" +
		" grandmother grandfather grandma grandpa friend colleague coworker neighbour neighbor roommate flatmate customer client patient pupil student guest tenant member employee" +
		" pet dog cat horse pony bird parrot fish rabbit hamster "
	// shifting tell one of several things from the next, and another one tomorrow.
	shifting = " new old next other last today tomorrow this that second spare "
	// roles have one name at a time.
	roles = " lead boss manager "
	// single are of what a definite thing has one.
	single = " port hostname url domain version region age salary "

	days   = " monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays "
	months = " january february march april may june july august september october november december "
	// Who lives in a country lives in a town of it, in a part of it and on a continent: each is no other place than the rest.
	countries = " germany austria switzerland france italy spain portugal ireland britain uk netherlands holland belgium luxembourg denmark sweden norway finland iceland" +
		" poland czechia slovakia hungary romania bulgaria greece turkey ukraine russia estonia latvia lithuania croatia serbia slovenia cyprus malta israel egypt morocco nigeria kenya ghana ethiopia" +
		" china japan india korea taiwan vietnam thailand indonesia malaysia singapore philippines pakistan bangladesh iran iraq australia canada mexico brazil argentina chile colombia peru usa us" +
		" deutschland österreich schweiz "
	regions       = " england scotland wales california texas florida oregon washington bavaria saxony hesse catalonia tuscany tyrol bayern sachsen hessen tirol "
	continents    = " america europe eu asia africa oceania europa asien afrika amerika "
	longCountries = "|united states|united kingdom|south africa|new zealand|saudi arabia|czech republic|south korea|north korea|sri lanka|costa rica|"
	longRegions   = "|northern ireland|"
	longWider     = "|north america|south america|"
	// origins end words that tell where somebody is from or what they believe, and are no name.
	origins = "ish ese an ic ist ch iss eek ai im ern"
)

func among(list, word string) bool {
	return word != "" && strings.Contains(list, " "+strings.ToLower(word)+" ")
}

// stated reads a fact of the form subject, relation, value. Everything else is more than can be compared
// without understanding it.
func stated(text string) (statement, bool) {
	const longestValue, longestRelation = 3, 3
	words, from := moveFrom(plainWords(text))
	if slices.ContainsFunc(words, func(w string) bool { return among(doubtful, strings.Trim(w, ",;")) && w != "May" }) {
		return statement{}, false
	}
	for n := 1; n <= longestValue && n < len(words)-1; n++ {
		value, before := strings.Trim(strings.Join(words[len(words)-n:], " "), "\"'`,;"), words[:len(words)-n]
		for r := min(longestRelation, len(before)-1); r >= 1; r-- {
			subject, relation := before[:len(before)-r], strings.ToLower(strings.Join(before[len(before)-r:], " "))
			takes, known := relations[strings.TrimPrefix(relation, "was ")]
			if !known {
				continue
			}
			kind := kindOf(value, n)
			s := statement{value: value, kind: kind, sure: one(takes, kind, relation, subject), from: from, moved: takes == fitsMoved}
			s.now = s.moved || slices.ContainsFunc(strings.Fields(text), func(w string) bool { return among(changing, strings.TrimRight(w, ".!,;")) })
			if s.moved {
				takes, relation = movedTo(kind)
			}
			if slices.Contains(subject, "is") || !allowed(takes, kind, value, relation, subject) {
				return statement{}, false
			}
			if s.subject = Fold(strings.Join(subject, " ")); takes != fitsValue {
				s.subject += " " + relation
			}
			return s, len(strings.Fields(s.subject)) >= 2
		}
	}
	return statement{}, false
}

// movedTo is the relation of what moved to a value of a kind.
func movedTo(kind string) (fits, string) {
	switch kind {
	case kindDay, kindMonth:
		return fitsTime, "is on"
	case kindHour:
		return fitsTime, "is at"
	}
	return fitsPlace, "lives in"
}

// moveFrom takes "from Berlin" out of "moved from Berlin to Hamburg".
func moveFrom(words []string) (without []string, from string) {
	at, to := slices.Index(words, "from"), slices.Index(words, "to")
	if at < 1 || to < at || relations[strings.ToLower(words[at-1])+" to"] != fitsMoved {
		return words, ""
	}
	from = Fold(strings.Join(words[at+1:to], " "))
	return slices.Delete(words, at, to), from
}

// plainWords are the words of a fact without those that tell of a change, a colon before the last one read as
// a relation.
func plainWords(text string) []string {
	words := slices.DeleteFunc(strings.Fields(strings.TrimRight(strings.TrimSpace(text), ".!")), func(w string) bool { return among(changed, strings.Trim(w, ",;")) })
	if at := len(words) - 2; at > 0 && strings.HasSuffix(words[at], ":") {
		words[at] = strings.TrimSuffix(words[at], ":")
		words = slices.Insert(words, at+1, "=")
	}
	return words
}

// one reports whether nobody has two such values at once: of what comes again, is called, hosted or owned there may
// be two of one name, and of a first name two people.
func one(takes fits, kind, relation string, subject []string) bool {
	if slices.ContainsFunc(subject, func(w string) bool { return among(shifting, owner(w)) }) {
		return false
	}
	if takes != fitsValue {
		return (relation == "lives in" || relation == "live in" || relation == "wohnt in") && somebody(subject)
	}
	thing := subject[len(subject)-1]
	if of := slices.Index(subject, "of"); of > 0 {
		thing = subject[of-1]
	}
	if placeOrName(kind) {
		return among(roles, thing)
	}
	if kind == kindURL {
		return thing == "address" || among(single, thing)
	}
	return (kind == kindNumber || kind == kindCode) && among(single, thing)
}

// owner is a word without the ending of a genitive.
func owner(w string) string { return strings.TrimSuffix(strings.TrimSuffix(w, "'s"), "’s") }

// ofSeveral reports a subject that has to do with one whom somebody may have two of: "my daughter's name".
func ofSeveral(subject []string) bool {
	return slices.ContainsFunc(subject, func(w string) bool {
		w = owner(strings.Trim(w, ",;'’"))
		return among(several, w) || among(several, strings.TrimSuffix(w, "s"))
	})
}

// allowed reports whether a relation gives a subject one value of this kind at a time.
func allowed(takes fits, kind, value, relation string, subject []string) bool {
	if ofSeveral(subject) {
		return false
	}
	switch takes {
	case fitsValue:
		if kind == kindHour { // an appointment
			return false
		}
		named := placeOrName(kind)
		return kind != "" && definite(subject) && (!named || among(roles, subject[len(subject)-1]) && !ofOrigin(value))
	case fitsTime:
		return definite(subject) && slices.Contains([]string{kindDay, kindMonth, kindHour}, kind)
	case fitsPlace:
		one := somebody(subject) || definite(subject) && relation != "live in"
		return one && (placeOrName(kind) && (kind != kindName || !abbreviated(value)) || kind == kindCode)
	}
	naming := relation == "is called" || relation == "is named" // somebody may have a second name
	return kind == kindName && (definite(subject) || !naming && somebody(subject))
}

func placeOrName(kind string) bool {
	return kind == kindName || kind == kindCountry || kind == kindRegion || kind == kindWider
}

// abbreviated reports that a name is: NRW may be where the town is, and NYC the town.
func abbreviated(value string) bool {
	const most = 4
	return len(value) <= most && strings.ToUpper(value) == value
}

// definite reports a subject of which there is one: it begins with an article or a possessive, has a genitive,
// or names an owner by a name.
func definite(subject []string) bool {
	if len(subject) < 2 {
		return false
	}
	switch strings.ToLower(subject[0]) {
	case "a", "an", "some", "one", "each", "every", "this", "that", "it", "there":
		return false
	case "the", "my", "our", "your", "his", "her", "their", "its":
		return true
	}
	return slices.ContainsFunc(subject, func(w string) bool { return strings.HasSuffix(w, "'s") || strings.HasSuffix(w, "’s") })
}

// somebody reports the one whose facts these are. A bare first name is nobody in particular.
func somebody(subject []string) bool {
	who := Fold(strings.Join(subject, " "))
	return who == "i" || who == "user" || who == "owner"
}

// ofOrigin reports a word such as German, which with a role is no name of who has it.
func ofOrigin(value string) bool {
	return slices.ContainsFunc(strings.Fields(origins), func(end string) bool { return strings.HasSuffix(strings.ToLower(value), end) })
}

// capitals reports words that all begin with a capital letter and have no digits, as names do.
func capitals(words []string) bool {
	for _, w := range words {
		for i, r := range []rune(w) {
			if i == 0 && !unicode.IsUpper(r) || !unicode.IsLetter(r) && !strings.ContainsRune("-'’.", r) {
				return false
			}
		}
	}
	return len(words) > 0
}

// kindOf sorts the values that may replace one another, which have n words; empty is one that may not.
func kindOf(v string, n int) string {
	switch {
	case v == "":
		return ""
	case n > 1:
		switch in := func(list string) bool { return strings.Contains(list, "|"+Fold(v)+"|") }; {
		case in(longCountries):
			return kindCountry
		case in(longRegions):
			return kindRegion
		case in(longWider):
			return kindWider
		}
		if capitals(strings.Fields(v)) {
			return kindName
		}
		return ""
	case among(days, v):
		return kindDay
	case among(months, v):
		return kindMonth
	case !capitals([]string{v}):
		return kindOfCode(v)
	case among(countries, v):
		return kindCountry
	case among(regions, v):
		return kindRegion
	case among(continents, v):
		return kindWider
	}
	return kindName
}

// kindOfCode sorts values that are no words.
func kindOfCode(v string) string {
	digits := strings.ContainsAny(v, "0123456789")
	switch {
	case strings.Contains(v, "://"):
		return kindURL
	case strings.Contains(v, "@"):
		return kindAddress
	case strings.HasPrefix(v, "/") || strings.HasPrefix(v, "~/"):
		return kindFile
	case digits && isHour(v):
		return kindHour
	case digits && strings.Count(strings.Trim(v, "-"), "-") > 1 && strings.Trim(v, "0123456789-") == "":
		return kindDay
	case strings.Trim(v, "0123456789.,:%€$£+-") == "" && digits:
		return kindNumber
	case digits && strings.Trim(strings.ToLower(v), "0123456789.") != strings.ToLower(v):
		return kindCode
	}
	return ""
}

// isHour reports 8am, 10:30pm and 20:15.
func isHour(v string) bool {
	v = strings.ToLower(v)
	bare := strings.TrimSuffix(strings.TrimSuffix(v, "am"), "pm")
	return strings.Trim(bare, "0123456789:.") == "" && (bare != v || strings.Contains(v, ":"))
}
