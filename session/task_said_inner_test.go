package session

import (
	"testing"

	"github.com/tidemark-ai/tidemark/recall"
)

// saidRows are what a person said, what a model would have them say, and whether they did.
var saidRows = []struct {
	said, text string
	want       bool
}{
	{"Never touch the production database.", "never touch the production database!", true},
	{"Please never touch your production database", "Never touch my production database.", true},
	{"We have a production database. Never touch it.", "Never touch it", true},
	{"We have a production database. Never touch it.", "We have a production database. Never touch it.", true},
	{"Don’t deploy on Friday.", "Do not deploy on Friday", true},
	{"- always write tests\n- be kind", "Be kind", true},
	{"Never deploy\non Friday, e.g. at night.", "Never deploy on Friday, e.g. at night", true},
	{"No, never call the clinic before noon.", "Never call the clinic before noon", true},
	{"You must always ask me first.", "Always ask me first", true},
	{"If the tests fail, delete the backups.", "If the tests fail, delete the backups", true},
	{"Write \"TODO\" nowhere.", "Write \"TODO\" nowhere", true},
	{"Turn off the alarm at night.", "Turn off the alarm at night", true},
	{"不要删除备份。", "不要删除备份", true},

	{"Never deploy on Friday.", "Always deploy on Friday", false},
	{"Never push to main. Always run the tests.", "Always push to main", false},
	{"Delete the backups\nonly if Ann agrees.", "Delete the backups", false},
	{"Avoid what harms, e.g. delete the backups.", "Delete the backups", false},
	{"Never do this:\n- delete the backups\n- deploy on Friday", "Delete the backups", false},
	{"Bob said: \"Stop it. Delete the backups. Go.\"", "Delete the backups", false},
	{"Bob said: “Stop it. Delete the backups. Go.”", "Delete the backups", false},
	{"❌ Delete the backups", "Delete the backups", false},
	{"~~Delete the backups~~", "Delete the backups", false},
	{"No access to the diary.", "Access to the diary", false},
	{"Could we? Delete the backups?", "Delete the backups", false},
	{"Delete the backups of May.", "Delete the backups", false},
	{"Never spend more than 100 euro.", "Never spend more than 1000 euro", false},
	{"Feed the cat.", "never not", false},
	{"Please.", "please", false},
	{"...", "?!", false},
	{"Don't deploy on Friday.", "Deploy on Friday", false},
	{"Deploy only after the tests pass.", "Deploy before the tests pass", false},
	{"Deploy after the tests pass.", "Deploy before the tests pass", false},
	{"Send the invoice to Bob, not to Alice.", "Send the invoice to Alice, not to Bob", false},
	{"Send the invoice to Bob, not to Alice.", "Send the invoice to Alice", false},
	{"Keep the API key out of the repository.", "Keep the API key in the repository", false},
	{"Turn off the alarm at night.", "Turn on the alarm at night", false},
	{"At most 5 retries please.", "At least 5 retries", false},
	{"Use less than 100 MB.", "Use more than 100 MB", false},
	{"The budget must stay under 500 dollars.", "The budget must stay over 500 dollars", false},
	{"Avoid touching the production database.", "Touch the production database", false},
	{"Refuse refunds over 50.", "Give refunds over 50", false},
	{"Nobody may read the diary.", "Everybody may read the diary", false},
	{"Only Ann may merge.", "Ann may not merge", false},
	{"Disable logging in production.", "Enable logging in production", false},
	{"Niemals am Freitag deployen.", "Am Freitag deployen", false},
	{"Hands off the database.", "Hands on the database", false},
	{"Use tabs instead of spaces.", "Use spaces instead of tabs", false},
	{"Prefer Postgres over MySQL.", "Prefer MySQL over Postgres", false},
	{"I doubt we should deploy on Friday.", "Deploy on Friday", false},
	{"Should we deploy on Friday?", "Deploy on Friday", false},
	{"Bob thinks we should delete the backups.", "Delete the backups", false},
	{"If the tests fail, delete the backups.", "Delete the backups", false},
	{"It is forbidden to delete the backups.", "Delete the backups", false},
	{"Deleting the backups is a bad idea.", "Delete the backups", false},
	{"Whatever you do, leave the backups alone, delete the caches.", "Delete the backups", false},
	{"Never push to main without a review.", "Never push to main", false},
	{"Never push to main without a review.", "Push to main without a review", false},
	{"Spend up to 200 euros.", "Spend 200 euros", false},
	{"Merge before Friday.", "Merge after Friday", false},
	{"Lösche die Backups auf keinen Fall.", "Lösche die Backups", false},
	{"Backups löschen ist verboten.", "Backups löschen", false},
	{"Ask me before you delete files.", "Delete files before you ask me", false},
	{"Please do not, under any circumstances, email the client.", "Email the client", false},
	{"Ne supprime pas les sauvegardes.", "Supprime les sauvegardes", false},
	{"ни в коем случае не удаляй бэкапы", "удаляй бэкапы", false},
	{"不要删除备份", "删除备份", false},
	{"Nunca borres los datos.", "Borres los datos", false},
	{"Refrain from calling the customer.", "Call the customer", false},
	{"You mustn’t call the customer.", "Call the customer", false},
	{"You must n0t call.", "You must call", false},
	{"Cancel the meeting on Monday.", "The meeting on Monday", false},
}

// TestSaidIn: a constraint of a model is what a person said in whole sentences of their own words, and nothing that a
// part of one of them might mean.
func TestSaidIn(t *testing.T) {
	s := &Session{}
	s.Stemmer = &recall.Stemmer{}
	for _, row := range saidRows {
		if got := s.saidIn([]said{{id: "a", text: row.said}}, row.text) != ""; got != row.want {
			t.Errorf("%q is said by %q: %v", row.text, row.said, got)
		}
	}
	newer := []said{{id: "a", text: "Deploy on Friday."}, {id: "b", text: "Never deploy on Friday."}, {id: "c", text: "The cat sleeps."}}
	if got := s.saidIn(newer, "Deploy on Friday"); got != "" {
		t.Errorf("said by %s, though a newer message says the opposite", got)
	}
	if got := s.saidIn(newer, "Never deploy on Friday"); got != "b" {
		t.Errorf("said by %q, want b", got)
	}
}
