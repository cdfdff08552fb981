package compaction

import (
	"slices"
	"strings"
)

// What the index names is found by hand-written scanners: package regexp took 157 to 226 ms for 0.5 MB where these take
// 22 to 58 (natively), and in the Worker all other objects wait meanwhile. Each says the
// expression that it stands for; scan_test.go holds the two together.
// Classes are ASCII: \w is isWord, \s is blank, \b is where one side is a word.

// blanks are what \s stands for.
const blanks = "\t\n\f\r "

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isUpper(c byte) bool { return c >= 'A' && c <= 'Z' }
func isHex(c byte) bool   { return isDigit(c) || c >= 'a' && c <= 'f' }
func isWord(c byte) bool  { return isDigit(c) || isUpper(c) || c >= 'a' && c <= 'z' || c == '_' }
func isBlank(c byte) bool { return strings.IndexByte(blanks, c) >= 0 }
func isName(c byte) bool  { return isWord(c) || c == '.' || c == '@' || c == '-' } // of a file
func isPath(c byte) bool  { return isName(c) || c == '~' || c == '/' }

// at says whether the byte at i, if there is one, is of a class.
func at(s string, i int, class func(byte) bool) bool {
	return i >= 0 && i < len(s) && class(s[i])
}

// run gives the end of the bytes from i on that are of a class.
func run(s string, i int, class func(byte) bool) int {
	for at(s, i, class) {
		i++
	}
	return i
}

// edge is \b.
func edge(s string, i int) bool { return at(s, i-1, isWord) != at(s, i, isWord) }

// scan gives the first n matches from the left. A match at i is said by its end, none by 0.
func scan(s string, n int, match func(s string, i int) int) []string {
	var found []string
	for i := 0; i < len(s) && len(found) < n; {
		if end := match(s, i); end > i {
			found = append(found, s[i:end])
			i = end
		} else {
			i++
		}
	}
	return found
}

const urlEnds = blanks + `"'<>)]}`

// cutURLs gives the first n addresses, and the text with a space in place of every one.
//
//	https?://[^\s"'<>)\]}]+
func cutURLs(s string, n int) (urls []string, bare string) {
	var rest strings.Builder
	for {
		start := strings.Index(s, "http")
		if start < 0 {
			return urls, rest.String() + s
		}
		rest.WriteString(s[:start])
		s = s[start:]
		body, ok := strings.CutPrefix(strings.TrimPrefix(s[len("http"):], "s"), "://")
		if !ok || body == "" || strings.IndexByte(urlEnds, body[0]) >= 0 {
			rest.WriteString(s[:1])
			s = s[1:]
			continue
		}
		end := strings.IndexAny(body, urlEnds)
		if end < 0 {
			end = len(body)
		}
		rest.WriteByte(' ')
		if len(urls) < n {
			urls = append(urls, s[:len(s)-len(body)+end])
		}
		s = body[end:]
	}
}

// pathMatch matches paths with an extension, absolute paths, and names of files.
//
//	(?:[\w.@~-]*/)+[\w.@-]+\.\w{1,8}\b | (?:/[\w.@-]+){2,} | \b[\w-]+\.(?:go|…)\b
//
// A run of bytes that failed once is not tried again from each of its bytes.
func pathMatch() func(s string, i int) int {
	notPath, notFile := 0, 0 // no match begins before these
	return func(s string, i int) int {
		if i >= notPath {
			if end := extended(s, i); end > i {
				return end
			}
			notPath = run(s, i, isPath)
		}
		if end := absolute(s, i); end > i {
			return end
		}
		if i < notFile || !edge(s, i) {
			return 0
		}
		dot := run(s, i, func(c byte) bool { return isWord(c) || c == '-' })
		end := run(s, dot+1, isWord)
		if dot > i && dot < len(s) && s[dot] == '.' && slices.Contains(extensions, s[dot+1:end]) {
			return end
		}
		notFile = dot
		return 0
	}
}

// extensions make a name a file, if no folder does.
var extensions = strings.Fields("go ts tsx js py rs md json toml yaml yml sql sh ex exs html css txt csv")

// extended ends a path after the extension of its last part that has one.
func extended(s string, i int) int {
	for slash := strings.LastIndexByte(s[i:run(s, i, isPath)], '/'); slash >= 0; slash = strings.LastIndexByte(s[i:i+slash], '/') {
		name := i + slash + 1
		for dot := run(s, name, isName) - 1; dot > name; dot-- {
			if s[dot] != '.' {
				continue
			}
			if end := run(s, dot+1, isWord); end > dot+1 && end <= dot+1+8 {
				return end
			}
		}
	}
	return 0
}

