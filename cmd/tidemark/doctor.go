package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/agent"
	"github.com/tidemark-ai/tidemark/cmd/cli"
	"github.com/tidemark-ai/tidemark/cmd/node"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/provider"
	"github.com/tidemark-ai/tidemark/room/selfcheck"
	"github.com/tidemark-ai/tidemark/room/vectors"
	"github.com/tidemark-ai/tidemark/session"
	"github.com/tidemark-ai/tidemark/setup"
)

// Verdicts of the doctor.
const (
	fine = "ok"
	odd  = "warn"
	bad  = "fail"
)

// finding is one line of the doctor.
type finding struct {
	Check   string `json:"check"`
	Verdict string `json:"verdict"` // ok, warn, fail
	Text    string `json:"text"`
	Fix     string `json:"fix,omitempty"`
}

// doctor runs the checks in order and prints each as it is done.
type doctor struct {
	m        *cli.Main
	home     string
	cfg      *config.Config
	asked    bool              // the server that has this home was, and said how its tools are
	windowed bool              // and how much of the window is used
	learned  []tidemark.Window // by the conversations that are here
	found    []finding
}

func doctorRun(ctx context.Context, m *cli.Main) error {
	base, err := m.Named()
	if err != nil {
		return err
	}
	d := &doctor{m: m}
	if base != "" {
		d.server(ctx, base)
	} else if err := d.files(ctx); err != nil {
		return err
	}
	failed := slices.ContainsFunc(d.found, func(f finding) bool { return f.Verdict == bad })
	if m.JSON {
		err = m.PrintJSON(map[string]any{"ok": !failed, "checks": d.found})
	}
	if failed {
		err = errors.Join(err, cli.ErrTold)
	}
	return err
}

// files checks what a command on this machine stands on.
func (d *doctor) files(ctx context.Context) (err error) {
	if d.home, err = d.m.HomeDir(); err != nil {
		return err
	}
	d.config(ctx)
	d.folder()
	d.modules()
	if d.cfg != nil {
		d.databases(ctx)
		d.toolServers()
		d.bucket(ctx)
		d.provider(ctx)
		d.embedder(ctx)
		d.token()
		d.clock()
	}
	return nil
}

func (d *doctor) add(check, verdict, fix, format string, args ...any) {
	f := finding{check, verdict, fmt.Sprintf(format, args...), fix}
	d.found = append(d.found, f)
	if d.m.JSON {
		return
	}
	d.m.Out.Printf("%-4s  %-9s  %s\n", f.Verdict, f.Check, strings.ReplaceAll(f.Text, "\n", "\n                 "))
	if f.Fix != "" {
		d.m.Out.Printf("%17s→ %s\n", "", f.Fix)
	}
}

func (d *doctor) config(ctx context.Context) {
	cfg, path, err := d.m.Load(ctx, d.home)
	if err != nil {
		d.add("config", bad, "correct what is named; docs/config.md has every key", "%s", err)
		return
	}
	d.cfg = cfg
	if path == "" {
		path = "no document, all defaults"
	}
	d.add("config", fine, "", "%s", path)
	resolved := *cfg // what is told of the model comes with its own check
	resolved.Resolve()
	for _, w := range resolved.Warnings {
		d.add("config", odd, warningFix(w), "%s", w)
	}
	d.add("channels", fine, "", "%s", setup.ChannelLine(cfg))
	for _, g := range setup.ChannelGaps(cfg) {
		verdict := bad
		if g.Odd {
			verdict = odd
		}
		d.add("channels", verdict, node.GapFix(g), "%s %s", g.Setting, g.Message)
	}
}

// warningFix says what to do about a warning, empty for one that says it itself.
func warningFix(w string) string {
	if strings.Contains(w, "is no setting") {
		return "unset it, or correct its name"
	}
	return ""
}

// folder writes as much as a long message takes: a full disk still takes an empty file.
func (d *doctor) folder() {
	const private = 0o700
	const most = 1 << 20
	err := os.MkdirAll(d.home, private)
	if err == nil {
		var f *os.File
		if f, err = os.CreateTemp(d.home, ".doctor-*"); err == nil {
			_, err = f.Write(make([]byte, most))
			err = errors.Join(cmp.Or(err, f.Sync()), f.Close(), os.Remove(f.Name()))
		}
	}
	switch {
	case native.Full(err):
		d.add("home", bad, "free some space on its disk, or set TIDEMARK_HOME to another", "%s", err)
	case err != nil:
		d.add("home", bad, "make the folder writable, or set TIDEMARK_HOME to another", "%s", err)
	default:
		d.add("home", fine, "", "%s can be written", d.home)
	}
}

