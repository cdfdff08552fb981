package provider

import (
	"regexp"
	"strconv"
	"strings"

	tidemark "github.com/tidemark-ai/tidemark"
)

// What the words of a refusal must have, and what they may not, so that a number in them is the size of a window: the bound
// on a reply, on a text within the request or on a minute is another.
const (
	ofWindow  = `token|context|length`
	ofRequest = `input|prompt|context|messages|request|conversation|too long|too many`
	ofOthers  = `output|completion|max[_ ]tokens|max_new|budget|generat|answer|respon|string|array|list|item|char|byte|\b[kmg]i?b\b|body|payload|entity|` +
		`content[ -]length|per (?:minute|hour|day|request)|\b[rt]pm\b|rate.?limit|quota|image|picture|pixel|file|document|pages|stop|log_?prob|logit|cache|at least|minimum`
	// A number behind a word for a limit, or before it.
	theLimit = `(?:up to|at most|more than|less than|maximum|max|limit|limited to|accepts?|supports?|allows?|exceeds?|capacity)` +
		`(?: (?:of|is|the|an?|only|to|for|this|that|model|context|window|input|prompt|request|sequence|size|length|number|tokens?|count|allowed|supported|maximum|max|limit|total|be|than|or|equal|up))*` +
		`[ :=]+(\d(?:[\d,]*\d)?)([km]?)\b|(\d(?:[\d,]*\d)?)([km]?)[ -](?:tokens?[ -])?(?:context[ -])?(?:window[ -])?(?:limit|maximum|max)\b`
	leastLimit = 1000 // tokens; less is a count of something else, or a code
)

// namedLimit is the window that a refusal names in words that nobody foresaw, 0 for none: the smallest number near a word
// for a limit, for what was asked for is more.
func namedLimit(message string) (limit tidemark.Tokens) {
	message = strings.ToLower(message)
	if _, placed := placeIn(message); placed || !says(ofWindow, message) || !says(ofRequest, message) || says(ofOthers, message) {
		return 0
	}
	for _, found := range regexp.MustCompile(theLimit).FindAllStringSubmatch(message, -1) {
		n, err := strconv.ParseInt(strings.ReplaceAll(found[1]+found[3], ",", ""), 10, 64)
		if err != nil || n > maxLimit {
			continue
		}
		switch found[2] + found[4] { // as few as may be meant
		case "k":
			n *= 1000
		case "m":
			n *= 1_000_000
		}
		if n >= leastLimit && n <= maxLimit && (limit == 0 || tidemark.Tokens(n) < limit) {
			limit = tidemark.Tokens(n)
		}
	}
	return limit
}

func says(pattern, text string) bool { return regexp.MustCompile(pattern).MatchString(text) }
