// Package near finds the known name that was meant by one that is not known, for errors that suggest a fix. It does
// not decide whether to accept it. Begin with [Name].
package near

import "strings"

// longest is how many bytes of a name are compared.
const longest = 100

// Name returns the first of the nearest known names, empty if none is near: it must keep a letter of the shorter of
// both, and no more than two letters, or a third of a long name, may differ. Capitals do not count.
func Name(s string, known []string) string {
	best, least := "", 1+max(2, len(s)/3)
	for _, k := range known {
		if n := distance(strings.ToLower(s), strings.ToLower(k)); n < min(least, len(s), len(k)) {
			best, least = k, n
		}
	}
	return best
}

// distance is the number of letters to put in, take out, change or swap with the next one.
func distance(a, b string) int {
	a, b = a[:min(len(a), longest)], b[:min(len(b), longest)]
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// Plain is a name without capitals, "_" and "-", by which tools are told apart.
func Plain(name string) string {
	i := 0
	for i < len(name) && name[i] != '_' && name[i] != '-' && (name[i] < 'A' || name[i] > 'Z') {
		i++
	}
	if i == len(name) {
		return name
	}
	out := append(make([]byte, 0, len(name)), name[:i]...)
	for ; i < len(name); i++ {
		switch c := name[i]; {
		case c == '_' || c == '-':
		case c >= 'A' && c <= 'Z':
			out = append(out, c+'a'-'A')
		default:
			out = append(out, c)
		}
	}
	return string(out)
}
