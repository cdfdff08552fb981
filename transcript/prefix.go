package transcript

import "github.com/tidemark-ai/tidemark"

// TypicalPrefix is what system prompt and tools of a coding agent take where no call tells: the figure of papers/cmv §4.2.
const TypicalPrefix tidemark.Tokens = 20_000

// Prefix is what of a context of that size stands before the messages, whose estimate is given, when the calls told, or
// nobody did and [TypicalPrefix] was taken. The report of a call says all of a context, and the log only some: where it
// says less than the messages of the log can be, what the first call said was of another context.
func Prefix(told, context, messages tidemark.Tokens) tidemark.Tokens {
	const least = 4 // no text has that many times the characters of an estimate
	if least*(context-told) < messages {
		return min(told, max(context-messages, min(TypicalPrefix, context/2)))
	}
	return told
}
