package worker

// Patterns lists the routes, for the test that holds the documentation to them.
func Patterns() []string {
	var out []string
	for _, r := range routes() {
		out = append(out, r.pattern)
	}
	return out
}
