// Command hostile is a module that does, by its name or its input, what a tool must not.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var kept [][]byte

func main() {
	switch os.Args[0] { // before it reads
	case "early-loop":
		for {
			kept = kept[:0]
		}
	case "early-sleep":
		time.Sleep(time.Hour)
	case "early-exit":
		fmt.Println("no input needed")
		return
	case "early-data":
		b, err := os.ReadFile("/data/a.txt")
		check(err)
		_, _ = io.ReadAll(os.Stdin)
		fmt.Print(string(b))
		return
	}
	raw, err := io.ReadAll(os.Stdin)
	check(err)
	var in struct {
		Do, Path, Text string
		N              int
	}
	check(json.Unmarshal(raw, &in))
	switch in.Do {
	case "echo":
		_, _ = os.Stdout.Write(raw)
	case "say":
		fmt.Print(in.Text)
	case "args":
		fmt.Printf("%q %q", os.Args, os.Environ())
	case "loop":
		for {
			kept = kept[:0]
		}
	case "sleep":
		time.Sleep(time.Hour)
	case "memory":
		for {
			b := make([]byte, 1<<20)
			for i := range b {
				b[i] = 1
			}
			kept = append(kept, b)
		}
	case "stdout":
		for {
			_, _ = os.Stdout.Write(make([]byte, 64<<10))
		}
	case "stderr":
		for {
			fmt.Fprintln(os.Stderr, strings.Repeat("noise ", 2000))
		}
	case "fail":
		fmt.Println("half an answer")
		fmt.Fprintln(os.Stderr, "the wheel came off")
		os.Exit(7)
	case "panic":
		panic("on purpose")
	case "deep":
		fmt.Println(deep(1))
	case "count": // state that another call must not see
		n := len(kept)
		kept = append(kept, nil)
		fmt.Print(n)
	case "read":
		b, err := os.ReadFile(in.Path)
		check(err)
		fmt.Print(string(b))
	case "list":
		list, err := os.ReadDir(in.Path)
		check(err)
		for _, e := range list {
			fmt.Println(e.Name())
		}
	case "change":
		fmt.Println(os.WriteFile(in.Path, []byte("x"), 0o600))
		fmt.Println(os.WriteFile(filepath.Join(filepath.Dir(in.Path), "new"), []byte("x"), 0o600))
		fmt.Println(os.Remove(in.Path))
		fmt.Println(os.Rename(in.Path, in.Path+"2"))
		fmt.Println(os.Mkdir(in.Path+"3", 0o700))
		fmt.Println(os.Symlink("/etc/passwd", in.Path+"4"))
		fmt.Println(os.Truncate(in.Path, 0))
		fmt.Println(os.Chtimes(in.Path, time.Now(), time.Now()))
		f, err := os.OpenFile(in.Path, os.O_RDWR|os.O_APPEND, 0)
		fmt.Println(f != nil, err)
	case "open":
		var all []*os.File
		for range in.N {
			f, err := os.Open(in.Path)
			if err != nil {
				fmt.Println(len(all), err)
				return
			}
			all = append(all, f)
		}
		fmt.Println(len(all))
	case "net":
		_, err := net.Dial("tcp", in.Path)
		fmt.Println(err)
	}
}

func deep(n int) int {
	var pad [1000]byte
	pad[n%1000] = byte(n)
	return deep(n+1) + int(pad[(n+1)%1000])
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
