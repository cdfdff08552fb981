package toolbox

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
)

// between stands between the name of a server and that of its tool.
const between = "__"

// publicName is the name under which a tool is offered, one that is not taken. A plain one is
// "{server}__{tool}", which is read at its first "__", so that two of them are never alike: a server's name has none
// and does not end in _ (package config). What is longer than model APIs take, or has other letters, gets a hash of
// both names behind what is left of it. salt grows until the name is free.
func publicName(server, tool string, taken func(string) bool) string {
	full := tool
	if server != "" {
		full = server + between + tool
	}
	clean, odd := cleanName(full)
	if !odd && !taken(clean) {
		return clean
	}
	const digits = 8
	for salt := 0; ; salt++ {
		sum := sha256.Sum256([]byte(server + "\x00" + tool + "\x00" + strconv.Itoa(salt)))
		name := clean[:min(len(clean), maxName-digits-1)] + "_" + hex.EncodeToString(sum[:digits/2])
		if !taken(name) {
			return name
		}
	}
}

// cleanName replaces what a name may not have; odd says that the name was not plain.
func cleanName(s string) (clean string, odd bool) {
	odd = len(s) > maxName || s == ""
	clean = strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' {
			return r
		}
		odd = true
		return '_'
	}, s)
	return clean, odd
}
