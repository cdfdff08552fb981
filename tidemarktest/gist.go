package tidemarktest

import "strings"

// Gist is what a fake summariser says of the conversation in its prompt: the beginnings of its first lines, a bullet
// each. A summary that names nothing of what it stands for is none.
func Gist(prompt string) string {
	const lines, most = 12, 80
	_, talk, _ := strings.Cut(prompt, "<conversation>\n")
	talk, _, _ = strings.Cut(talk, "</conversation>")
	var b strings.Builder
	n := 0
	for line := range strings.Lines(talk) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		if n++; n > lines {
			break
		}
		b.WriteString("- " + clipText(line, most) + "\n")
	}
	return b.String()
}