// databases reads every database to its end. Those that a server holds are the server's.
func (d *doctor) databases(ctx context.Context) {
	found, err := filepath.Glob(cli.Database(d.home, "*"))
	if err != nil || len(found) == 0 {
		d.add("database", fine, "", "none yet; the first command makes it")
		return
	}
	for _, path := range found {
		db, err := native.OpenDB(path)
		var locked *native.LockedError
		if errors.As(err, &locked) {
			d.held(ctx, locked)
			return
		}
		if err == nil {
			err = errors.Join(db.Check(ctx), agent.Migrate(ctx, db))
			if err == nil {
				_, err = session.Migrate(ctx, db)
			}
			if err == nil {
				err = d.unsound(ctx, db)
			}
			if err == nil {
				err = d.vectors(ctx, db)
			}
			if err == nil {
				var learned []tidemark.Window
				learned, err = agent.Windows(ctx, db, time.Now())
				d.learned = append(d.learned, learned...)
			}
			err = errors.Join(err, db.Close())
		}
		if newer := (*host.NewerError)(nil); errors.As(err, &newer) {
			d.add("database", bad, "install the newer tidemark", "%s: %s", path, err)
			continue
		}
		if err != nil {
			d.add("database", bad, "put back a copy of the file; archives in the bucket can be restored with `tidemark archive restore`", "%s", err)
			continue
		}
		d.add("database", fine, "", "%s is whole", path)
	}
}

// held asks the server that has the store.
func (d *doctor) held(ctx context.Context, locked *native.LockedError) {
	s := cli.ReadServerFile(d.home)
	if s.PID != locked.PID || s.URL == "" {
		d.add("database", odd, "run the doctor again when that command has ended", "in use by process %d, not read", locked.PID)
		return
	}
	h, err := serverAt(d.m, s.URL).health(ctx)
	if refused := (*cli.APIError)(nil); errors.As(err, &refused) && refused.Status == http.StatusUnauthorized {
		d.add("token", bad, refused.Fix(), "the server at %s has the store: %s", s.URL, err)
		return
	}
	if err != nil {
		d.add("server", bad, fmt.Sprintf("stop process %d and start the server again", s.PID), "the server at %s has the store and does not answer: %s", s.URL, err)
		return
	}
	d.add("server", fine, "", "%s has the store and answers; stop it to have the database read too", s.URL)
	d.problems(h)
	d.servedWindow(ctx, serverAt(d.m, s.URL))
	d.asked = d.servedTools(ctx, serverAt(d.m, s.URL))
}

// bucket writes, reads and removes objects where agents keep theirs, and tries the conditions that archives rest on.
func (d *doctor) bucket(ctx context.Context) {
	const fix = "check storage.bucket: path and permissions of a folder; endpoint, name and AWS_ACCESS_KEY_ID of S3"
	blobs, err := cli.OpenBucket(d.home, d.cfg)
	if err != nil {
		d.add("bucket", bad, fix, "%s", err)
		return
	}
	if c, ok := blobs.(io.Closer); ok {
		defer c.Close()
	}
	where := "folder " + cli.BucketPath(d.home, d.cfg)
	if b := d.cfg.Storage.Bucket; b.Kind == "s3" {
		where = "s3 bucket " + b.Bucket
	}
	id := tidemark.NewID(time.Now())
	err = tryBucket(ctx, blobs, "doctor/"+id)
	if err == nil { // a folder or a policy may allow the one and not the other
		err = tryBucket(ctx, blobs, cli.AgentsName+"/"+node.MainAgent+"/doctor/"+id)
	}
	if errors.Is(err, errCondition) {
		d.add("bucket", bad, `set storage.bucket.conditional to "none" and run one process`, "%s: %s", where, err)
	} else if err != nil {
		d.add("bucket", bad, fix, "%s: %s", where, err)
	} else {
		d.add("bucket", fine, "", "%s: write, read, condition and delete work", where)
		d.skillsIn(ctx, blobs)
	}
}

