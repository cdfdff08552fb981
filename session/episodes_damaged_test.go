package session_test

import "testing"

// TestDamagedEpisodes: what is kept of episodes and cannot be used is made of the log again, and kept.
func TestDamagedEpisodes(t *testing.T) {
	for _, c := range []struct{ name, sql string }{
		{"no JSON", `UPDATE marked SET record = '{"n":' WHERE n = 2`},
		{"another type", `UPDATE marked SET record = '[]' WHERE n = 1`},
		{"a row is missing", `DELETE FROM marked WHERE n = 2`},
		{"the first is missing", `DELETE FROM marked WHERE n = 1`},
		{"another place", `UPDATE marked SET record = replace(record, '"n":2', '"n":7') WHERE n = 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newScribe(t, wide, 5_000)
			d.work("expl a | look 300", "look 300 | end seen", "act b: a | look 300", "end")
			want := states(episodesOf(t, d.Session))
			rows := d.number(`SELECT count(*) FROM marked`)
			d.exec(c.sql)
			d.again()
			if got := states(episodesOf(t, d.Session)); got != want {
				t.Errorf("episodes %s\nwant %s", got, want)
			}
			d.work("expl c | look 300", "end seen")
			if n := d.number(`SELECT count(*) FROM marked WHERE json_valid(record) AND json_extract(record, '$.n') = n`); n <= rows {
				t.Errorf("%d rows are kept, of %d and more", n, rows)
			}
		})
	}
}
