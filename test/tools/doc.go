// Package tools runs servers of MCP from npm beside our clients: what is said of the protocol is held against programs
// that are not ours. `make e2e-tools` installs them; without them the tests are left out.
package tools
