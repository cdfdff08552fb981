// Package tools runs servers of MCP from npm beside our clients: what is said of the protocol is held against programs
// that are not ours. It covers no vendor's server. Begin with `make e2e-tools`, which installs them; without them the
// tests are skipped.
package tools
