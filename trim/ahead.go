package trim

import "sync"

// ahead reads the chunks of the log before they are wanted, one at a time.
type ahead struct {
	ready chan loaded
	free  chan []byte
	stop  chan struct{}
	wg    sync.WaitGroup
}

type loaded struct {
	data []byte
	err  error
}

// readAhead begins to read; the goroutine ends with the chunks, or with end.
func (w *writer) readAhead(chunks []*chunk) *ahead {
	a := &ahead{ready: make(chan loaded), free: make(chan []byte, 2), stop: make(chan struct{})}
	a.free <- nil
	a.free <- nil
	a.wg.Go(func() {
		for _, c := range chunks {
			if c.long {
				continue
			}
			r := source{sizes: w.sizes, in: w.in}
			select {
			case r.data = <-a.free:
			case <-a.stop:
				return
			}
			r.load(c.span)
			select {
			case a.ready <- loaded{r.data, r.err}:
			case <-a.stop:
				return
			}
		}
	})
	return a
}

// next returns the next chunk that is not long.
func (a *ahead) next() ([]byte, error) {
	l := <-a.ready
	return l.data, l.err
}

// back takes a chunk that is no longer looked at.
func (a *ahead) back(data []byte) { a.free <- data[:0] }

func (a *ahead) end() {
	close(a.stop)
	a.wg.Wait()
}
