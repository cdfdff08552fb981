package tidemarktest

import "math/rand/v2"

// odds are values, and what stands between them, as JSON has them and as it does not.
var odds = []string{"1", "-0", "0", "01", "1.5e+3", "1E5", "-", "null", "nul", "true", "false", `"a"`, `"\u00e9\n\\"`, `"\x"`, `"\u12"`, "\"\t\"", `"é東"`, `""`, `"}"`, `"]"`, "[]", "[ ]", "[1,2]", "[1,]", "[,]", "{}", `{"a":1}`,
	`{"a":1,}`, `{"a" :[{"b": null}]}`, `{"a"}`, `{a:1}`, `{"a":}`, "\t", " ", "\r\n", ",", ":", "[", "]", "{", "}", `"`, "1234567890123456789", "99999999999999999999", "0x1", "+1", ".5", "5.", "NaN"}

// OddJSON is a text that is JSON about as often as not, and nearly is else: for a scanner that is held against a library.
func OddJSON(r *rand.Rand) string {
	raw := odds[r.IntN(len(odds))]
	for range r.IntN(4) {
		switch r.IntN(4) {
		case 0:
			raw = "[" + raw + "," + odds[r.IntN(len(odds))] + "]"
		case 1:
			raw = `{"k":` + raw + ` , "l":` + odds[r.IntN(len(odds))] + "}"
		case 2:
			at := r.IntN(len(raw) + 1)
			raw = raw[:at] + odds[r.IntN(len(odds))] + raw[at:]
		default:
			at := r.IntN(len(raw))
			raw = raw[:at] + raw[at+r.IntN(len(raw)-at):]
		}
		if raw == "" {
			raw = " "
		}
	}
	return raw
}
