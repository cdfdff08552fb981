package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tailscale/hujson"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/approval"
	"github.com/tidemark-ai/tidemark/internal/clip"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Bounds of a document.
const (
	maxDocument = 256 << 10
	maxProblems = 20
)

// Default returns the configuration of an empty document.
func Default() *Config {
	c := &Config{Origin: map[string]string{}}
	for _, k := range Keys() {
		if k.Default == "" {
			continue
		}
		v, err := json.DecodeAny([]byte(k.Default))
		if err == nil {
			err = k.set(c, "", v)
		}
		if err != nil {
			panic(fmt.Sprintf("config: default of %s: %v", k.Name, err)) // a broken table; a test reads it
		}
	}
	return c
}

// Parse reads a document on top of the defaults. file is its name, for messages.
//
// # Errors
//
// An *Error with every mistake: a key that is not known, with the nearest one that is; a value of
// the wrong type or out of bounds; a key set twice; a secret.
func Parse(file string, data []byte) (*Config, error) {
	c := Default()
	d := decoder{c: c, file: file, data: data, keys: Keys()}
	d.document()
	if len(d.problems) == 0 {
		d.together()
	}
	if len(d.problems) > 0 {
		return nil, &Error{Problems: d.problems}
	}
	return c, nil
}

// Load is [Parse] with the environment over it, as [Config.Override] takes it. Mistakes in the document
// come together with those in variables; what keys say about each other is asked when there are none.
func Load(file string, data []byte, environ []string) (*Config, error) {
	c, err := Parse(file, data)
	var mistakes *Error
	if errors.As(err, &mistakes) {
		return nil, &Error{Problems: append(mistakes.Problems, Default().override(environ)...)}
	}
	if err == nil {
		err = c.Override(environ)
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// decoder walks a document.
type decoder struct {
	c        *Config
	file     string
	data     []byte
	keys     []Key
	problems []Problem
}

func (d *decoder) add(offset int, key, format string, args ...any) {
	if len(d.problems) < maxProblems {
		d.problems = append(d.problems, Problem{Where: d.where(offset), Key: key, Text: fmt.Sprintf(format, args...)})
	}
}

func (d *decoder) where(offset int) string {
	before := d.data[:min(offset, len(d.data))]
	return d.file + ":" + strconv.Itoa(1+bytes.Count(before, []byte("\n"))) + ":" + strconv.Itoa(len(before)-bytes.LastIndexByte(before, '\n'))
}

func (d *decoder) document() {
	if len(d.data) > maxDocument {
		d.problems = append(d.problems, Problem{Where: d.file, Text: fmt.Sprintf("%d bytes, at most %d", len(d.data), maxDocument)})
		return
	}
	if len(bytes.TrimSpace(d.data)) == 0 {
		return
	}
	v, err := hujson.Parse(d.data)
	if err != nil {
		text := strings.TrimPrefix(err.Error(), "hujson: ")
		where := d.file
		if at, rest, ok := strings.Cut(text, ": "); ok && strings.HasPrefix(at, "line ") {
			where += ":" + strings.ReplaceAll(strings.TrimPrefix(at, "line "), ", column ", ":")
			text = rest
		}
		d.problems = append(d.problems, Problem{Where: where, Text: "no JSON with comments: " + text})
		return
	}
	d.value(v, "", "", "")
}

// value walks what stands at a path. pattern is the path as the table writes it, with star for what
// is a name of one's own in it.
func (d *decoder) value(v hujson.Value, path, pattern, star string) {
	if i := slices.IndexFunc(d.keys, func(k Key) bool { return k.Name == pattern }); i >= 0 {
		d.leaf(d.keys[i], v, path, star)
		return
	}
	object, isObject := v.Value.(*hujson.Object)
	list, isList := v.Value.(*hujson.Array)
	switch {
	case v.Value.Kind() == 'n':
	case isList && d.prefix(pattern+".*") && pattern == "agents.list":
		if len(list.Elements) > maxNamed {
			d.add(v.StartOffset, path, "%d elements, at most %d", len(list.Elements), maxNamed)
			return
		}
		for i, e := range list.Elements {
			at := strconv.Itoa(i)
			agentAt(d.c, at)
			d.value(e, path+"["+at+"]", pattern+".*", at)
		}
	case isObject && pattern != "agents.list":
		d.members(object, path, pattern, star)
	case pattern == "":
		d.add(v.StartOffset, "", "found %s, want an object { … }", found(v))
	case pattern == "agents.list":
		d.add(v.StartOffset, path, "found %s, want a list of objects [{ … }]", found(v))
	case d.prefix(pattern + ".*"):
		d.add(v.StartOffset, path, "found %s, want an object { … } with names of your own", found(v))
	default:
		d.add(v.StartOffset, path, "found %s, want an object { … } with %s", found(v), strings.Join(d.children(pattern), ", "))
	}
}

// members walks an object.
func (d *decoder) members(o *hujson.Object, path, pattern, star string) {
	seen := map[string]int{}
	for _, m := range o.Members {
		name, at := literal(m.Name), m.Name.StartOffset
		full := strings.TrimPrefix(path+"."+name, ".")
		if first, twice := seen[name]; twice {
			d.add(at, full, "set twice, first at %s; remove one", d.where(first))
			continue
		}
		seen[name] = at
		next := strings.TrimPrefix(pattern+"."+name, ".")
		switch {
		case next == "$schema":
		case d.prefix(next):
			d.value(m.Value, full, next, star)
		case d.prefix(pattern+".*") && pattern != "":
			d.named(m, full, pattern, name, len(seen))
		default:
			d.unknown(at, full, pattern, name)
		}
	}
}

// named walks a member whose name is one's own.
func (d *decoder) named(m hujson.ObjectMember, full, pattern, name string, count int) {
	if count > maxNamed || len(name) > maxNamed || name == "" {
		d.add(m.Name.StartOffset, full, "at most %d names of 1 to %d bytes", maxNamed, maxNamed)
		return
	}
	d.value(m.Value, full, pattern+".*", name)
}

// prefix reports whether the table has a key that is, or lies below, a path.
func (d *decoder) prefix(pattern string) bool {
	return slices.ContainsFunc(d.keys, func(k Key) bool { return k.Name == pattern || strings.HasPrefix(k.Name, pattern+".") })
}

// children names what may stand below a path.
func (d *decoder) children(pattern string) []string {
	var names []string
	for _, k := range d.keys {
		rest, ok := strings.CutPrefix(k.Name, pattern+".")
		if pattern == "" {
			rest, ok = k.Name, true
		}
		name, _, _ := strings.Cut(rest, ".")
		if ok && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// unknown reports a key that the table does not have: a secret with the variable that takes it, any
// other with what was probably meant.
func (d *decoder) unknown(offset int, full, pattern, name string) {
	if variable := secretVariable(full); variable != "" {
		if n := len(d.problems); n < maxProblems {
			d.add(offset, full, "a secret does not belong in the document")
			d.problems[n].Secret = variable
		}
		return
	}
	best := nearest(name, d.children(pattern))
	if best != "" {
		best = strings.TrimPrefix(pattern+"."+best, ".")
	} else {
		names := make([]string, len(d.keys))
		for i, k := range d.keys {
			names[i] = k.Name
		}
		best = cmp.Or(nearest(full, names), sameEnding(name, names))
	}
	switch {
	case best != "":
		d.add(offset, full, "unknown key; did you mean %q?", best)
	case pattern == "":
		d.add(offset, full, "unknown key; `tidemark config schema` lists all")
	default:
		d.add(offset, full, "unknown key; %s has %s", pattern, strings.Join(d.children(pattern), ", "))
	}
}

// leaf sets a key.
func (d *decoder) leaf(k Key, v hujson.Value, path, star string) {
	if v.Value.Kind() == 'n' {
		return
	}
	std := v.Clone()
	std.Minimize()
	value, err := json.DecodeAny(std.Pack())
	if err == nil {
		err = k.set(d.c, star, value)
	}
	if err != nil {
		what := found(v)
		if v.Value.Kind() == '"' {
			what = "the string " + strconv.Quote(clip.To(k.shown(literal(v)), 60))
		}
		d.add(v.StartOffset, path, "found %s, want %s", what, k.want()+fix(err))
		return
	}
	d.c.Origin[path] = d.where(v.StartOffset)
}

// together checks what keys say about each other.
func (d *decoder) together() {
	at := func(key string) string { return cmp.Or(d.c.Origin[key], d.file) }
	seen := map[string]bool{}
	for i, a := range d.c.Agents {
		key := fmt.Sprintf("agents.list[%d].id", i)
		switch {
		case a.ID == "":
			d.problems = append(d.problems, Problem{Where: d.file, Key: key, Text: "missing; every agent needs an id"})
		case seen[a.ID]:
			d.problems = append(d.problems, Problem{Where: at(key), Key: key, Text: fmt.Sprintf("%q is there twice; an agent has one entry", a.ID)})
		}
		seen[a.ID] = true
	}
	d.problems = append(d.problems, d.c.check(at)...)
}

// check reports what keys say about each other, wherever they were set.
func (c *Config) check(at func(key string) string) []Problem {
	var out []Problem
	b := c.Storage.Bucket
	if b.Kind == "s3" && b.Bucket == "" {
		out = append(out, Problem{Where: at("storage.bucket.kind"), Key: "storage.bucket.bucket", Text: `missing; storage.bucket.kind "s3" needs the name of the bucket`})
	}
	if b.Kind == "folder" && b.Bucket+b.Endpoint != "" {
		out = append(out, Problem{Where: at("storage.bucket.bucket"), Key: "storage.bucket.kind", Text: `is "folder", and a bucket or an endpoint is set; set it to "s3", or take these away`})
	}
	if c.Model.Provider == OpenAI && c.Model.BaseURL != "" && c.Model.ID == "" {
		out = append(out, c.modelMissing(at("model.baseUrl")))
	}
	if c.Model.Provider == WorkersAI && c.Model.BaseURL != "" {
		out = append(out, Problem{Where: at("model.baseUrl"), Key: "model.baseUrl", Text: `is set, and workers-ai is a binding without an endpoint; take it away, or set model.provider to "openai"`})
	}
	if _, err := c.Compaction.Paging.Rows(); err != nil {
		out = append(out, Problem{Where: at("compaction.paging.tools"), Key: "compaction.paging.tools", Text: err.Error()})
	}
	if _, err := c.Compaction.Episodes.Levels(); err != nil {
		out = append(out, Problem{Where: at("compaction.episodes.tools"), Key: "compaction.episodes.tools", Text: err.Error()})
	}
	return append(out, c.checkTools(at)...)
}

// modelMissing is an endpoint of one's own, which was set where it says, without a model.
func (c *Config) modelMissing(where string) Problem {
	p := Problem{Where: where, Key: "model.id", Text: "missing; model.baseUrl is set, and an endpoint of one's own needs the name of a model"}
	if variable := strings.HasSuffix(where, "_BASE_URL") || strings.HasSuffix(where, "_BASEURL"); variable {
		p.Where, p.Text = "TIDEMARK_MODEL_ID", "missing; "+where+" is set, and an endpoint of one's own needs the name of a model"
	}
	return p
}

// set gives a key a decoded value; an error says that the value does not fit, and [fix] what it says more.
func (k Key) set(c *Config, star string, v any) error {
	misfit := errors.New("misfit")
	ptr, store := k.at(c, star)
	defer store()
	switch p := ptr.(type) {
	case *bool:
		b, ok := v.(bool)
		if !ok {
			return misfit
		}
		*p = b
	case *int, **int, *tidemark.Tokens:
		n, ok := v.(json.Number)
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if !ok || err != nil || i < k.Min || i > k.Max {
			return misfit
		}
		setNumber(p, i)
	case *string:
		if k.Type == Budget {
			s, err := budget(v)
			if err != nil {
				return err
			}
			*p = s
			break
		}
		s, ok := v.(string)
		if !ok || !k.fits(s) {
			return misfit
		}
		*p = s
	case *[]string:
		list, ok := k.list(v)
		if elements, _ := v.([]any); !ok && k.Type == Choices && slices.Contains(elements, any("trim")) {
			return errTrim
		}
		if !ok {
			return misfit
		}
		*p = list
	case *[]approval.Rule:
		list, err := rules(v)
		if err != nil {
			return err
		}
		*p = list
	case *[]int:
		list, ok := percents(v)
		if !ok {
			return misfit
		}
		*p = list
	}
	return nil
}

func setNumber(ptr any, i int64) {
	switch p := ptr.(type) {
	case *int:
		*p = int(i)
	case **int:
		n := int(i)
		*p = &n
	case *tidemark.Tokens:
		*p = tidemark.Tokens(i)
	}
}

// list returns a list of allowed values, none twice; of choices there is at least one.
func (k Key) list(v any) ([]string, bool) {
	elements, ok := v.([]any)
	if !ok || len(elements) == 0 && k.Type == Choices || len(elements) > maxNamed {
		return nil, false
	}
	out := []string{}
	for _, e := range elements {
		s, ok := e.(string)
		fits := slices.Contains(strings.Fields(k.Values), s) || k.Type == Origins && isOrigin(s) || k.Type == Names && isName(s)
		fits = fits || k.Type == Globs && approval.IsGlob(s) || k.Type == Texts && len(s) <= maxArgument && !strings.ContainsRune(s, 0)
		if !ok || !fits || k.Type != Texts && slices.Contains(out, s) {
			return nil, false
		}
		out = append(out, s)
	}
	return out, true
}

// isName reports whether a text may be somebody's number or id on a platform.
func isName(s string) bool {
	const most = 256
	return s != "" && len(s) <= most && s == strings.TrimSpace(s)
}

// isOrigin reports whether a text is an origin as browsers send it: lower case, without the port that
// the scheme has anyway (https://html.spec.whatwg.org/multipage/browsers.html#ascii-serialisation-of-an-origin).
func isOrigin(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || s != strings.ToLower(u.Scheme+"://"+u.Host) {
		return false
	}
	return u.Scheme+":"+u.Port() != "http:80" && u.Scheme+":"+u.Port() != "https:443"
}

// fits reports whether a string is what a key takes.
func (k Key) fits(s string) bool {
	if len(s) > maxText || strings.ContainsRune(s, 0) {
		return false
	}
	switch k.Type {
	case Choice:
		return slices.Contains(strings.Fields(k.Values), s)
	case Zone:
		_, err := time.LoadLocation(s)
		return err == nil && s != "" && s != "Local"
	case URL:
		u, err := url.Parse(s)
		return s == "" || err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
	case Address:
		_, port, err := net.SplitHostPort(s)
		n, bad := strconv.Atoi(port)
		return err == nil && bad == nil && n >= 0 && n < 1<<16
	case Name:
		return s != "" && len(s) <= 64 && !strings.ContainsFunc(s, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '-' && r != '_'
		})
	}
	return true
}

// shown is a value for a message: without the user and password of a URL. What url.Redacted leaves out is found here
// in a URL that cannot be parsed, too, and a key in place of the user.
func (k Key) shown(s string) string {
	at := strings.LastIndexByte(s, '@')
	if k.Type != URL || at < 0 {
		return s
	}
	from := 0
	if i := strings.Index(s[:at], "//"); i >= 0 {
		from = i + len("//")
	}
	return s[:from] + "xxxxx" + s[at:]
}

// literal returns the text of a string.
func literal(v hujson.Value) string {
	if l, ok := v.Value.(hujson.Literal); ok {
		return l.String()
	}
	return ""
}

// found describes a value for a message. A long one is cut.
func found(v hujson.Value) string {
	switch v.Value.Kind() {
	case '{':
		return "an object"
	case '[':
		v = v.Clone()
		v.Minimize()
		return "the list " + clip.To(string(v.Pack()), 60)
	case '"':
		return "the string " + strconv.Quote(clip.To(literal(v), 60))
	case '0':
		return "the number " + clip.To(literal(v), 60)
	}
	return literal(v)
}