var errCondition = errors.New("the store ignores If-None-Match")

func tryBucket(ctx context.Context, blobs tidemark.Blobs, key string) error {
	text := []byte("written by tidemark doctor\n")
	put := func() error {
		_, err := blobs.Put(ctx, key, bytes.NewReader(text), int64(len(text)), tidemark.PutOptions{IfAbsent: true, ContentType: "text/plain"})
		return err
	}
	if err := put(); err != nil {
		return fmt.Errorf("write %s: %w", key, err)
	}
	err := put()
	switch {
	case err == nil:
		err = errCondition
	case errors.Is(err, tidemark.ErrConflict):
		err = nil
	}
	if err == nil {
		var body io.ReadCloser
		if _, body, err = blobs.Get(ctx, key); err == nil {
			var got []byte
			got, err = io.ReadAll(io.LimitReader(body, 1<<10))
			if err = errors.Join(err, body.Close()); err == nil && !bytes.Equal(got, text) {
				err = errors.New("read: other bytes than were written")
			}
		}
	}
	return errors.Join(err, blobs.Delete(ctx, key))
}

// providerTimeout bounds the question for the list of models.
const providerTimeout = 15 * time.Second

// provider asks the model API for its models.
func (d *doctor) provider(ctx context.Context) {
	reason := d.cfg.Resolve()
	model := d.cfg.Model
	if model.Provider == config.Offline {
		d.add("model", fine, "", "built-in offline model (%s)", reason)
		return
	}
	if model.Provider == config.WorkersAI {
		d.add("model", bad, provider.WorkersAIByAPI, provider.NoWorkersAI)
		return
	}
	if name := d.cfg.KeyMissing(); name != "" {
		d.add("model", bad, "set "+name+" in the environment", "%s %s: %s is not set", model.Provider, model.ID, name)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	models := setup.Models(d.cfg, native.Transport())
	l, err := models.List(ctx)
	status, names := l.Status, l.Names
	who := model.Provider + " " + model.ID
	switch {
	case err != nil:
		d.add("model", bad, "check the network, HTTPS_PROXY and model.baseUrl", "%s cannot be reached: %s", who, err)
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		d.add("model", bad, "set a valid key in the environment", "%s refuses the key (%d)", who, status)
	case status != http.StatusOK:
		d.add("model", odd, "if turns fail, check model.baseUrl", "%s answers, but lists no models (%d)", who, status)
	case len(names) > 0 && !slices.Contains(names, model.ID):
		d.add("model", odd, "if turns fail, set model.id to one of: "+cli.OneLine(strings.Join(names, ", "), 200), "%s does not list this model", who)
	default:
		d.add("model", fine, "", "%s answers and takes the key (%s)", who, reason)
	}
	if err == nil && !d.windowed {
		d.window(ctx, models)
	}
	if !l.Date.IsZero() {
		d.skew("provider", time.Since(l.Date))
	}
}

// skew reports a clock that differs from another machine's, and tells of it.
func (d *doctor) skew(whose string, by time.Duration) bool {
	const most = 5 * time.Minute
	if by.Abs() <= most {
		return false
	}
	d.add("clock", odd, "set the machine's clock", "the clock differs from the %s's by %s", whose, by.Round(time.Second))
	return true
}

// window says how much of the model's window is used, and why.
func (d *doctor) window(ctx context.Context, models *provider.Models) {
	var told tidemark.Window // of one that does not answer nothing
	name := models.Place() + " " + d.cfg.Model.ID
	if i := slices.IndexFunc(d.learned, func(w tidemark.Window) bool { return w.Model == name }); i >= 0 {
		told = d.learned[i]
	} else if w, err := models.Window(ctx, d.cfg.Model.ID); err == nil {
		told = w
	}
	w := tidemark.Narrow(d.cfg.Model.ContextWindow, told, models.Known(d.cfg.Model.ID))
	d.add("window", fine, "", "%d tokens: %s", w.Tokens, w.From)
}

func (d *doctor) token() {
	listen := d.cfg.Server.Listen
	var own *cli.Fixed
	if err := mayListen(listen, d.cfg); errors.As(err, &own) {
		d.add("token", bad, own.Fix, "%s", err)
		return
	}
	if d.cfg.Secrets.Token == "" {
		host, _, _ := net.SplitHostPort(listen)
		d.add("token", fine, "", "none; a server at %s answers this machine only", host)
		return
	}
	d.add("token", fine, "", "set (TIDEMARK_TOKEN)")
}

func (d *doctor) clock() {
	zone, err := d.cfg.Agent(node.MainAgent).Zone()
	if err != nil {
		d.add("clock", bad, "set userTimezone to an IANA name", "%s", err)
		return
	}
	now := time.Now()
	if built := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC); now.Before(built) {
		d.add("clock", bad, "set the machine's clock", "the clock says %s", now.Format(time.DateOnly))
		return
	}
	d.add("clock", fine, "", "%s in %s; memory files and daily resets go by it (userTimezone)", now.In(zone).Format("2006-01-02 15:04"), zone)
}

