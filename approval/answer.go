package approval

import (
	"crypto/sha256"
	"strings"
	"unicode"
)

// codeLetters are those of a code: none is taken for another when it is read aloud or typed on a phone.
const codeLetters = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"

// CodeLength is how many letters a code has: it tells calls apart and is no secret, since only the owner's
// decision counts.
const CodeLength = 5

// Code names a call that waits: always the same for the same parts, so that a question which is asked again
// after a crash has the code that was told.
func Code(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	out := make([]byte, CodeLength)
	for i := range out {
		out[i] = codeLetters[int(sum[i])%len(codeLetters)]
	}
	return string(out)
}

// Answer reads what a person wrote as the answer to a question: "yes CODE" or "no CODE", in whatever case, with
// nothing else beside it but white space and a full stop at the end. approve and allow are yes, deny and
// reject are no. ok is false for any other text, which is a message like all others.
func Answer(text string) (code string, allow, ok bool) {
	fields := strings.FieldsFunc(strings.TrimRight(strings.TrimSpace(text), "."), unicode.IsSpace)
	if len(fields) != 2 || len(fields[1]) != CodeLength {
		return "", false, false
	}
	switch strings.ToLower(fields[0]) {
	case "yes", "approve", "allow":
		allow = true
	case "no", "deny", "reject":
	default:
		return "", false, false
	}
	code = strings.ToUpper(fields[1])
	return code, allow, strings.Trim(code, codeLetters) == ""
}
