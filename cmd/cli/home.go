// Package cli is what commands share: the table of them with flags, help and docs, output as text or JSON, failures with advice,
// settings and home folder, a client of the API, and readers of recorded sessions. It has no command of its own.
package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/url"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
	"github.com/tidemark-ai/tidemark/setup"
)

// Names in the home folder and the bucket.
const (
	DocumentName = "tidemark.jsonc"
	BucketName   = "bucket"
	bucketConfig = "config.json"
	ServerName   = "server.json"
	AgentsName   = "agents"
	DatabaseName = "tidemark.db"
)

// HomeDir returns the home folder, as an absolute path.
func (m *Main) HomeDir() (string, error) {
	dir := m.Home
	if dir == "" {
		dir = m.Env("TIDEMARK_HOME")
	}
	if dir == "" {
		user := m.Env("HOME")
		if user == "" {
			return "", Advise(errors.New("no home folder: HOME is not set"), "set TIDEMARK_HOME, or give --home")
		}
		dir = filepath.Join(user, ".tidemark")
	}
	return filepath.Abs(dir)
}

// Database is where an agent's database lies.
func Database(home, agent string) string {
	return filepath.Join(home, AgentsName, agent, DatabaseName)
}

// Load reads the configuration: the document that is named, else the one in the home folder, else
// the one in the bucket, and the environment over it. path is empty when there is no document.
func (m *Main) Load(ctx context.Context, home string) (c *config.Config, path string, err error) {
	path = m.Config
	if path == "" {
		path = m.Env("TIDEMARK_CONFIG")
	}
	named := path != ""
	if !named {
		path = filepath.Join(home, DocumentName)
	}
	data, err := ReadFile(path)
	if errors.Is(err, os.ErrNotExist) && !named {
		return m.loadFromBucket(ctx, home)
	}
	if err != nil {
		return nil, path, Advise(fmt.Errorf("read configuration: %w", err), "check the path given by --config or TIDEMARK_CONFIG")
	}
	if c, err = config.Load(path, data, m.settingsEnviron()); err != nil {
		return nil, path, fmt.Errorf("configuration: %w", err)
	}
	return c, path, nil
}

// loadFromBucket reads config.json in the bucket that the environment names, if it is there.
func (m *Main) loadFromBucket(ctx context.Context, home string) (*config.Config, string, error) {
	c := config.Default()
	if err := c.Override(m.settingsEnviron()); err != nil {
		return nil, "", fmt.Errorf("configuration: %w", err)
	}
	data, err := readBucketConfig(ctx, home, c)
	if errors.Is(err, tidemark.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
		return c, "", nil
	}
	if err != nil {
		return nil, bucketConfig, fmt.Errorf("read %s in the bucket: %w", bucketConfig, err)
	}
	in, err := config.Parse(bucketConfig, data)
	if err != nil {
		return nil, bucketConfig, fmt.Errorf("configuration: %w", err)
	}
	for key, at := range in.Origin {
		if strings.HasPrefix(key, "storage.") {
			return nil, bucketConfig, fmt.Errorf("configuration: %s: %s: a document in the bucket cannot say where the bucket is; move it to %s or the environment: %w", at, key, DocumentName, tidemark.ErrInvalid)
		}
	}
	if err := in.Override(m.settingsEnviron()); err != nil {
		return nil, bucketConfig, fmt.Errorf("configuration: %w", err)
	}
	return in, bucketConfig, nil
}

func readBucketConfig(ctx context.Context, home string, c *config.Config) ([]byte, error) {
	if c.Storage.Bucket.Kind == "folder" { // reading must not make the folder
		return ReadFile(filepath.Join(BucketPath(home, c), bucketConfig))
	}
	blobs, err := OpenBucket(home, c)
	if err != nil {
		return nil, err
	}
	_, body, err := blobs.Get(ctx, bucketConfig)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, MaxDocument))
}

// MaxDocument is more than config.Parse takes, so that it says what is wrong.
const MaxDocument = 1 << 20

// ReadFile reads a small file.
func ReadFile(path string) ([]byte, error) { return ReadUpTo(path, MaxDocument) }

// ReadUpTo reads so many bytes of a file.
func ReadUpTo(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, most))
}

// BucketPath is the folder of a bucket that is one.
func BucketPath(home string, c *config.Config) string {
	if p := c.Storage.Bucket.Path; p != "" {
		return p
	}
	return filepath.Join(home, BucketName)
}

// OpenBucket opens the folder or the S3 bucket.
func OpenBucket(home string, c *config.Config) (tidemark.Blobs, error) {
	b := c.Storage.Bucket
	if b.Kind == "folder" {
		return native.NewDir(BucketPath(home, c))
	}
	blobs, err := native.NewS3(native.S3Config{Endpoint: b.Endpoint, Region: b.Region, Bucket: b.Bucket, Prefix: b.Prefix,
		PathStyle: b.PathStyle, Conditional: b.Conditional})
	if err != nil {
		return nil, Advise(err, "correct storage.bucket; `tidemark config check` reads the configuration")
	}
	return blobs, nil
}

// Logger writes to standard error. Commands other than serve are quiet unless they are asked.
func (m *Main) Logger(c *config.Config, quiet bool) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.Log.Level)); err != nil || quiet && c.Origin["log.level"] == "" {
		level = slog.LevelError
	}
	opt := &slog.HandlerOptions{Level: level}
	if c.Log.Format == "json" {
		return slog.New(slog.NewJSONHandler(m.Stderr, opt))
	}
	return slog.New(slog.NewTextHandler(m.Stderr, opt))
}