// absolute ends two or more parts, each after a slash.
func absolute(s string, i int) int {
	for parts := 0; ; parts++ {
		end := i
		if i < len(s) && s[i] == '/' {
			end = run(s, i+1, isName)
		}
		switch {
		case end > i+1:
			i = end
		case parts >= 2:
			return i
		default:
			return 0
		}
	}
}

// idMatch matches UUIDs, hashes, tickets (ABC-12), issues (#12) and versions.
//
//	\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b | \b[0-9a-f]{7,40}\b |
//	\b[A-Z]{2,10}-\d+\b | (?:^|\s)#\d+\b | \bv?\d+\.\d+\.\d+[\w.-]*
func idMatch(s string, i int) int {
	hash := i
	if isBlank(s[i]) {
		hash++
	}
	if (hash > i || i == 0) && strings.HasPrefix(s[hash:], "#") {
		if end := run(s, hash+1, isDigit); end > hash+1 && edge(s, end) {
			return end
		}
	}
	if !at(s, i, isWord) || !edge(s, i) {
		return 0
	}
	if end := uuid(s, i); end > i {
		return end
	}
	if end := run(s, i, isHex); end-i >= 7 && end-i <= 40 && edge(s, end) {
		return end
	}
	if dash := run(s, i, isUpper); dash-i >= 2 && dash-i <= 10 && dash < len(s) && s[dash] == '-' {
		if end := run(s, dash+1, isDigit); end > dash+1 && edge(s, end) {
			return end
		}
	}
	return version(s, i)
}

func uuid(s string, i int) int {
	for n, digits := range []int{8, 4, 4, 4, 12} {
		if n > 0 {
			if i >= len(s) || s[i] != '-' {
				return 0
			}
			i++
		}
		if end := i + digits; end <= len(s) && run(s[:end], i, isHex) == end {
			i = end
		} else {
			return 0
		}
	}
	if !edge(s, i) {
		return 0
	}
	return i
}

func version(s string, i int) int {
	if s[i] == 'v' {
		i++
	}
	for part := range 3 {
		end := run(s, i, isDigit)
		if end == i || part < 2 && (end == len(s) || s[end] != '.') {
			return 0
		}
		i = end + 1
	}
	return run(s, i-1, func(c byte) bool { return isWord(c) || c == '.' || c == '-' })
}

// numberMatch matches numbers of two digits and more with currency and unit, and times of day.
//
//	\b\d{1,2}:\d{2}\b | (?:[$€£]\s?)?\b\d[\d,.]*\d(?:\s?(?:%|ms|…))?
func numberMatch(s string, i int) int {
	first := i
	for _, c := range []string{"$", "€", "£"} {
		if strings.HasPrefix(s[i:], c) {
			first += len(c)
			if at(s, first, isBlank) {
				first++
			}
		}
	}
	if !at(s, first, isDigit) || !edge(s, first) {
		return 0
	}
	end := run(s, first, isDigit)
	if first == i && end-first <= 2 && end < len(s) && s[end] == ':' && run(s, end+1, isDigit) == end+3 && edge(s, end+3) {
		return end + 3
	}
	end = run(s, end, func(c byte) bool { return isDigit(c) || c == ',' || c == '.' })
	end = first + len(strings.TrimRight(s[first:end], ",."))
	if end-first >= 2 {
		return unit(s, end)
	}
	return 0
}

// unit ends a number after the unit that follows it, if one does.
func unit(s string, i int) int {
	from := i
	if at(s, i, isBlank) {
		from++
	}
	for _, u := range []string{"%", "ms", "s", "MB", "GB", "KB", "kg", "km", "EUR", "USD", "tokens"} {
		if strings.HasPrefix(s[from:], u) {
			return from + len(u)
		}
	}
	return i
}

// troubles are the words of lines that say what went wrong, besides a time-out.
var troubles = strings.Fields("error panic fatal exception failed cannot undefined denied refused timeout timedout")

// tellsError says whether a line has a word of trouble.
//
//	(?i)\b(?:error|…|timed? ?out)\b
func tellsError(line string) bool {
	line = strings.ToLower(line)
	for i := 0; i < len(line); {
		end := run(line, i, isWord)
		word := line[i:end]
		if slices.Contains(troubles, word) || (word == "time" || word == "timed") && strings.HasPrefix(line[end:], " out") && edge(line, end+len(" out")) {
			return true
		}
		i = end + 1
	}
	return false
}
