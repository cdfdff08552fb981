//go:build !js

package fault

import (
	"os/exec"
	"path/filepath"
	"strings"
)

// kind is what the two servers under test differ in: a process that is started, killed and read.
type kind interface {
	// command is a process that serves what lies at the fixture's home.
	command(f *fixture) *exec.Cmd
	// serves reads where from a line that the process prints; another line says nothing.
	serves(line string) (url, control string)
	// databases are the files of a home.
	databases(home string) ([]string, error)
	// tally is where its kills are counted.
	tally() *tally
	// keep puts what lies in the bucket of a server that is about to stop into the fixture's folder.
	keep(f *fixture, s *server) error
}

// binaryKind is cmd/tidemark: a database an agent, a folder as the bucket.
type binaryKind struct{}

var _ kind = binaryKind{}

func (binaryKind) command(f *fixture) *exec.Cmd { return f.command("serve", "--listen", "127.0.0.1:0") }

func (binaryKind) serves(line string) (url, control string) {
	_, url, _ = strings.Cut(line, " serves at ")
	return strings.TrimSpace(url), ""
}

func (binaryKind) tally() *tally { return &binaryTally }

func (binaryKind) databases(home string) ([]string, error) {
	return filepath.Glob(filepath.Join(home, "agents", "*", "tidemark.db"))
}

func (binaryKind) keep(*fixture, *server) error { return nil }