// unsound tells of compactions that their self-check took back.
func (d *doctor) unsound(ctx context.Context, db tidemark.DB) error {
	const most, old = 3, 30 * 24 * time.Hour
	list, err := selfcheck.Unsounds(ctx, db, most)
	if err != nil {
		return err
	}
	for _, u := range list {
		if time.Since(u.At) < old {
			d.add("self-check", odd, "the messages are in view as before; put back what is missing, then `tidemark compact "+cli.PlainKey(string(u.Key))+"`",
				"a compaction of %s was taken back %s: %s", cli.PlainKey(string(u.Key)), cli.When(u.At), cli.Safe(u.Text))
		}
	}
	return nil
}

// vectors tells whether messages have them, where they are asked for.
func (d *doctor) vectors(ctx context.Context, db tidemark.DB) error {
	made, failing, err := vectors.State(ctx, db)
	switch {
	case err != nil || made == 0 && failing == 0:
		return err
	case failing > 0:
		d.add("vectors", odd, "look for \"vectors put off\" in the log of the server: the endpoint of recall.embeddings failed; it is asked again",
			"%d messages have one; %s waits for the endpoint", made, cli.Plural(failing, "conversation"))
	default:
		d.add("vectors", fine, "", "%d messages have one", made)
	}
	return nil
}

// embedder asks the endpoint of recall.embeddings for one vector: what was made before says nothing of it.
func (d *doctor) embedder(ctx context.Context) {
	if d.cfg.Recall.Embeddings == config.WorkersAI && d.cfg.Recall.EmbeddingURL == "" {
		return // a warning of the configuration has told
	}
	by := setup.Embedder(d.cfg, native.NewRuntime(nil), native.Transport())
	if by == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, providerTimeout)
	defer cancel()
	if _, err := by.Embed(ctx, []string{"tidemark"}); err != nil {
		d.add("vectors", odd, "check recall.embeddingUrl, its key and recall.embeddingModel; until then words alone find", "%s makes no vector: %s", cli.Safe(by.Name()), cli.Safe(err.Error()))
		return
	}
	d.add("vectors", fine, "", "%s makes them", cli.Safe(by.Name()))
}

// checks tells what a server counted of self-checks and of vectors.
func (d *doctor) checks(ctx context.Context, c *client) {
	var text bytes.Buffer
	if err := c.Raw(ctx, "/metrics", &text); err != nil {
		return // it was told above what it answers
	}
	if failed := metric(text.Bytes(), `tidemark_vectors_total{result="failed"}`); failed > 0 {
		d.add("vectors", odd, "look for \"vectors put off\" in the log of the server: the endpoint of recall.embeddings failed; it is asked again",
			"%d texts got none since the server started; words alone find them", failed)
	}
	made, broken := metric(text.Bytes(), "tidemark_selfcheck_checks_total"), metric(text.Bytes(), "tidemark_selfcheck_violations_total")
	switch {
	case broken > 0:
		d.add("self-check", odd, "look for selfcheck events: `tidemark log KEY`, and in the log of the server",
			"%d of %d checks behind compactions failed since the server started; these compactions were taken back", broken, made)
	case made > 0:
		d.add("self-check", fine, "", "%d checks behind compactions since the server started, none failed", made)
	}
}

// metric reads a counter, with its labels in braces when it has some, from the text of /metrics, 0 when it is not there.
func metric(text []byte, name string) int64 {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			if f, err := strconv.ParseFloat(strings.TrimSpace(value), 64); err == nil {
				return int64(f)
			}
		}
	}
	return 0
}
