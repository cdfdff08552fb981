package worker

// Patterns lists the routes, for the test that holds the documentation to them.
func Patterns() []string {
	var out []string
	for _, r := range routes() {
		out = append(out, r.pattern)
	}
	return out
}

// Anything is what a tolerant route takes.
const Anything = anything

// Takes lists the query parameters of the routes.
func Takes() map[string]string {
	out := map[string]string{}
	for _, r := range routes() {
		out[r.pattern] = r.takes
	}
	return out
}
