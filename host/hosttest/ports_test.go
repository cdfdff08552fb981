package hosttest_test

import (
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/host/hosttest"
	"github.com/tidemark-ai/tidemark/tidemarktest"
)

// The contracts, on whichever host this is built for.

func TestDB(t *testing.T) {
	testDB(t, func(t *testing.T) tidemark.DB { return hosttest.DB(t) })
}

func TestBlobs(t *testing.T) {
	tidemarktest.TestBlobs(t, func(t *testing.T) tidemark.Blobs { return hosttest.Blobs(t) })
}
