package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/tidemark-ai/tidemark"
	"github.com/tidemark-ai/tidemark/config"
	"github.com/tidemark-ai/tidemark/host/native"
	"github.com/tidemark-ai/tidemark/internal/json"
)

// Names in the home folder and the bucket.
const (
	documentName = "tidemark.jsonc"
	bucketName   = "bucket"
	bucketConfig = "config.json"
	serverName   = "server.json"
	agentsName   = "agents"
	databaseName = "tidemark.db"
)

// homeDir returns the home folder, as an absolute path.
func (m *Main) homeDir() (string, error) {
	dir := m.home
	if dir == "" {
		dir = m.env("TIDEMARK_HOME")
	}
	if dir == "" {
		user := m.env("HOME")
		if user == "" {
			return "", &fixed{errors.New("no home folder: HOME is not set"), "set TIDEMARK_HOME, or give --home"}
		}
		dir = filepath.Join(user, ".tidemark")
	}
	return filepath.Abs(dir)
}

// database is where an agent's database lies.
func database(home, agent string) string {
	return filepath.Join(home, agentsName, agent, databaseName)
}

// load reads the configuration: the document that is named, else the one in the home folder, else
// the one in the bucket, and the environment over it. path is empty when there is no document.
func (m *Main) load(ctx context.Context, home string) (c *config.Config, path string, err error) {
	path = m.config
	if path == "" {
		path = m.env("TIDEMARK_CONFIG")
	}
	named := path != ""
	if !named {
		path = filepath.Join(home, documentName)
	}
	data, err := readFile(path)
	if errors.Is(err, os.ErrNotExist) && !named {
		return m.loadFromBucket(ctx, home)
	}
	if err != nil {
		return nil, path, &fixed{fmt.Errorf("read configuration: %w", err), "check the path given by --config or TIDEMARK_CONFIG"}
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
			return nil, bucketConfig, fmt.Errorf("configuration: %s: %s: a document in the bucket cannot say where the bucket is; move it to %s or the environment: %w", at, key, documentName, tidemark.ErrInvalid)
		}
	}
	if err := in.Override(m.settingsEnviron()); err != nil {
		return nil, bucketConfig, fmt.Errorf("configuration: %w", err)
	}
	return in, bucketConfig, nil
}

func readBucketConfig(ctx context.Context, home string, c *config.Config) ([]byte, error) {
	if c.Storage.Bucket.Kind == "folder" { // reading must not make the folder
		return readFile(filepath.Join(bucketPath(home, c), bucketConfig))
	}
	blobs, err := openBucket(home, c)
	if err != nil {
		return nil, err
	}
	_, body, err := blobs.Get(ctx, bucketConfig)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(io.LimitReader(body, maxDocument))
}

// maxDocument is more than config.Parse takes, so that it says what is wrong.
const maxDocument = 1 << 20

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxDocument))
}

func bucketPath(home string, c *config.Config) string {
	if p := c.Storage.Bucket.Path; p != "" {
		return p
	}
	return filepath.Join(home, bucketName)
}

// openBucket opens the folder or the S3 bucket.
func openBucket(home string, c *config.Config) (tidemark.Blobs, error) {
	b := c.Storage.Bucket
	if b.Kind == "folder" {
		return native.NewDir(bucketPath(home, c))
	}
	blobs, err := native.NewS3(native.S3Config{Endpoint: b.Endpoint, Region: b.Region, Bucket: b.Bucket, Prefix: b.Prefix,
		PathStyle: b.PathStyle, Conditional: b.Conditional})
	if err != nil {
		return nil, &fixed{err, "correct storage.bucket; `tidemark config check` reads the configuration"}
	}
	return blobs, nil
}

// logger writes to standard error. Commands other than serve are quiet unless they are asked.
func (m *Main) logger(c *config.Config, quiet bool) *slog.Logger {
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

// serverFile is what a process that keeps the store for long leaves in the home folder for others.
type serverFile struct {
	URL  string `json:"url,omitempty"` // of a server
	PID  int    `json:"pid"`
	Talk bool   `json:"talk,omitempty"` // a chat, which serves nobody

	// Of a server: where requests of clients go that keep their history themselves.
	Messages string `json:"messages,omitempty"`
	Chat     string `json:"chat,omitempty"`
}

// writeServerFile tells other commands who has this home.
func writeServerFile(home string, s serverFile) error {
	s.PID = os.Getpid()
	raw, err := json.MarshalIndent(s)
	if err != nil {
		return err
	}
	path := filepath.Join(home, serverName)
	if err := os.WriteFile(path+".new", raw, 0o600); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return os.Rename(path+".new", path)
}

// readServerFile returns what a server left; the zero value when none did.
func readServerFile(home string) serverFile {
	var s serverFile
	raw, err := readFile(filepath.Join(home, serverName))
	if err != nil || json.Unmarshal(raw, &s) != nil {
		return serverFile{}
	}
	return s
}

// removeServerFile takes the file away if it is ours.
func removeServerFile(home string) {
	if readServerFile(home).PID == os.Getpid() {
		_ = os.Remove(filepath.Join(home, serverName)) // a stale one does no harm
	}
}

// held explains why a store cannot be opened.
func held(home string, locked *native.LockedError) error {
	who := "another process"
	if locked.PID > 0 {
		who = "process " + strconv.Itoa(locked.PID)
	}
	return &fixed{fmt.Errorf("the store %s is in use by %s, which is not a server of it", home, who),
		"wait until that command has ended, or stop it; `tidemark serve` lets several commands use a store at once"}
}
