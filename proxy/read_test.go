package proxy_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/proxy"
)

// counted is a database that counts what reads messages.
type counted struct {
	tidemark.DB
	queries  int
	payloads int // rows
	hold     func()
}

func (c *counted) Query(ctx context.Context, sql string, args ...any) ([]tidemark.Row, error) {
	rows, err := c.DB.Query(ctx, sql, args...)
	if c.queries++; strings.Contains(sql, "payload") {
		c.payloads += len(rows)
		if c.hold != nil {
			c.hold()
		}
	}
	return rows, err
}

// long is a conversation of so many reads that is stored, and opened again.
func long(t *testing.T, treatment string, reads int) (*rig, *counted, []string) {
	r := newRig(t, proxy.Settings{Treatment: treatment, Window: 200_000})
	history := []string{text("user", "go")}
	for i := range reads {
		id := fmt.Sprint("c", i)
		history = append(history, said(call(id, "Read", fmt.Sprintf(`{"file_path":"f%d.go"}`, i))), result(id, strings.Repeat("line ", 50)))
	}
	r.exchange("", request(history...), reply("end_turn", textBlock("done")))
	history = append(history, said(textBlock("done")), text("user", "more"))
	db := &counted{DB: r.db}
	r.db = db
	r.restart()
	return r, db, history
}

// TestReadOnce: after a restart, and for who looks on, stored messages are read once and many with one query.
func TestReadOnce(t *testing.T) {
	const reads = 200
	for _, treatment := range []string{proxy.Page, proxy.Episodes} {
		r, db, history := long(t, treatment, reads)
		db.queries, db.payloads = 0, 0
		r.exchange("", request(history...), reply("end_turn", textBlock("yes")))
		if stored := 2*reads + 2; db.payloads > stored || db.queries > stored/4 {
			t.Errorf("%s: %d queries for the first request, %d messages read, %d are stored", treatment, db.queries, db.payloads, stored)
		}
		db.queries, db.payloads = 0, 0
		if _, err := r.c.Episodes(t.Context(), ""); err != nil {
			t.Fatal(err)
		}
		if stored := 2*reads + 4; db.payloads > stored || db.queries > stored/4 {
			t.Errorf("%s: %d queries for who looks on, %d messages read, %d are stored", treatment, db.queries, db.payloads, stored)
		}
	}
}

// TestLookWaitsForNobody: a request is taken up while somebody looks at the episodes of a long history.
func TestLookWaitsForNobody(t *testing.T) {
	r, db, history := long(t, proxy.Episodes, 20)
	r.exchange("", request(history...), reply("end_turn", textBlock("yes")))
	history = append(history, said(textBlock("yes")), text("user", "go on"))
	began := false
	db.hold = func() {
		db.hold = nil
		r.exchange("", request(history...), reply("end_turn", textBlock("so")))
		began = true
	}
	e, err := r.c.Episodes(t.Context(), "")
	if err != nil || !began || len(e.States) == 0 {
		t.Errorf("%+v, %v; a request was taken up meanwhile: %t", e, err, began)
	}
}
