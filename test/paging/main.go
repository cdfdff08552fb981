// Command paging decides about made sessions in memory, for the test that counts the statements which that takes.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/tidemark-ai/tidemark/paging"
)

func main() {
	sessions := flag.Int("sessions", 8, "sessions")
	requests := flag.Int("requests", 100, "requests of a session")
	size := flag.Int("bytes", 6000, "bytes of a result, about")
	policy := flag.String("policy", "fifo", "policy")
	kind := flag.String("alone", "", "kind of the sessions, of paging.Profiles")
	flag.Parse()
	scanner, r := paging.Scanner{Tools: paging.DefaultTools()}, paging.Replay{Options: paging.Options{Policy: *policy}}
	for i := range *sessions {
		s, err := scanner.Session(paging.Profile(*kind, *requests, *size+i))
		if err == nil {
			err = r.Run(s)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "paging:", err)
			os.Exit(1)
		}
	}
}
