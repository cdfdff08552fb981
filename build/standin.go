package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/tidemark-ai/tidemark/internal/json"
)

// standIns are packages that the Worker never calls, but net/http imports, with all they start at
// init. The compiler is handed our folder in their place; natively and in tests they are themselves.
// That nothing of ours calls them is held by banned.
var standIns = []struct{ pkg, dir, why string }{
	{"crypto/tls", "tls", "workerd does TLS; the import alone links X.509, every curve and cipher, their self tests: 0.37 MB compressed"},
	{"vendor/golang.org/x/net/http/httpproxy", "httpproxy", "there is no environment; it keeps the tables of international host names: 0.09 MB"},
}

// overlay writes the file that tells the compiler of the stand-ins, into folder.
func overlay(folder string) (string, error) {
	root, err := goSays(nil, "env", "GOROOT")
	if err != nil {
		return "", err
	}
	ours, err := goSays(nil, "list", "-f", "{{.Dir}}", "github.com/tidemark-ai/tidemark/build")
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, s := range standIns {
		dir := filepath.Join(root, "src", filepath.FromSlash(s.pkg))
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return "", err
		}
		if len(files) == 0 {
			return "", fmt.Errorf("stand in for %s: the toolchain has no %s: take it off standIns", s.pkg, dir)
		}
		for _, f := range files {
			replace[f] = "" // as if it were not there
		}
		replace[filepath.Join(dir, "standin.go")] = filepath.Join(ours, s.dir, s.dir+".go")
	}
	zones, err := smallZones(filepath.Join(root, "lib", "time", "zoneinfo.zip"))
	if err != nil {
		return "", err
	}
	data := filepath.Join(folder, "zzipdata.go")
	if err := os.WriteFile(data, zones, 0o600); err != nil {
		return "", err
	}
	replace[filepath.Join(root, "src", "time", "tzdata", "zzipdata.go")] = data
	raw, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	name := filepath.Join(folder, "overlay.json")
	return name, os.WriteFile(name, raw, 0o600)
}

// goSays gives what the go command prints, with env added to the environment.
func goSays(env []string, args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, said.Bytes())
	}
	return strings.TrimSpace(string(out)), nil
}
