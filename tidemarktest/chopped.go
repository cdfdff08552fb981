package tidemarktest

import "io"

// Chopped reads R in pieces of at most n+1 bytes, with n from the cycle Sizes; without any as it comes.
type Chopped struct {
	R     io.Reader
	Sizes []byte
	i     int
}

// Read implements io.Reader.
func (c *Chopped) Read(p []byte) (int, error) {
	n := len(p)
	if len(c.Sizes) > 0 {
		n = min(n, int(c.Sizes[c.i%len(c.Sizes)])+1)
		c.i++
	}
	return c.R.Read(p[:n])
}
