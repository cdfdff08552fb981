// Command runs does what compiles into places to resume at, jumps and unwinding, and prints what came of it: a
// module that was rewritten must print the same.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"sort"
	"strings"
	"sync"
	"time"
)

type shape interface{ area(scale int) (int, error) }

type (
	square int
	pair   [2]int
)

func (s square) area(scale int) (int, error) { return int(s) * int(s) * scale, nil }

func (p pair) area(scale int) (int, error) {
	if p[0] < 0 {
		return 0, errors.New("less than nothing")
	}
	return p[0] * p[1] * scale, nil
}

// choose has a table of jumps, loops with ways out of two, and jumps back and ahead.
func choose(n int) (out string) {
outer:
	for i := range n {
		switch i % 9 {
		case 0, 5:
			continue outer
		case 1:
			out += "a"
		case 2:
			for j := i; ; j-- {
				if j%3 == 0 {
					continue outer
				}
				if j > 40 {
					break outer
				}
			}
		case 3:
			out += strings.ToUpper("b")
			fallthrough
		case 4:
			out += fmt.Sprint(i)
		case 7:
			if i > 20 {
				goto end
			}
		default:
			out += "."
		}
	}
end:
	return out + "|"
}

// deep grows its stack, and panics at the bottom if it is told to.
func deep(n int, panics bool) int {
	var room [64]int
	room[n%64] = n
	if n == 0 {
		if panics {
			var none map[string]int
			none["x"] = 1
		}
		return 0
	}
	defer func() { room[0]++ }()
	return deep(n-1, panics) + room[n%64] - n + 1
}

func recovered(f func()) (what string) {
	defer func() { what = fmt.Sprint(recover()) }()
	f()
	return "nothing"
}

func main() {
	fmt.Println(choose(50), choose(7), choose(0))
	for _, s := range []shape{square(4), pair{2, 3}, pair{-1, 3}} {
		n, err := s.area(3)
		fmt.Println(n, err)
	}
	fmt.Println(deep(5000, false), recovered(func() { deep(300, true) }))
	fmt.Println(recovered(func() { _ = []int{1}[len(os.Args)+5] }), recovered(func() { var s shape; _, _ = s.area(1) }))

	var all sync.WaitGroup
	var mu sync.Mutex
	sums, done := map[int]int{}, make(chan int)
	for g := range 20 {
		all.Go(func() {
			for i := range 50 {
				runtime.Gosched()
				mu.Lock()
				sums[g] += i * g
				mu.Unlock()
			}
			select {
			case done <- g:
			case <-time.After(time.Minute):
			}
		})
	}
	total := 0
	for range 20 {
		total += <-done
	}
	all.Wait()
	runtime.GC()
	keys := make([]int, 0, len(sums))
	for k := range sums {
		keys = append(keys, k)
	}
	sort.Ints(keys)
	fmt.Println(total, keys, sums[19])
	for _, f := range []float64{1.5, -2.25, 1e300} {
		fmt.Printf("%g %d %v %.3e\n", f*f, int64(f), uint8(int(f)), f/3)
	}
	panic("the end")
}