// ServerFile is what a process that keeps the store for long leaves in the home folder for others.
type ServerFile struct {
	URL  string `json:"url,omitempty"` // of a server
	PID  int    `json:"pid"`
	Talk bool   `json:"talk,omitempty"` // a chat, which serves nobody

	// Of a server: where requests of clients go that keep their history themselves.
	Messages string `json:"messages,omitempty"`
	Chat     string `json:"chat,omitempty"`
}

// WriteServerFile tells other commands who has this home.
func WriteServerFile(home string, s ServerFile) error {
	s.PID = os.Getpid()
	raw, err := json.MarshalIndent(s)
	if err != nil {
		return err
	}
	path := filepath.Join(home, ServerName)
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}

// ReadServerFile returns what a server left; the zero value when none did.
func ReadServerFile(home string) ServerFile {
	var s ServerFile
	raw, err := ReadFile(filepath.Join(home, ServerName))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return ServerFile{}
	}
	return s
}

// RemoveServerFile takes the file away if it is ours.
func RemoveServerFile(home string) {
	if ReadServerFile(home).PID == os.Getpid() {
		_ = os.Remove(filepath.Join(home, ServerName)) // a stale one does no harm
	}
}

// SettingsOf loads the configuration of the home folder.
func (m *Main) SettingsOf(ctx context.Context) (*config.Config, error) {
	home, err := m.HomeDir()
	if err != nil {
		return nil, err
	}
	c, _, err := m.Load(ctx, home)
	return c, err
}

// IsDoor reports a base URL that a proxy of ours gave its client.
func IsDoor(base string) bool {
	u, err := url.Parse(base)
	if err != nil || !doorPath.MatchString(u.Path) {
		return false
	}
	ip := net.ParseIP(u.Hostname())
	return ip != nil && ip.IsLoopback()
}

// settingsEnviron is the environment as the configuration reads it. The endpoint of a proxied client is a door of
// ours, and no setting of Tidemark's own model: its commands run beside that client and within it.
func (m *Main) settingsEnviron() []string {
	if IsDoor(m.Env(OpenAIBase)) {
		return Without(m.Environ, OpenAIBase)
	}
	return m.Environ
}

// Without is an environment that lacks a variable.
func Without(environ []string, name string) []string {
	var out []string
	for _, v := range environ {
		if n, _, _ := strings.Cut(v, "="); n != name {
			out = append(out, v)
		}
	}
	return out
}

// Bases are the upstreams of a configuration.
func Bases(c *config.Config) (messages, chat string) {
	a, b := setup.Upstreams(c)
	return cmp.Or(a.Base, VendorMessages), cmp.Or(b.Base, VendorChat)
}

// doorPath is how the path of a client's base URL looks behind a door of ours, see proxyDoor.path.
var doorPath = regexp.MustCompile(`^(/t/[0-9a-f]+)?/p/[A-Za-z0-9._-]+(/v1)?/?$`)

// Variables by which clients find their API.
const (
	AnthropicBase = "ANTHROPIC_BASE_URL"
	OpenAIBase    = "OPENAI_BASE_URL"
)

// Where the APIs are unless something says otherwise.
const (
	VendorMessages = "https://api.anthropic.com"
	VendorChat     = "https://api.openai.com/v1"
)

// Exit codes.
const (
	ExitOK     = 0
	ExitFailed = 1
	ExitUsage  = 2
)

// Main is the program with what it was given. Tests run it in their own process.
type Main struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Environ        []string
	Terminal       bool     // a person types and reads
	Progress       bool     // a person sees Stderr
	Args           []string // of the command that runs

	// What the flags of every command say.
	Home, Config, Server string
	JSON                 bool

	Out, Err *Output        // Stdout and Stderr
	Cmd      *cobra.Command // that runs
	entered  bool           // the flags were right, and the command has begun
}

// OfProcess is the program on what this process was given.
func OfProcess() *Main {
	return &Main{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Environ: os.Environ(),
		Terminal: isatty.IsTerminal(os.Stdout.Fd()) && isatty.IsTerminal(os.Stdin.Fd()),
		Progress: isatty.IsTerminal(os.Stderr.Fd()),
	}
}

// Run parses the arguments, carries out the command of the table and returns the exit code. SIGTERM ends its context.
func (m *Main) Run(ctx context.Context, t Table, args []string) int {
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM)
	defer stop()
	m.Out, m.Err = &Output{W: m.Stdout}, &Output{W: m.Stderr}
	root := t.root(m)
	root.SetArgs(args)
	root.SetIn(m.Stdin)
	root.SetOut(m.Out)
	root.SetErr(m.Err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return flagError(err) })
	root.InitDefaultHelpCmd()
	if help, _, err := root.Find([]string{"help"}); err == nil {
		help.Args = func(_ *cobra.Command, of []string) error {
			_, _, err := root.Find(of)
			return err
		}
	}
	cmd, err := root.ExecuteContextC(ctx)
	if err == nil {
		err = m.Out.failure()
	}
	return m.report(cmd, err)
}

// Changed reports whether a flag was given.
func (m *Main) Changed(flag string) bool { return m.Cmd.Flags().Changed(flag) }

// Path is the command that runs, with the name of the program.
func (m *Main) Path() string { return m.Cmd.CommandPath() }

// Env returns an environment variable.
func (m *Main) Env(name string) string {
	for i := len(m.Environ) - 1; i >= 0; i-- {
		if n, v, ok := strings.Cut(m.Environ[i], "="); ok && n == name {
			return v
		}
	}
	return ""
}
